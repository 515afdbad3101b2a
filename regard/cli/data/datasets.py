"""`regard data`: list, show and download data sets."""

from typing import Annotated

import typer

from regard.cli.arguments import split_columns
from regard.cli.commands import Command, Group
from regard.cli.completion import complete_data
from regard.cli.options import Columns, Data, JsonLines, OnError, SecondData, Seed
from regard.cli.output import print_json

app = typer.Typer(help="List, show and download data sets.", cls=Group)


@app.command("list", cls=Command)
def list_(as_json: JsonLines = False) -> None:
    """List the built-in data sets, and how each is obtained.

    They are generated, part of a package, downloaded, or read from the folder REGARD_DATA.
    """
    import shutil
    import textwrap
    from dataclasses import asdict

    from regard.data.datasets.catalog import DATASETS

    width = max(map(len, DATASETS))
    access_width = max(len(dataset.access) for dataset in DATASETS.values())
    columns = max(60, shutil.get_terminal_size((100, 0)).columns)
    for name, dataset in DATASETS.items():
        if as_json:
            row = {key: value for key, value in asdict(dataset).items() if key != "loader"}
            print_json({"name": name, **row}, indent=None)
            continue
        first = f"{name:<{width}}  {dataset.access:<{access_width}}  "
        print(
            textwrap.fill(
                dataset.description,
                columns,
                initial_indent=first,
                subsequent_indent=" " * len(first),
                break_on_hyphens=False,
            )
        )


@app.command("show", cls=Command)
def show(
    data: Data,
    data2: SecondData = None,
    columns: Columns = None,
    on_error: OnError = None,
    num: Annotated[int, typer.Option("--num", "-n", help="Number of pairs.")] = 10,
    seed: Seed = 0,
) -> None:
    """Print some pairs.

    Lines that begin with # hold further references, word alignment (source-target) and tags, if
    there are any.
    """
    from functools import partial

    from regard.core.tables import pick
    from regard.data.datasets.catalog import find_data
    from regard.data.modality import read_any_pairs
    from regard.data.splits import Splits
    from regard.data.text.readers import ON_ERROR

    roles = split_columns(columns) or ()
    behaviour = pick(ON_ERROR, on_error or "stop", "--on-error")
    read = partial(read_any_pairs, columns=roles, on_error=behaviour)
    loaded = find_data(data, data2, seed=seed, read=read)
    examples = loaded.train if isinstance(loaded, Splits) else loaded
    if isinstance(loaded, Splits):
        print(f"# {loaded.note}")
    for example in examples[:num]:
        texts = example.source if isinstance(example.source, tuple) else (example.source,)
        print(*texts, example.target, sep="\t")
        for reference in example.references:
            print(f"#   or: {reference}")
        if example.alignment is not None:
            links = " ".join(f"{source}-{target}" for source, target in example.alignment)
            print(f"#   {links}")
        if example.tags:
            print(f"#   {', '.join(example.tags)}")


@app.command("get", cls=Command)
def get(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME",
            help="A data set's name, such as multi30k.",
            autocompletion=complete_data,
        ),
    ],
) -> None:
    """Download a built-in data set if necessary, and print its sizes."""
    from regard.core.errors import DataError
    from regard.data.datasets.catalog import find_data
    from regard.data.splits import Splits

    splits = find_data(name)
    if not isinstance(splits, Splits):
        raise DataError(f"'{name}' is a file, not a data set's name; there is nothing to download.")
    sizes = f"{len(splits.train):,} train, {len(splits.valid):,} valid, {len(splits.test):,} test"
    print(f"{name}: {sizes}. {splits.note}")
