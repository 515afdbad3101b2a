"""`regard score`: the log-probability of given targets."""

import json
from typing import Annotated

import typer

from regard.cli.options import Data, Device, Run, SecondData


def score(
    run: Run,
    data: Data,
    data2: SecondData = None,
    as_json: Annotated[bool, typer.Option("--json", help="With every piece's own share.")] = False,
    device: Device = "auto",
) -> None:
    """Print the log-probability of each pair's target, one line a pair, order kept."""
    from regard.runs.folder import load

    task = load(run, device)
    paths = (data,) if data2 is None else (data, data2)
    examples = task.read_side(paths, "test", config=task.recipe.data)
    for example, scored in zip(examples, task.score(examples), strict=True):
        if as_json:
            values = {"source": example.source, **scored.to_dict()}
            print(json.dumps(values, ensure_ascii=False))
        else:
            print(f"{scored.log_prob:.4f}")
