"""`regard evaluate`: every score with its signature."""

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from regard.cli.arguments import split_columns
from regard.cli.options import Columns, Data, Device, Run, SecondData

if TYPE_CHECKING:
    from regard.tasks.recipe import BaseRecipe

MOST_ROWS = 10
"""Errors that are printed; `--json` has more of them."""

NOTHING = "∅"


def evaluate(
    run: Run,
    data: Data,
    data2: SecondData = None,
    columns: Columns = None,
    beam: Annotated[int | None, typer.Option(help="Beams; 1 is greedy search.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Everything as one JSON object.")] = False,
    device: Device = "auto",
) -> None:
    """Answer a test set and measure the answers; of a named data set, its test part."""
    from regard.runs.folder import describe_making, load
    from regard.tasks.base import Generates, search_with

    task = load(run, device)
    paths = (data,) if data2 is None else (data, data2)
    recipe = task.recipe if columns is None else _with_columns(task.recipe, columns)
    examples = task.read_side(paths, "test", config=recipe.data)
    search = search_with(task, beams=beam)
    if isinstance(task, Generates) and search is not None:
        task = task.with_search(search)
    evaluation = task.evaluate(examples, num_bootstrap=1000)
    if as_json:
        making = describe_making(task.device)
        print(json.dumps({**making, **evaluation.to_dict()}, ensure_ascii=False, indent=2))
        return
    for result in evaluation.results.values():
        print(result)
    for title, groups in (
        ("By length", evaluation.by_length),
        ("By tag", evaluation.by_tag),
        (
            "Most missed (times in the right answers, % of them missed)",
            evaluation.by_unit[:MOST_ROWS],
        ),
    ):
        if groups:
            print(f"\n{title}:")
        for group in groups:
            values = "  ".join(f"{name} {r.value:6.2f}" for name, r in group.results.items())
            print(f"  {group.name:<14} {group.count:>6,}  {values}")
    if evaluation.edits:
        print("\nMost frequent errors (right → written):")
    for edit in evaluation.edits[:MOST_ROWS]:
        print(f"  {edit.right or NOTHING} → {edit.written or NOTHING}  {edit.count:,}")


def _with_columns(recipe: "BaseRecipe", columns: str) -> "BaseRecipe":
    """Change which columns are read; what was trained on two may be measured on more references."""
    from regard.core.errors import ConfigError
    from regard.tasks.generation.recipe import DataConfig

    if not isinstance(recipe.data, DataConfig):
        raise ConfigError(
            "`--columns` is for models that write their answer, but the task of this run is "
            f"'{recipe.task}'. Leave it out."
        )
    return replace(recipe, data=replace(recipe.data, columns=split_columns(columns)))
