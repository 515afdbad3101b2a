"""`regard data`: what data sets there are, what is in them, and getting them."""

from typing import Annotated

import typer

from regard.cli.options import Data, SecondData

app = typer.Typer(help="List, look at and fetch data sets.", no_args_is_help=True)


@app.command("list")
def list_() -> None:
    """List the data sets that have a name."""
    from regard.data.datasets.catalog import DATASETS

    width = max(map(len, DATASETS))
    for name, dataset in DATASETS.items():
        print(f"{name:<{width}} {dataset.description}")


@app.command("show")
def show(
    data: Data,
    data2: SecondData = None,
    num: Annotated[int, typer.Option(help="How many pairs.")] = 10,
) -> None:
    """Print some pairs, with further references, alignment and tags where there are any."""
    from regard.data.datasets.catalog import find_data
    from regard.data.modality import read_any_pairs
    from regard.data.splits import Splits

    found = find_data(data, data2, read=read_any_pairs)
    examples = found.train if isinstance(found, Splits) else found
    if isinstance(found, Splits):
        print(f"# {found.note}")
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


@app.command("get")
def get(name: Annotated[str, typer.Argument(help="A data set's name, such as multi30k.")]) -> None:
    """Fetch a data set, if need be, and say what is in it."""
    from regard.core.errors import DataError
    from regard.data.datasets.catalog import find_data
    from regard.data.splits import Splits

    found = find_data(name)
    if not isinstance(found, Splits):
        raise DataError(f"'{name}' is a file, not a data set's name; there is nothing to fetch.")
    sizes = f"{len(found.train):,} train, {len(found.valid):,} valid, {len(found.test):,} test"
    print(f"{name}: {sizes}. {found.note}")
