"""Recording of beam search: `with record_trees() as recorder:`.

Without `record_trees`, search stores nothing for it. Recorded search equals search.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Protocol

from torch import Tensor


class RecordedStep(Protocol):
    """The candidates of a step of beam search, most likely first."""

    @property
    def totals(self) -> Tensor:
        """(B, C) log-probability of the hypothesis; -inf = none."""

    @property
    def log_probs(self) -> Tensor:
        """(B, C) log-probability of its last token."""

    @property
    def tokens(self) -> Tensor:
        """(B, C) its last token."""

    @property
    def parents(self) -> Tensor:
        """(B, C) the beam it continues."""

    @property
    def is_end(self) -> Tensor:
        """(B, C) whether it has ended."""

    @property
    def is_finished(self) -> Tensor:
        """(B, W) whether each of the first candidates is a result."""

    @property
    def kept(self) -> Tensor:
        """(B, W) indices of the candidates that become the next beams."""


@dataclass(frozen=True, slots=True)
class TreeNode:
    """A hypothesis that beam search kept or finished."""

    parent: int | None
    """Index of the node it continues; None at the first step."""
    tokens: tuple[int, ...]
    """Token ids from the first one to its own."""
    log_prob: float
    """Log-probability of its last token."""
    total: float
    """Log-probability of the hypothesis."""
    is_finished: bool
    """Whether it is a result; others are continued, unless search has ended."""


class TreeRecorder:
    """Steps of the beam searches inside a block of `record_trees`."""

    def __init__(self) -> None:
        self._searches: list[list[RecordedStep]] = []

    @property
    def num_searches(self) -> int:
        """Number of beam searches so far."""
        return len(self._searches)

    def start(self) -> None:
        """Begin the next search."""
        self._searches.append([])

    def add(self, step: RecordedStep) -> None:
        """Store a step of the current search."""
        self._searches[-1].append(step)

    def trees(self, number: int = 0) -> list[list[TreeNode]]:
        """Return the nodes of each sentence of a search, in the order of steps and candidates."""
        steps = [_to_lists(step) for step in self._searches[number]]
        num_sentences = len(steps[0]["totals"]) if steps else 0
        return [_build_tree([_row(step, row) for step in steps]) for row in range(num_sentences)]


_RECORDER: ContextVar[TreeRecorder | None] = ContextVar("recorder", default=None)


@contextmanager
def record_trees() -> Iterator[TreeRecorder]:
    """Record the beam searches inside the block."""
    recorder = TreeRecorder()
    token = _RECORDER.set(recorder)
    try:
        yield recorder
    finally:
        _RECORDER.reset(token)


def current_recorder() -> TreeRecorder | None:
    """Return the recorder of the block of `record_trees`, None outside."""
    return _RECORDER.get()


def _to_lists(step: RecordedStep) -> dict[str, list[list[Any]]]:
    names = ("totals", "log_probs", "tokens", "parents", "is_end", "is_finished", "kept")
    return {name: getattr(step, name).tolist() for name in names}


def _row(step: dict[str, list[list[Any]]], row: int) -> dict[str, list[Any]]:
    return {name: values[row] for name, values in step.items()}


def _build_tree(steps: list[dict[str, list[Any]]]) -> list[TreeNode]:
    nodes: list[TreeNode] = []
    beams: list[int | None] = [None] * (len(steps[0]["kept"]) if steps else 0)
    for step in steps:
        finished = {index for index, value in enumerate(step["is_finished"]) if value}
        active = {index for index in step["kept"] if not step["is_end"][index]}
        numbers: dict[int, int] = {}
        for index in sorted(finished | active):
            if step["totals"][index] == float("-inf"):
                continue
            parent = beams[step["parents"][index]]
            before = () if parent is None else nodes[parent].tokens
            numbers[index] = len(nodes)
            nodes.append(
                TreeNode(
                    parent=parent,
                    tokens=(*before, step["tokens"][index]),
                    log_prob=step["log_probs"][index],
                    total=step["totals"][index],
                    is_finished=index in finished,
                )
            )
        beams = [numbers.get(index) for index in step["kept"]]
    return nodes
