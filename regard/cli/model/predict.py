"""`regard predict`: one prediction per line, in input order."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from regard.cli.arguments import split_arguments
from regard.cli.options import Beam, Device, Rerank, RerankWeight, Run
from regard.cli.output import print_json


def predict(
    run: Run,
    arguments: Annotated[
        list[str] | None,
        Argument(
            metavar="[FILE] [search.key=value ...]",
            help="A file, or - for standard input; then search settings.",
        ),
    ] = None,
    beam: Beam = None,
    nbest: Annotated[int, Option(help="Predictions per line.")] = 1,
    prefix: Annotated[str, Option(help="The beginning of every prediction.")] = "",
    chunk: Annotated[
        float | None, Option(metavar="SECONDS", help="Maximum length of audio segments.")
    ] = None,
    as_json: Annotated[bool, Option("--json", help="One JSON object per line.")] = False,
    out: Annotated[Path | None, Option(help="A folder for predicted images.")] = None,
    rerank: Rerank = None,
    rerank_weight: RerankWeight = None,
    device: Device = "auto",
) -> None:
    """Predict a target for every line of a file.

    With --nbest above 1, each prediction is a line: line number, log-probability, text.
    With search.temperature above 0, predictions are sampled.
    With --rerank, there are as many candidates as beams, but at least 10, also when sampling.
    Files that cannot be read get an empty line, and their number is logged.
    With --chunk, recordings are cut at pauses; --json then has the text of every segment.
    """
    from regard.runs.folder import load
    from regard.runs.predict import PredictionPipeline, PredictOptions
    from regard.tasks.reading import read_inputs

    (file,), overrides = split_arguments(arguments or [], max_paths=1, default="-")
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
    sources = read_inputs(file, task.recipe, labels=task.label_names)
    for number, result in enumerate(pipeline(sources), start=1):
        if as_json:
            print_json(result.to_dict(), indent=None)
        elif nbest > 1:
            for prediction in result.predictions:
                print(number, f"{prediction.log_prob:.4f}", prediction.text, sep="\t")
        else:
            print(*result.texts, sep="\n")
