"""`regard probe`: linear probes of each layer of a run's encoder."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from regard.cli.completion import complete_data
from regard.cli.options import OUT, Device, Json, OneRun
from regard.cli.output import print_json, print_table


def probe(
    run: OneRun,
    data: Annotated[
        str | None,
        Argument(
            metavar="[FILE|DATA]",
            help="Texts; the run's test set if not given.",
            autocompletion=complete_data,
        ),
    ] = None,
    as_json: Json = False,
    out: Annotated[
        Path | None, Option(*OUT, help="An .html page with the texts and probes.")
    ] = None,
    device: Device = "auto",
) -> None:
    """Print the accuracy of linear probes of each layer.

    Probes predict text length and word order. An untrained encoder is the baseline: it shows the
    effect of the architecture alone.
    """
    from regard.core.files import check_suffix
    from regard.interpret import probes
    from regard.interpret.probe_report import table_rows, write_page
    from regard.runs.folder import load_one, read_test_set
    from regard.runs.provenance import describe_provenance
    from regard.tasks.reading import read_inputs_or_test_split

    if out is not None:
        check_suffix(out, "--out", ".html")
    task = load_one(run, device)
    if data is None:
        texts = [example.source for example in read_test_set(run)]
    else:
        texts = read_inputs_or_test_split(
            data, task.recipe, read_split=task.read_split, labels=task.label_names
        )
    result = probes.probe(task, texts)
    if out is not None:
        write_page(out, task, texts, results=result, title=f"Text representations of {run}")
    if as_json:
        print_json({**describe_provenance(task.device), **result.to_dict()})
        return
    print_table(*table_rows(result))
    print(
        f"Probes were trained on {result.num_learned:,} texts and tested on {result.num_tested:,} "
        "others; control: the same encoder before training."
    )
    if out is not None:
        print(out)
