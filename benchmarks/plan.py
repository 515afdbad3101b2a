"""Plans of experiments: TOML files in `benchmarks/plans`."""

import operator
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

PLANS = Path(__file__).parent / "plans"
RESULTS = Path(__file__).parent.parent / "docs" / "results"

Table = dict[str, Any]

_RUN = re.compile(r"\{run:([^}]+)\}")
_VARIABLE = re.compile(r"\{(\w+)\}")


@dataclass(frozen=True)
class Run:
    """One model to train."""

    name: str
    recipe: str
    data: tuple[str, ...]
    overrides: tuple[str, ...] = ()
    """Settings; `{runs}` stands for the folder of all experiments' run folders."""
    seed: int = 1
    needs: tuple[str, ...] = ()
    """Runs that must be finished before, as `EXPERIMENT/FOLDER`."""

    @property
    def folder(self) -> str:
        """The name of its run folder."""
        return f"{self.name}-seed{self.seed}".replace(" ", "-").replace(",", "")


@dataclass(frozen=True)
class Plan:
    """One experiment: what is trained, what is gathered from it, what must hold, its page."""

    name: str
    title: str
    runs: list[Run]
    page: str = ""
    """Markdown with placeholders; a table of scores if empty."""
    shown_in: str = ""
    """The plan whose page shows the results, if not one of its own."""
    gather: Table = field(default_factory=dict)
    """Extractors that run on each finished run, with their argument."""
    join: Table = field(default_factory=dict)
    """Extractors that run on all finished runs together, with their argument."""
    keep: Table = field(default_factory=dict)
    """Scores, test groups, settings and curve columns that the result file holds."""
    expect: list[Table] = field(default_factory=list)
    prepare: Table = field(default_factory=dict)
    """Steps that write data files before training, with their argument."""
    benchmark: str = ""
    """The function of `measure.py` that replaces training."""
    results: list[str] = field(default_factory=list)
    """Result files of the page, if not one with the plan's name."""


def read_plan(path: Path) -> Plan:
    """Read a plan and expand its matrices."""
    value = tomllib.loads(path.read_text(encoding="utf-8"))
    if base := value.pop("base", ""):  # the plan that this one changes
        text = path.with_name(f"{base}.toml").read_text(encoding="utf-8")
        value = {**tomllib.loads(text), **value}
    common = value.pop("overrides", [])
    runs = [run for table in value.pop("runs", []) for run in _expand(path.stem, table, common)]
    return Plan(name=path.stem, runs=runs, **value)


def read_plans(folder: Path = PLANS) -> dict[str, Plan]:
    """Read every plan of a folder, by name."""
    return {path.stem: read_plan(path) for path in sorted(folder.glob("*.toml"))}


def _expand(experiment: str, table: Table, common: Sequence[str]) -> Iterator[Run]:
    """Yield a run for each combination of the matrix and each seed."""
    choices = [
        [value if isinstance(value, dict) else {key: value} for value in values]
        for key, values in table.get("matrix", {}).items()
    ]
    for chosen in product(*choices):
        variables = {key: value for choice in chosen for key, value in choice.items()}
        words = [*common, *table.get("overrides", [])]
        words += [word for choice in chosen for word in choice.get("overrides", [])]
        words = [_fill(word, variables) for word in words]
        needs = [_needed(experiment, name) for word in words for name in _RUN.findall(word)]
        words = [_RUN.sub(lambda m: f"{{runs}}/{_needed(experiment, m[1])}", w) for w in words]
        recipe = _fill(table.get("recipe", "{recipe}"), variables)
        name = _fill(table.get("name", recipe), {"recipe": recipe, **variables})
        data = [_fill(word, variables) for word in variables.get("data", table.get("data"))]
        for seed in variables.get("seeds", table.get("seeds", [1])):
            yield Run(name, recipe, tuple(data), tuple(words), seed, tuple(needs))


def _fill(text: str, variables: Mapping[str, Any]) -> str:
    """Replace the placeholders that name a variable; others stay."""
    return _VARIABLE.sub(lambda match: str(variables.get(match[1], match[0])), text)


def _needed(experiment: str, name: str) -> str:
    """Return the folder of a run that another one refers to; its first seed."""
    other, _, run = name.rpartition("/")
    return f"{other or experiment}/{Run(run, '', ()).folder}"


def check(expectation: Mapping[str, Any], runs: Sequence[Mapping[str, Any]]) -> tuple[str, bool]:
    """Return an expectation as a sentence with the measured values, and whether it holds.

    It has `run`, `metric`, and a bound (`at_least`, `at_most`) or another run (`above`, `below`).
    """
    metric = expectation["metric"]
    value = _mean_score(runs, expectation["run"], metric)
    kind = next(key for key in BOUNDS if key in expectation)
    words, holds = BOUNDS[kind]
    bound = expectation[kind]
    other = _mean_score(runs, bound, metric) if isinstance(bound, str) else float(bound)
    named = f"{bound} ({other:.1f})" if isinstance(bound, str) else f"{bound:g}"
    claim = f"{metric} of {expectation['run']} ({value:.1f}) is {words} {named}"
    return claim, holds(value, other)


BOUNDS: dict[str, tuple[str, Callable[[float, float], bool]]] = {
    "at_least": ("at least", operator.ge),
    "at_most": ("at most", operator.le),
    "above": ("above that of", operator.gt),
    "below": ("below that of", operator.lt),
}


def _mean_score(runs: Sequence[Mapping[str, Any]], name: str, metric: str) -> float:
    named = [run["test"]["scores"] for run in runs if run["name"] == name]
    values = [scores[metric]["value"] for scores in named if metric in scores]
    if not values:
        raise LookupError(f"No run is named '{name}' and has the metric '{metric}'.")
    return float(sum(values) / len(values))
