"""`regard neighbours`: nearest neighbours of sources by the cosine of their vectors."""

from typing import Annotated

from typer import Option

from regard.cli.arguments import split_columns
from regard.cli.options import Columns, Device, JsonLines, Layer, OneRun, OutFile, Pooling, Sources
from regard.cli.output import output_to, print_json


def neighbours(
    run: OneRun,
    data: Sources,
    query: Annotated[
        str | None, Option(help="A source, or - for standard input; every line if not given.")
    ] = None,
    columns: Columns = None,
    num: Annotated[int, Option("--num", "-n", "-k", help="Number of neighbours.")] = 5,
    layer: Layer = None,
    pooling: Pooling = None,
    as_json: JsonLines = False,
    out: OutFile = None,
    device: Device = "auto",
) -> None:
    """Print the nearest lines by the cosine of their vectors.

    A row holds the cosine and the line; with several queries, it starts with the query. Duplicates
    and empty lines are dropped.
    """
    from regard.core.config import at_least
    from regard.data.text.lines import read_lines
    from regard.interpret.neighbours import find_neighbours
    from regard.runs.folder import load_one
    from regard.tasks.reading import read_inputs_or_test_split, with_columns

    at_least("-k", num, 1)
    task = load_one(run, device)
    recipe = with_columns(task.recipe, split_columns(columns), needs_target=False)
    lines = read_inputs_or_test_split(
        data, recipe, read_split=task.read_split, labels=task.label_names
    )
    queries = None
    if query is not None:
        queries = list(read_lines(query)) if query == "-" else [query]
    is_single = queries is not None and len(queries) == 1
    results = find_neighbours(task, lines, queries, num=num, layer=layer, pooling=pooling)
    with output_to(out):
        for source, nearest in results:
            for neighbour in nearest:
                if as_json:
                    print_json({"query": source, **vars(neighbour)}, indent=None)
                    continue
                row = (f"{neighbour.similarity:.4f}", neighbour.source)
                print(*(row if is_single else (source, *row)), sep="\t")
