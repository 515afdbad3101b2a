"""State of a training beside its tensors: it is checked when a run is resumed."""

from typing import Any, NotRequired, TypedDict

from regard.core.errors import CheckpointError
from regard.core.records import check_record, shown
from regard.training.progress import Progress

MAX_COUNT = 2**53
"""Largest count or time, which a floating-point number holds exactly."""

_NUM_SUMS = 4
_SIGNED = {"best", "best_loss", "lowest_loss"}


class _MeterState(TypedDict):
    """State of a `Meter`."""

    sums: list[float]
    with_skipped: NotRequired[list[str]]
    num_skipped: NotRequired[int]
    in_a_row: NotRequired[int]
    num_steps: int
    num_tokens: int
    seconds: float
    waited: NotRequired[float]


class _ScheduleState(TypedDict, total=False):
    """State of a schedule; that of most of them is empty."""

    best: float | None
    bad_validations: int
    num_drops: int


class _TrainingState(TypedDict):
    progress: Progress
    meter: _MeterState
    schedule: _ScheduleState


def check_state(state: dict[str, Any], origin: str) -> None:
    """Raise `CheckpointError` if a state has other types or numbers than training writes.

    Args:
        state: Counters, sums and state of the schedule, from a JSON file.
        origin: Source of the state, for the error message.
    """
    check_record(state, _TrainingState, origin)
    if fault := _fault_of_sums(state["meter"]) or _fault_of_numbers(state):
        raise CheckpointError(f"{origin} is not from a run: {fault}. The file is damaged.")


def _fault_of_sums(meter: dict[str, Any]) -> str:
    for name in ("sums", "with_skipped"):
        values = meter.get(name, meter["sums"])
        if len(values) != _NUM_SUMS or not all(map(_is_number, values)):
            return f"`meter.{name}` must have {_NUM_SUMS} numbers, but is {shown(values)}"
    return ""


def _fault_of_numbers(state: dict[str, Any]) -> str:
    for part, values in state.items():
        for name, value in values.items() if isinstance(values, dict) else ():
            if not isinstance(value, int | float) or name in _SIGNED:
                continue
            if not 0 <= value <= MAX_COUNT:
                return f"`{part}.{name}` must be between 0 and {MAX_COUNT:,}, but is {shown(value)}"
    return ""


def _is_number(value: Any) -> bool:
    """Return whether a value is a number, or the text of one."""
    try:
        float(value)
    except ValueError:
        return False
    return True
