"""A grammar that writes English-German sentence pairs with gold word alignments.

It is the data set that needs no download. A seed gives always the same pairs; an English
sentence has always the same translation; and a sentence belongs to the training, the validation
or the test part by its own text, so that no seed and no size ever moves it.
"""

from collections.abc import Iterator, Sequence
from itertools import islice
from random import Random

from regard.core.config import at_least
from regard.data.datasets.loading import Parts, fill_parts, parse_number, with_sizes
from regard.data.datasets.synthetic.phrasebook.english import write_english
from regard.data.datasets.synthetic.phrasebook.german import GermanWriter
from regard.data.datasets.synthetic.phrasebook.grammar import Grammar
from regard.data.datasets.synthetic.phrasebook.lexicon import load_lexicon
from regard.data.datasets.synthetic.phrasebook.trees import Sentence, Word, align, write_sentence
from regard.data.example import Example
from regard.data.splits import Splits

MAX_WORDS = 60
"""Most words of an English sentence, separated by spaces."""

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

SHARES = 3, 6
"""Hundredths of all sentences for validation and for the test; the rest is for training."""


def generate(num: int, *, seed: int = 0) -> list[Example]:
    """Write sentence pairs, no source twice.

    Args:
        num: How many.
        seed: Which ones; more of the same seed begin with the same.
    """
    at_least("num", num, 0)
    return [_write(*sample) for sample in islice(_sample(seed), num)]


def splits(
    *, num_train: int = 20_000, num_valid: int = 500, num_test: int = 1_000, seed: int = 0
) -> Parts:
    """Write sentence pairs for training, validation and test.

    No sentence is in two parts, not even with different seeds; a part does not depend on the
    sizes of the others.
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
    """Return the phrasebook as a data set; the argument is the number of training pairs."""
    parts = splits(num_train=parse_number(argument, "phrasebook", 20_000), seed=seed)
    return with_sizes(parts, f"generated with seed {seed}", "; no source is shared")


def write_example(sentence: Sentence) -> Example:
    """Write one tree in both languages, with its alignment and its tags."""
    english = write_english(sentence)
    return _write(sentence, english, write_sentence(english))


def _sample(seed: int) -> Iterator[tuple[Sentence, list[Word], str]]:
    """Sample trees without end, each with its English, which no other one has."""
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
