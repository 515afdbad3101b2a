"""A grammar that writes English-German sentence pairs with gold word alignments.

It is the data set that needs no download. A seed gives always the same pairs; an English
sentence has always the same translation; and a sentence belongs to the training, the validation
or the test part by its own text, so that no seed and no size ever moves it.
"""

import re
import zlib
from collections.abc import Iterator, Sequence
from itertools import islice
from random import Random

from regard.core.config import at_least
from regard.data.datasets.synthetic.phrasebook.english import write_english
from regard.data.datasets.synthetic.phrasebook.german import GermanWriter
from regard.data.datasets.synthetic.phrasebook.grammar import Grammar
from regard.data.datasets.synthetic.phrasebook.lexicon import load_lexicon
from regard.data.datasets.synthetic.phrasebook.trees import Sentence, Word, align, write_sentence
from regard.data.example import Example

MAX_WORDS = 60
"""No English sentence has more words between blanks."""

TAGS: dict[str, str] = {
    "accusative": "a noun phrase or pronoun in the accusative",
    "dative": "a noun phrase or pronoun in the dative",
    "plural": "a noun in the plural",
    "adjective": "an adjective with an ending",
    "number": "a number before a noun",
    "pronoun": "a personal pronoun",
    "negation": "nicht or kein",
    "question": "a question, with or without a question word",
    "inversion": "something other than the subject before the verb of a statement",
    "modal": "a modal verb or the future, with the infinitive at the end",
    "perfect": "an English past as haben or sein with the participle at the end",
    "separable": "a verb with a separable prefix, apart or joined",
    "verb_last": "a dependent clause with its verb last",
    "relative": "a relative clause",
    "infinitive": "an infinitive clause with zu",
    "coordination": "noun phrases, verbs or clauses side by side",
}
"""The phenomena an example can have, and what each name means."""

_WORD = re.compile(r"[\w'’-]+|[^\w\s]")

# In hundredths; the rest is for training.
_SHARES = {"test": 6, "valid": 3}


def generate(num: int, *, seed: int = 0) -> list[Example]:
    """Write sentence pairs, no source twice.

    Args:
        num: How many.
        seed: Which ones; more of the same seed begin with the same.
    """
    at_least("num", num, 0)
    return [_write(*drawn) for drawn in islice(_draw(seed), num)]


def splits(
    *, num_train: int = 20_000, num_valid: int = 500, num_test: int = 1_000, seed: int = 0
) -> tuple[list[Example], list[Example], list[Example]]:
    """Write sentence pairs for training, validation and test.

    No sentence is in two parts, not even with different seeds; a part does not depend on the
    sizes of the others.
    """
    wanted = {"train": num_train, "valid": num_valid, "test": num_test}
    for name, num in wanted.items():
        at_least(f"num_{name}", num, 0)
    parts: dict[str, list[Example]] = {name: [] for name in wanted}
    missing = sum(wanted.values())
    drawn = _draw(seed)
    while missing:
        sentence, english, source = next(drawn)
        part = part_of(source)
        if len(parts[part]) < wanted[part]:
            parts[part].append(_write(sentence, english, source))
            missing -= 1
    return parts["train"], parts["valid"], parts["test"]


def part_of(source: str) -> str:
    """Return the part an English sentence belongs to: train, valid or test."""
    lot = zlib.crc32(source.encode()) % 100
    for part, share in _SHARES.items():
        if lot < share:
            return part
        lot -= share
    return "train"


def split_words(text: str) -> list[str]:
    """Split a text into words and punctuation marks, as the alignments count them."""
    return _WORD.findall(text)


def write_example(sentence: Sentence) -> Example:
    """Write one tree in both languages, with its alignment and its tags."""
    english = write_english(sentence)
    return _write(sentence, english, write_sentence(english))


def _draw(seed: int) -> Iterator[tuple[Sentence, list[Word], str]]:
    """Draw trees without end, each with its English, which no other one has."""
    grammar = Grammar(load_lexicon(), Random(seed))
    seen: set[str] = set()
    while True:
        sentence = grammar.draw()
        english = write_english(sentence)
        source = write_sentence(english)
        if source not in seen and source.count(" ") < MAX_WORDS:
            seen.add(source)
            yield sentence, english, source


def _write(sentence: Sentence, english: Sequence[Word], source: str) -> Example:
    writer = GermanWriter()
    german = writer.write(sentence)
    return Example(
        source=source,
        target=write_sentence(german),
        alignment=align(english, german),
        tags=tuple(tag for tag in TAGS if tag in writer.tags),
    )
