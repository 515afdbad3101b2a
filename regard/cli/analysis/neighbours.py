"""`regard neighbours`: the lines of a file that an encoder takes to be alike."""

from typing import Annotated

import typer

from regard.cli.analysis.embed import Layer, Listed, Pooling
from regard.cli.options import Device, OneRun


def neighbours(
    run: OneRun,
    data: Listed,
    query: Annotated[
        str | None,
        typer.Option(
            help="What to look for, or - for the lines of standard input; each line of the file "
            "among the others without it."
        ),
    ] = None,
    num: Annotated[int, typer.Option("-k", help="Neighbours of each.")] = 5,
    layer: Layer = None,
    pooling: Pooling = None,
    device: Device = "auto",
) -> None:
    """Print the nearest lines by the cosine of their vectors: the cosine, then the line.

    Of several queries, each row begins with its own. Equal lines count once, empty ones not.
    """
    from regard.core.config import at_least
    from regard.data.text.readers import read_sources
    from regard.interpret.neighbours import find_neighbours
    from regard.runs.folder import load_one
    from regard.tasks.reading import read_listed

    at_least("-k", num, 1)
    task = load_one(run, device)
    lines = read_listed(data, task.recipe, read_side=task.read_side)
    queries = None
    if query is not None:
        queries = list(read_sources(query)) if query == "-" else [query]
    found = find_neighbours(task, lines, queries, num=num, layer=layer, pooling=pooling)
    for asked, near in found:
        for neighbour in near:
            start = () if queries is not None and len(queries) == 1 else (asked,)
            print(*start, f"{neighbour.similarity:.4f}", neighbour.source, sep="\t")
