"""The beam tree of a sentence: all hypotheses that a beam search kept or finished."""

import math
from dataclasses import asdict, dataclass
from typing import Any

from regard.core.errors import ConfigError
from regard.plots.tree import Branch, Status
from regard.search.settings import SearchConfig
from regard.search.tree import record_trees
from regard.tasks.base import Generates, Task
from regard.tasks.decoding.alternatives import HasScorers
from regard.tasks.prediction import Prediction


@dataclass(frozen=True, slots=True)
class BeamNode:
    """A hypothesis, by its last token."""

    id: int
    """Index in the list of nodes."""
    parent: int | None
    """Node it continues; None at the first step."""
    step: int
    """Number of its tokens."""
    token: str
    """Its last token."""
    log_prob: float
    """Log-probability of the token in the search."""
    total: float
    """Log-probability of the hypothesis in the search."""
    is_finished: bool
    """Whether it has ended as a result."""
    rank: int | None
    """Rank among the predictions, from 1 = the best; None if not finished or not among the best."""


@dataclass(frozen=True, slots=True)
class BeamTree:
    """All hypotheses that the search for one source kept or finished."""

    source: str
    """The source."""
    predictions: tuple[Prediction, ...]
    """The results in descending order, at most as many as beams."""
    nodes: tuple[BeamNode, ...]
    """The hypotheses in the order of steps, each after its parent."""

    @property
    def branches(self) -> tuple[Branch, ...]:
        """The tree for a plot."""
        statuses: dict[int, Status] = {}
        for node in self.nodes:
            if node.is_finished:
                status: Status = "result" if node.rank == 1 else "kept"
                at: int | None = node.id
                while at is not None and statuses.get(at) != "result":
                    statuses[at] = status
                    at = self.nodes[at].parent
        # Children come after their parents, so each branch is complete before its parent is built.
        children: dict[int | None, list[Branch]] = {}
        for node in reversed(self.nodes):
            branch = Branch(
                node.token.removeprefix("▁") or node.token,
                math.exp(node.log_prob),
                math.exp(node.total),
                statuses.get(node.id, "pruned"),
                tuple(reversed(children.pop(node.id, []))),
                f"#{node.rank}" if node.rank else "",
            )
            children.setdefault(node.parent, []).append(branch)
        return tuple(reversed(children.get(None, [])))

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "source": self.source,
            "prediction": self.predictions[0].text,
            "nodes": [asdict(node) for node in self.nodes],
        }


def find_beam_tree(
    task: Task[Any], source: str, *, search: SearchConfig | None = None, prefix: str = ""
) -> BeamTree:
    """Search for the target of one source and return the beam tree.

    Args:
        task: A task that generates tokens.
        source: The raw source.
        search: The search settings; those of the recipe if not given.
        prefix: Text that every target begins with.
    """
    if not isinstance(task, Generates) or not isinstance(task, HasScorers):
        raise ConfigError(
            "A beam tree is for models that generate tokens, but the task of this run is "
            f"'{task.recipe.task}'."
        )
    config = search or task.search
    if config.is_sampling:
        raise ConfigError(
            "A beam tree needs beam search, but `search.temperature` is "
            f"{config.temperature:g}. Set it to 0."
        )
    with record_trees() as recorder:
        (predictions,) = task.predict([source], num_best=config.beams, search=config, prefix=prefix)
    if not recorder.num_searches:
        raise ConfigError(
            f"A beam tree needs a source to search for and a beam search, but '{source}' was "
            "predicted without one. Name a sentence, and leave `search.ctc_weight` below 1 or "
            "take more than one beam."
        )
    ranks: dict[tuple[int, ...], int] = {}
    for rank, prediction in enumerate(predictions, start=1):
        ranks.setdefault(prediction.token_ids, rank)
    (nodes,) = recorder.trees()
    return BeamTree(
        source=source,
        predictions=tuple(predictions),
        nodes=tuple(
            BeamNode(
                id=index,
                parent=node.parent,
                step=len(node.tokens),
                token=task.output_tokenizer.token(node.tokens[-1]),
                log_prob=node.log_prob,
                total=node.total,
                is_finished=node.is_finished,
                rank=ranks.get(node.tokens) if node.is_finished else None,
            )
            for index, node in enumerate(nodes)
        ),
    )
