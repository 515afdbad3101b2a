"""`regard predict`: one line in, one line out, order kept."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from regard.cli.arguments import split_arguments
from regard.cli.options import Beam, Device, Rerank, RerankWeight, Run
from regard.cli.output import print_json_line


def predict(
    run: Run,
    words: Annotated[
        list[str] | None,
        Argument(
            metavar="[FILE] [search.key=value ...]",
            help="A file, or - for standard input; then settings of the search.",
        ),
    ] = None,
    beam: Beam = None,
    nbest: Annotated[int, Option(help="Predictions per line.")] = 1,
    prefix: Annotated[str, Option(help="The beginning of every prediction.")] = "",
    chunk: Annotated[
        float | None, Option(metavar="SECONDS", help="Cut recordings into parts this long.")
    ] = None,
    as_json: Annotated[bool, Option("--json", help="One JSON object per line.")] = False,
    out: Annotated[Path | None, Option(help="A folder for predicted images.")] = None,
    rerank: Rerank = None,
    rerank_weight: RerankWeight = None,
    device: Device = "auto",
) -> None:
    """Answer every line of a file.

    With --nbest above 1, each answer is a line of its own: line number, log-probability, text.
    Answers are drawn instead of searched for with search.temperature above 0.
    With --rerank there are as many candidates as beams, 10 at least, also where they are drawn.
    An image or the like that cannot be read among others has an empty line, and is counted.
    With --chunk a recording is cut where it is quiet; --json then has the text of every part.
    """
    from regard.runs.folder import load
    from regard.runs.predict import PredictionPipeline, PredictOptions
    from regard.tasks.reading import read_inputs

    (file,), overrides = split_arguments(words or [], max_paths=1, default="-")
    task = load(run, device)
    options = PredictOptions(
        beams=beam,
        num_best=nbest,
        prefix=prefix,
        overrides=tuple(overrides),
        chunk_seconds=chunk,
        image_folder=out,
        rerank_weight=rerank_weight,
    )
    pipeline = PredictionPipeline(task, options, reranker=load(rerank, device) if rerank else None)
    for number, found in enumerate(pipeline(read_inputs(file, task.recipe)), start=1):
        if as_json:
            print_json_line(found.to_dict())
        elif nbest > 1:
            for one in found.predictions:
                print(number, f"{one.log_prob:.4f}", one.text, sep="\t")
        else:
            print(*found.texts, sep="\n")
