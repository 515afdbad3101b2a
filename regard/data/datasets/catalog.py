"""Built-in data sets by name: the table of their loaders, and `find_data`."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from regard.core.config import read_toml
from regard.core.errors import DataError
from regard.core.tables import did_you_mean, nearest_names, resolve
from regard.data.example import Example
from regard.data.splits import Splits
from regard.data.text.lines import STANDARD_INPUT
from regard.data.text.readers import read_examples

Reader = Callable[[str, str | None], Sequence[Example]]

_LABEL_FILTER = re.compile(r"(?:(?P<before>.*),)?(?P<mode>only|without)=(?P<labels>.*)")


@dataclass(frozen=True)
class Dataset:
    """A row of the table of data sets."""

    description: str
    """One-line description."""
    origin: str
    """Source and licence."""
    access: str
    """Way to obtain it: "generated", "package", "download", or the folder "REGARD_DATA"."""
    loader: tuple[str, ...]
    """Row of `LOADERS`."""

    def load(self, argument: str, seed: int) -> Splits:
        """Return the splits.

        Args:
            argument: Text after the name and colon; may be empty.
            seed: Seed of generated data and of the split.
        """
        dotted, *arguments = self.loader
        splits: Splits = resolve(f"{__package__}.{dotted}")(*arguments, argument, seed)
        return splits


def find_data(
    data: str, second: str | None = None, *, seed: int = 0, read: Reader = read_examples
) -> Splits | Sequence[Example]:
    """Load a built-in data set by its name, or read the examples of a file.

    Args:
        data: A file, `-` for standard input, or a name such as `phrasebook` or `phrasebook:5000`;
            `shapes:only=circle` and `shapes:without=circle` filter by label. A file takes
            precedence over a data set of the same name.
        second: File with the targets if `data` contains sources only.
        seed: Seed of generated data and of the split.
        read: Function that reads files: `(path, second)` → examples.

    Returns:
        Splits for a data set; unsplit examples for files.
    """
    name, _, argument = data.partition(":")
    if second is None and is_builtin(data):
        argument, label_filter = split_label_filter(argument)
        splits = DATASETS[name].load(argument, seed)
        return filter_labels(splits, label_filter, name=name) if label_filter else splits
    if second is not None or data == STANDARD_INPUT or Path(data).exists():
        return read(data, second)
    if Path(data).name != data or Path(name).suffix:
        raise DataError(f"'{data}' does not exist.")
    raise DataError(
        f"'{data}' is neither a file nor a data set. "
        f"{nearest_names(name, DATASETS, 'regard data list')}"
    )


def is_builtin(data: str) -> bool:
    """Return whether data is a built-in data set; a file of the same name takes precedence."""
    is_read = data == STANDARD_INPUT or Path(data).is_file()
    return not is_read and data.partition(":")[0] in DATASETS


def split_label_filter(argument: str) -> tuple[str, str]:
    """Split the argument of a data set into the loader's argument and a label filter.

    Args:
        argument: Text after the colon, such as `1000,only=bag,coat`.

    Returns:
        For example `("1000", "only=bag,coat")`; either may be empty.
    """
    match = _LABEL_FILTER.fullmatch(argument)
    if match is None:
        return argument, ""
    return match["before"] or "", f"{match['mode']}={match['labels']}"


def filter_labels(splits: Splits, label_filter: str, *, name: str) -> Splits:
    """Keep the examples of every split whose label passes the filter.

    Args:
        splits: Examples whose targets are labels.
        label_filter: Filter as returned by `split_label_filter`.
        name: Name of the data set, for messages.
    """
    mode, _, labels = label_filter.partition("=")
    named = [label.strip() for label in labels.split(",")]
    parts = (splits.train, splits.valid, splits.test)
    known = dict.fromkeys(sorted({example.target for part in parts for example in part}))
    if unknown := [label for label in named if label not in known]:
        shown = list(known)[:20]
        more = f" and {len(known) - len(shown):,} more" if len(known) > len(shown) else ""
        raise DataError(
            f"'{name}:{mode}=' must be followed by labels joined by commas, but one of them is "
            f"'{unknown[0]}'.{did_you_mean(unknown[0], known)} Labels: {', '.join(shown)}{more}."
        )
    kept = [
        [example for example in part if (example.target in named) == (mode == "only")]
        for part in parts
    ]
    for split, examples in zip(("train", "valid", "test"), kept, strict=True):
        if not examples:
            raise DataError(f"'{name}:{label_filter}' leaves no examples in the {split} split.")
    note = f"{splits.note}; {mode} {', '.join(named)}: {', '.join(f'{len(k):,}' for k in kept)}"
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
"""Loader, imported on first use, and its first arguments, by name of the data set."""

_DESCRIPTIONS = read_toml(Path(__file__).with_name("catalog.toml"))

DATASETS: dict[str, Dataset] = {
    name: Dataset(**_DESCRIPTIONS[name], loader=loader) for name, loader in LOADERS.items()
}
