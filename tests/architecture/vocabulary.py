"""Words that code and documents avoid, and a search for them.

    python tests/architecture/vocabulary.py [PATH ...]

prints every occurrence with the standard term to use instead, and the counts per word.
"""

import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent

BANNED: dict[str, str] = {
    r"(?<!in )(?<!in-)(?<!take )(?<!takes )(?<!decimal )places?(?! holder)": "position, path",
    r"foretell\w*|foretold": "predict",
    r"spoil\w*": "corrupted, noisy",
    r"blanks": "whitespace; blank tokens (CTC)",
    r"rungs?": "model",
    r"(hang|hangs|hung) (up)?on": "depends on",
    r"pieces": "tokens, parts",
    r"judges?|judged|judging": "metric, score",
    r"verbs?": "command",
    r"(another|other) houses?": "Hugging Face checkpoint",
    r"picturing": "image_to_image",
    r"listeners?": "pyramidal LSTM encoder",
    r"odd (item|items|ones?|images?)": "anomaly",
    r"pace": "throughput, tokens per second",
    r"journals?": "training log",
    r"eyes?": "image encoder",
    r"hear|hears|heard|hearing": "audio, transcribe",
    r"think|thinks|thinking|thought": "compute",
    r"looks?(?! up)|looked|looking": "attend, see, inspect",
    r"tell|tells|telling|told": "predict, return, distinguish",
    r"guess|guesses|guessed": "predict, infer",
    r"says|said|saying": "state, report, predict",
    r"knows": "has, contains",
    r"forgets": "drops",
    r"roads?": "path, way",
    r"pictures?|pictured": "image, plot",
    r"sounds?": "audio, recording, phoneme",
    r"worth": "score",
    r"waist": "interface",
    r"climbs?|climbing|climbed": "train the ladder",
    r"gaps?": "masked token",
    r"blindly": "uninformed",
    r"wanders?|wandering": "moves",
    r"draws|drawings?": "sample, plot, rendered image",
    r"(?<!\w )what (it|a batch|one|they) costs?": "loss, cost of",
    r"where (it|they|the model|the models) (looks?|looked)": "attention weights",
    r"believes?|believed": "predicts",
    r"remembers?|remembered": "stores, caches",
    r"whoever|whomever|whatever": "(rephrase)",
    r"lends?|lent": "provides",
    r"heeds?": "uses",
}
"""Regular expressions over words in lower case, and what to write instead."""

OPENINGS = re.compile(r'"""(What|Where|Who|Whose|Why|When|Which|How|Tell|Say)\b')
"""First words of a docstring that make it a question or a riddle."""

NAMES = re.compile(
    r"show, attend and tell|show[- ]attend[- ]tell|listen, attend and spell|torch\.eye|np\.eye"
    r"|sound-labels|num draws|place embedding|gap:|journal\.jsonl|sentencepieces?|word ?pieces?"
    r"|sound ?file|event listener|file\.tell\(|verb[ -]last|\"i think \"|owners look at"
)
"""Titles, file names, recipes, settings, checkpoint keys and names of other packages."""

ALLOWED = {
    "verb": (
        "regard/data/datasets/synthetic/",
        "regard/metrics/text/verb_position.py",
        "regard/studies/compare/",
        "regard/studies/reproduce/",
        "docs/architecture.md",
        "docs/lectures",
        "tests/unit/data/datasets/synthetic/",
        "tests/unit/metrics/text/test_verb_position.py",
        "tests/unit/studies/",
    ),
}
"""Files in which a word has its ordinary meaning: the grammar of the generated sentences."""

SKIPPED = (
    "CHANGELOG.md",  # names that were renamed
    "LICENSE",
    "tests/architecture/vocabulary.py",
    "tests/architecture/test_vocabulary.py",
    "tests/golden/",
    "docs/results/",
    # Vocabulary of the generated sentences.
    "regard/data/datasets/synthetic/phrasebook/lexicon.toml",
    "regard/data/datasets/synthetic/phrasebook/german.toml",
    "regard/data/datasets/synthetic/scenes/german.toml",
    "regard/studies/reproduce/encoder_decoders/role_sentences.py",
)
SUFFIXES = (".py", ".md", ".toml", ".txt", ".css", ".js", ".html", "Makefile")

_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_PATTERNS = {re.compile(rf"\b(?:{pattern})\b"): term for pattern, term in BANNED.items()}


@dataclass(frozen=True)
class Hit:
    """One banned word in one line."""

    path: str
    line: int
    word: str
    instead: str
    text: str


def find_hits(paths: Sequence[str] = ()) -> Iterator[Hit]:
    """Yield every banned word in the tracked files, or in those below some paths."""
    listed = subprocess.run(
        ["git", "ls-files", *paths], cwd=ROOT, capture_output=True, text=True, check=True
    )
    for name in listed.stdout.splitlines():
        if name.endswith(SUFFIXES) and not name.startswith(SKIPPED):
            yield from _hits_of_file(name)


def _hits_of_file(name: str) -> Iterator[Hit]:
    path = ROOT / name
    if not path.exists():
        return
    yield from hits_of_line(name, 0, name)
    for number, text in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        yield from hits_of_line(name, number, text)


def hits_of_line(path: str, number: int, text: str) -> Iterator[Hit]:
    """Yield the banned words of one line."""
    if opening := OPENINGS.search(text):
        yield Hit(path, number, opening[1], "a noun phrase or an imperative", text.strip())
    # Identifiers are read as words: `place_of` and `PlaceOf` as "place of".
    words = NAMES.sub("", _CAMEL.sub(" ", text).replace("_", " ").lower())
    for pattern, instead in _PATTERNS.items():
        for found in pattern.finditer(words):
            if path.startswith(ALLOWED.get(found[0].rstrip("s"), "\0")):
                continue
            yield Hit(path, number, found[0], instead, text.strip())


def main() -> None:
    """Print every hit and the counts."""
    counts: Counter[str] = Counter()
    for hit in find_hits(sys.argv[1:]):
        counts[hit.word] += 1
        print(f"{hit.path}:{hit.line}: {hit.word!r} -> {hit.instead}: {hit.text[:120]}")
    print(*(f"{count:6} {word}" for word, count in counts.most_common()), sep="\n")
    print(f"{counts.total()} in all")


if __name__ == "__main__":
    main()
