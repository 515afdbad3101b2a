"""Grammar that generates English-German sentence pairs with gold word alignments.

The pairs are determined by the seed, and an English sentence always has the same translation. A
sentence is assigned to the training, validation or test split by its text, independently of the
seed and of the number of pairs.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from random import Random

from regard.core.config import at_least
from regard.data.datasets.loading import Parts, build_splits, fill_parts, parse_number
from regard.data.datasets.synthetic.phrasebook.english import write_english
from regard.data.datasets.synthetic.phrasebook.german import GermanWriter
from regard.data.datasets.synthetic.phrasebook.grammar import Grammar
from regard.data.datasets.synthetic.phrasebook.lexicon import load_lexicon
from regard.data.datasets.synthetic.phrasebook.trees import Sentence, Word, align, write_sentence
from regard.data.example import Example
from regard.data.splits import Splits

MAX_WORDS = 60
"""Maximum number of words of an English sentence, separated by spaces."""

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
    "separable": "a verb with a separable prefix, separated or joined",
    "verb_last": "a dependent clause with its verb last",
    "relative": "a relative clause",
    "infinitive": "an infinitive clause with zu",
    "coordination": "noun phrases, verbs or clauses side by side",
}
"""Linguistic phenomena of an example, with a description."""

SHARES = 3, 6
"""Percentages of sentences for validation and for the test; the rest is for training."""


def generate(num: int, *, seed: int = 0) -> list[Example]:
    """Generate sentence pairs with distinct sources.

    Args:
        num: Number of pairs.
        seed: Seed of the pairs; a larger `num` extends the same list.
    """
    at_least("num", num, 0)
    return [_write(*sample) for sample in islice(_sample(seed), num)]


def splits(
    *, num_train: int = 20_000, num_valid: int = 500, num_test: int = 1_000, seed: int = 0
) -> Parts:
    """Generate sentence pairs for training, validation and test.

    No sentence is in two splits, even with different seeds. A split does not depend on the sizes
    of the others.
    """
    for name, num in (("train", num_train), ("valid", num_valid), ("test", num_test)):
        at_least(f"num_{name}", num, 0)
    return fill_parts(
        _sample(seed),
        lambda sample: [_write(*sample)],
        (num_train, num_valid, num_test),
        key=lambda sample: sample[2],
        shares=SHARES,
    )


def load_phrasebook(argument: str, seed: int) -> Splits:
    """Generate the data set; the argument is the number of training pairs."""
    parts = splits(num_train=parse_number(argument, "phrasebook", 20_000), seed=seed)
    return build_splits(parts, f"generated with seed {seed}", "; no source is shared")


def write_example(sentence: Sentence) -> Example:
    """Return a tree in both languages, with alignment and tags."""
    english = write_english(sentence)
    return _write(sentence, english, write_sentence(english))


def _sample(seed: int) -> Iterator[tuple[Sentence, list[Word], str]]:
    """Yield trees indefinitely, each with a distinct English sentence."""
    grammar = Grammar(load_lexicon(), Random(seed))
    seen: set[str] = set()
    while True:
        sentence = grammar.sample()
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
