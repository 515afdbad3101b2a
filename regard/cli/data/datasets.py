"""`regard data`: list, show, download and align data sets."""

from typing import Annotated

import typer

from regard.cli.analysis.align import GoldFile, GoldOffset, find_gold, require_texts
from regard.cli.arguments import split_columns
from regard.cli.commands import Command, Group
from regard.cli.completion import complete_data
from regard.cli.options import Columns, Data, JsonLines, OnError, OutFile, SecondData, Seed
from regard.cli.output import output_to, print_json

app = typer.Typer(help="List, show, download and align data sets.", cls=Group)


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


@app.command("links", cls=Command)
def links(
    data: Data,
    data2: SecondData = None,
    columns: Columns = None,
    reverse: Annotated[
        bool, typer.Option("--reverse", help="Link each source word to a target word instead.")
    ] = False,
    gold: GoldFile = None,
    gold_offset: GoldOffset = None,
    out: OutFile = None,
    seed: Seed = 0,
) -> None:
    """Align the words of sentence pairs without a model, in Pharaoh format.

    Each target word is linked to its most probable source word or to none, by IBM model 1 with a
    prior for the diagonal, estimated on the pairs themselves. Words are separated by whitespace. Of
    a built-in data set, the training part is aligned. With --gold, the error rate is printed.
    """
    from functools import partial

    from regard.data.datasets.catalog import find_data
    from regard.data.modality import read_any_pairs
    from regard.data.splits import Splits
    from regard.data.text.word_aligner import align_words
    from regard.interpret.alignment_data import read_separated
    from regard.metrics.text.alignment import format_links

    paths = (data,) if data2 is None else (data, data2)
    examples = read_separated(paths)
    is_separated = examples is not None
    if examples is None:
        read = partial(read_any_pairs, columns=split_columns(columns) or ())
        loaded = find_data(data, data2, seed=seed, read=read)
        examples = list(loaded.train if isinstance(loaded, Splits) else loaded)
    require_texts(examples)
    sides = [(example.source.split(), example.target.split()) for example in examples]
    if reverse:
        found = align_words([(target, source) for source, target in sides])
        aligned = [{(i, j) for j, i in pair} for pair in found]
    else:
        aligned = [set(pair) for pair in align_words(sides)]
    if gold is not None:
        from regard.interpret.alignment import as_row

        expected, _ = find_gold(
            examples, gold, gold_offset, words="whitespace", is_separated=is_separated
        )
        assert expected is not None
        rate = as_row(expected.error_rate(aligned))
        print(f"AER {rate[0]}, precision {rate[1]}, recall {rate[2]}")
    if gold is None or out is not None:
        with output_to(out):
            print(*map(format_links, aligned), sep="\n")


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
