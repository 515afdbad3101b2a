"""`regard predict`: one line in, one line out, order kept."""

import json
from typing import Annotated

import typer

from regard.cli.options import Device, Run

CHUNK = 2_000
"""Lines translated together; what has been read before is already printed."""


def predict(
    run: Run,
    file: Annotated[str, typer.Argument(help="A file, or - for standard input.")] = "-",
    beam: Annotated[int | None, typer.Option(help="Beams; 1 is greedy search.")] = None,
    nbest: Annotated[int, typer.Option(help="Answers a line.")] = 1,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
    device: Device = "auto",
) -> None:
    """Answer every line of a file.

    With --nbest above 1, each answer is a line of its own: line number, log-probability, text.
    """
    import dataclasses
    from itertools import islice

    from regard.data.readers import read_sources
    from regard.tasks.runs import load

    task = load(run, device)
    search = task.search_with(beams=beam, num_best=nbest)
    lines = iter(read_sources(file))
    number = 0
    while chunk := list(islice(lines, CHUNK)):
        for source, found in zip(
            chunk, task.predict(chunk, search=search, num_best=nbest), strict=True
        ):
            number += 1
            if as_json:
                answers = [dataclasses.asdict(prediction) for prediction in found]
                print(json.dumps({"source": source, "predictions": answers}, ensure_ascii=False))
            elif nbest == 1:
                print(found[0].text)
            else:
                for prediction in found:
                    print(number, f"{prediction.log_prob:.4f}", prediction.text, sep="\t")
