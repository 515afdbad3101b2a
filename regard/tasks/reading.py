"""Files and data sets → training, validation and test data that share no source."""

from regard.core.errors import ConfigError, DataError
from regard.data.datasets import find_data
from regard.data.examples import Example
from regard.data.splitting import Splits, drop_overlap, split_by_source


def read_pairs(
    data: tuple[str, ...], valid: tuple[str, ...], test: tuple[str, ...], *, seed: int
) -> Splits:
    """Read pairs so that no source is on two sides.

    Args:
        data: A data set's name, a file of pairs, or two line-aligned files.
        valid: Validation data, likewise; split off the training data if empty.
        test: Test data, likewise.
        seed: Of splits and of generated data.
    """
    found = find_data(*data, seed=seed)
    valid_side = read_side(valid, "valid", seed=seed)
    test_side = read_side(test, "test", seed=seed)
    if isinstance(found, Splits):
        train, note = found.train, found.note
        valid_side, test_side = valid_side or found.valid, test_side or found.test
    elif valid_side and test_side:
        train, note = found, "validation and test data as given"
    else:
        split = split_by_source(found, seed=seed)
        note = split.note
        # What is not needed for a side that was given goes back to training.
        train = split.train + (split.valid if valid else []) + (split.test if test else [])
        valid_side, test_side = valid_side or split.valid, test_side or split.test
    train, num_dropped = drop_overlap(train, [*valid_side, *test_side])
    if not train:
        raise DataError(
            f"Nothing is left to train on: all {num_dropped:,} training pairs have a source "
            "that is also in the validation or test data. Give other data for them."
        )
    if num_dropped:
        note += f"; {num_dropped:,} training pairs left out, their source is held out"
    return Splits(train=train, valid=valid_side, test=test_side, note=note)


def read_side(paths: tuple[str, ...], side: str, *, seed: int) -> list[Example]:
    """Read a file of pairs whole, or one side (`valid`, `test`) of a data set with a name."""
    if not paths:
        return []
    if len(paths) > 2:
        raise ConfigError(
            f"`--{side}` must be one file of pairs or two line-aligned files, "
            f"but there are {len(paths)}: {', '.join(paths)}."
        )
    found = find_data(*paths, seed=seed)
    if isinstance(found, Splits):
        chosen: list[Example] = getattr(found, side)
        return chosen
    return found
