"""`regard probe`: what can be read off each layer of a run's encoder."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from regard.cli.options import Device, Json, OneRun
from regard.cli.output import print_json, print_table


def probe(
    run: OneRun,
    data: Annotated[
        str | None, Argument(metavar="[FILE|DATA]", help="Texts; the run's test set if not given.")
    ] = None,
    as_json: Json = False,
    out: Annotated[Path | None, Option(help="An .html page with the texts and the probes.")] = None,
    device: Device = "auto",
) -> None:
    """Print how well linear probes tell length and word order from the states of each layer.

    Beside it, the same of an encoder that has not learned: what the architecture gives.
    """
    from regard.core.files import check_suffix
    from regard.interpret.probe_report import table_rows, write_page
    from regard.interpret.probes import probe as measure
    from regard.runs.folder import describe_provenance, load_one, read_test_sources
    from regard.tasks.reading import read_listed

    if out is not None:
        check_suffix(out, "--out", ".html")
    task = load_one(run, device)
    if data is None:
        texts = read_test_sources(run, task)
    else:
        texts = read_listed(data, task.recipe, read_side=task.read_side)
    found = measure(task, texts)
    if out is not None:
        write_page(out, task, texts, found=found, title=f"What {run} makes of texts")
    if as_json:
        print_json({**describe_provenance(task.device), **found.to_dict()})
        return
    print_table(*table_rows(found))
    print(
        f"Probes learned from {found.num_learned:,} texts and were tested on {found.num_tested:,} "
        "others; fresh: the same encoder before it learned."
    )
    if out is not None:
        print(out)
