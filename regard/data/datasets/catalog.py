"""Built-in data sets by name: the literal table of their loaders, and `find_data`."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from regard.core.config import read_toml
from regard.core.errors import DataError
from regard.core.tables import near, one_of, resolve
from regard.data.example import Example
from regard.data.splits import Splits
from regard.data.text.lines import STANDARD_INPUT
from regard.data.text.readers import read_examples

Reader = Callable[[str, str | None], list[Example]]

_CHOICE = re.compile(r"(?:(?P<before>.*),)?(?P<how>only|without)=(?P<labels>.*)")


@dataclass(frozen=True)
class Dataset:
    """A row of the table of data sets."""

    description: str
    """What it is, in one line."""
    origin: str
    """Where it comes from and under which licence."""
    loader: tuple[str, ...]
    """A row of `LOADERS`."""

    def load(self, argument: str, seed: int) -> Splits:
        """Return the splits.

        Args:
            argument: What follows the name and a colon; may be empty.
            seed: For what is generated and how it is split.
        """
        dotted, *arguments = self.loader
        splits: Splits = resolve(f"{__package__}.{dotted}")(*arguments, argument, seed)
        return splits


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


LOADERS: dict[str, tuple[str, ...]] = {
    "phrasebook": ("synthetic.phrasebook:load_phrasebook",),
    "copy": ("synthetic.toys:load_toy", "copy"),
    "reverse": ("synthetic.toys:load_toy", "reverse"),
    "sort": ("synthetic.toys:load_toy", "sort"),
    "add": ("synthetic.toys:load_toy", "add"),
    "numbers": ("synthetic.toys:load_toy", "numbers"),
    "dates": ("synthetic.toys:load_toy", "dates"),
    "scenes": ("synthetic.scenes:load_scenes",),
    "shapes": ("synthetic.scenes:load_shapes",),
    "moving": ("synthetic.moving:load_moving",),
    "tones": ("synthetic.tones:load_tones",),
    "cmudict": ("spelling:load_cmudict",),
    "g2p": ("spelling:load_g2p",),
    "transliteration": ("spelling:load_transliteration",),
    "tatoeba": ("text_pairs:load_tatoeba",),
    "multi30k": ("text_pairs:load_multi30k",),
    "small_enja": ("text_pairs:load_small_enja",),
    "synopsis": ("text_pairs:load_summaries", "synopsis"),
    "scitldr": ("text_pairs:load_summaries", "scitldr"),
    "chitchat": ("conversations:load_chitchat",),
    "shakespeare": ("texts:load_shakespeare",),
    "wikitext2": ("texts:load_wikitext2",),
    "opinions": ("labelled:load_opinions",),
    "sst2": ("labelled:load_sst2",),
    "sick": ("labelled:load_sick",),
    "babi": ("babi:load_babi",),
    "imdb": ("labelled:load_imdb",),
    "fashion-mnist": ("images:load_images", "fashion-mnist"),
    "mnist": ("images:load_images", "mnist"),
    "cifar10": ("images:load_images", "cifar10"),
    "digits": ("images:load_digits",),
    "easy-vqa": ("visual_questions:load_easy_vqa",),
    "flickr8k": ("images:load_flickr8k",),
    "fsdd": ("fsdd:load_fsdd",),
}
"""By name the loader, imported on first use, and its first arguments."""

_TEXTS = read_toml(Path(__file__).with_name("catalog.toml"))

DATASETS: dict[str, Dataset] = {
    name: Dataset(**_TEXTS[name], loader=loader) for name, loader in LOADERS.items()
}
