"""`regard probe`: what can be read off each layer of a run's encoder."""

import json
from pathlib import Path
from typing import Annotated

import typer

from regard.cli.options import Device, OneRun


def probe(
    run: OneRun,
    data: Annotated[
        str | None,
        typer.Argument(
            metavar="[FILE|DATA]",
            help="Texts to probe with: a file or a data set's name; the run's own test data "
            "without it.",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Everything as one JSON object.")] = False,
    out: Annotated[
        Path | None,
        typer.Option(help="A page to write, .html: the texts as points, and the probes as curves."),
    ] = None,
    device: Device = "auto",
) -> None:
    """Print how well linear probes tell length and word order from the states of each layer.

    Beside it, the same of an encoder that has not learned: what the architecture gives.
    """
    import math

    from rich.console import Console
    from rich.table import Table

    from regard.core.errors import ConfigError
    from regard.data.text.readers import read_examples
    from regard.interpret.probes import MEASURES
    from regard.interpret.probes import probe as measure
    from regard.interpret.representations import write_page
    from regard.runs import folder as runs
    from regard.tasks.reading import read_listed

    if out is not None and out.suffix != ".html":
        raise ConfigError(f"`--out` must end in .html, but is '{out}'.")
    task = runs.load_one(run, device)
    if data is None:
        columns = getattr(task.recipe.data, "columns", ())
        examples = read_examples(Path(run) / runs.TEST, columns=columns)
        texts = [example.source for example in examples]
    else:
        texts = read_listed(data, task.recipe, read_side=task.read_side)
    found = measure(task, texts)
    if out is not None:
        write_page(out, task, texts, found=found, title=f"What {run} makes of texts")
    if as_json:
        print(
            json.dumps(
                {**runs.describe_making(task.device), **found.to_dict()},
                indent=2,
                ensure_ascii=False,
            )
        )
        return
    table = Table(box=None)
    table.add_column("")
    for name in MEASURES:
        table.add_column(name, justify="right")
        table.add_column("fresh", justify="right")
    for name, learned, fresh in zip(found.names, found.layers, found.control, strict=True):
        cells = [values[measure] for measure in MEASURES for values in (learned, fresh)]
        told = ["–" if math.isnan(value) else f"{value:.2f}" for value in cells]
        table.add_row(name, *told)
    Console().print(table)
    print(
        f"Probes learned from {found.num_learned:,} texts and were tested on {found.num_tested:,} "
        "others; fresh: the same encoder before it learned."
    )
    if out is not None:
        print(out)
