"""Built-in data sets by name: the literal table of their loaders, and `find_data`."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from regard.core.config import read_toml
from regard.core.errors import DataError
from regard.core.tables import near, one_of
from regard.data.datasets.babi import load_babi
from regard.data.datasets.conversations import load_chitchat
from regard.data.datasets.fsdd import load_fsdd
from regard.data.datasets.images import load_digits, load_flickr8k, load_images
from regard.data.datasets.labelled import load_imdb, load_opinions, load_sick, load_sst2
from regard.data.datasets.spelling import load_cmudict, load_g2p, load_transliteration
from regard.data.datasets.synthetic.moving import load_moving
from regard.data.datasets.synthetic.phrasebook import load_phrasebook
from regard.data.datasets.synthetic.scenes import load_scenes, load_shapes
from regard.data.datasets.synthetic.tones import load_tones
from regard.data.datasets.synthetic.toys import SYNTHETIC, load_toy
from regard.data.datasets.text_pairs import (
    load_multi30k,
    load_small_enja,
    load_summaries,
    load_tatoeba,
)
from regard.data.datasets.texts import load_shakespeare, load_wikitext2
from regard.data.datasets.visual_questions import load_easy_vqa
from regard.data.example import Example
from regard.data.splits import Splits
from regard.data.text.readers import STANDARD_INPUT, read_examples

Reader = Callable[[str, str | None], list[Example]]
Loader = Callable[[str, int], Splits]
"""Makes the splits from what follows the name and a colon (may be empty) and a seed."""

_CHOICE = re.compile(r"(?:(?P<before>.*),)?(?P<how>only|without)=(?P<labels>.*)")


@dataclass(frozen=True)
class Dataset:
    """A row of the table of data sets."""

    description: str
    """What it is, in one line."""
    origin: str
    """Where it comes from and under which licence."""
    load: Loader


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


def split_choice(argument: str) -> tuple[str, str]:
    """Return what a data set itself is asked for, and which labels of it are wanted.

    Args:
        argument: What stands after the colon, such as `1000,only=bag,coat`.

    Returns:
        As in `("1000", "only=bag,coat")`; either may be empty.
    """
    found = _CHOICE.fullmatch(argument)
    if found is None:
        return argument, ""
    return found["before"] or "", f"{found['how']}={found['labels']}"


def choose_labels(splits: Splits, choice: str, *, name: str) -> Splits:
    """Keep the examples whose label is wanted, on every side.

    Args:
        splits: Examples whose targets are labels.
        choice: What `split_choice` found.
        name: What the data set is called.
    """
    how, _, labels = choice.partition("=")
    named = [label.strip() for label in labels.split(",")]
    sides = (splits.train, splits.valid, splits.test)
    known = dict.fromkeys(sorted({example.target for side in sides for example in side}))
    if unknown := [label for label in named if label not in known]:
        shown = list(known)[:20]
        more = f" and {len(known) - len(shown):,} more" if len(known) > len(shown) else ""
        raise DataError(
            f"What follows '{name}:{how}=' must be labels of it, joined by commas, but one is "
            f"'{unknown[0]}'.{near(unknown[0], known)} Known are {one_of(shown)}{more}."
        )
    kept = [
        [example for example in side if (example.target in named) == (how == "only")]
        for side in sides
    ]
    for part, examples in zip(("train", "valid", "test"), kept, strict=True):
        if not examples:
            raise DataError(f"'{name}:{choice}' leaves nothing on the {part} side.")
    note = f"{splits.note}; {how} {', '.join(named)}: {', '.join(f'{len(k):,}' for k in kept)}"
    return replace(splits, train=kept[0], valid=kept[1], test=kept[2], note=note)


LOADERS: dict[str, Loader] = {
    "phrasebook": load_phrasebook,
    **{name: partial(load_toy, name) for name in SYNTHETIC},
    "scenes": load_scenes,
    "shapes": load_shapes,
    "moving": load_moving,
    "tones": load_tones,
    "cmudict": load_cmudict,
    "g2p": load_g2p,
    "transliteration": load_transliteration,
    "tatoeba": load_tatoeba,
    "multi30k": load_multi30k,
    "small_enja": load_small_enja,
    "synopsis": partial(load_summaries, "synopsis"),
    "scitldr": partial(load_summaries, "scitldr"),
    "chitchat": load_chitchat,
    "shakespeare": load_shakespeare,
    "wikitext2": load_wikitext2,
    "opinions": load_opinions,
    "sst2": load_sst2,
    "sick": load_sick,
    "babi": load_babi,
    "imdb": load_imdb,
    "fashion-mnist": partial(load_images, "fashion-mnist"),
    "mnist": partial(load_images, "mnist"),
    "cifar10": partial(load_images, "cifar10"),
    "digits": load_digits,
    "easy-vqa": load_easy_vqa,
    "flickr8k": load_flickr8k,
    "fsdd": load_fsdd,
}

_TEXTS = read_toml(Path(__file__).with_name("catalog.toml"))

DATASETS: dict[str, Dataset] = {
    name: Dataset(**_TEXTS[name], load=load) for name, load in LOADERS.items()
}
