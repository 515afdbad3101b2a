"""`regard predict`: one line in, one line out, order kept."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from regard.cli.arguments import split_words
from regard.cli.options import Device, Rerank, RerankWeight, Run

if TYPE_CHECKING:
    from regard.search.settings import SearchConfig
    from regard.tasks.base import Task
    from regard.tasks.prediction import Prediction

CHUNK = 2_000
"""Lines translated together; what has been read before is already printed."""


def predict(
    run: Run,
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILE] [search.key=value ...]",
            help="A file, or - for standard input; then settings of the search.",
        ),
    ] = None,
    beam: Annotated[int | None, typer.Option(help="Beams; 1 is greedy search.")] = None,
    nbest: Annotated[int, typer.Option(help="Answers a line.")] = 1,
    prefix: Annotated[str, typer.Option(help="What every answer begins with.")] = "",
    chunk: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS", help="Hear recordings in parts of so many seconds, however long."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
    out: Annotated[
        Path | None,
        typer.Option(help="A folder for answers that are images; their paths are told."),
    ] = None,
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
    from functools import partial
    from itertools import islice

    from regard.core.errors import ConfigError
    from regard.runs.folder import load
    from regard.runs.predict import answer_readable
    from regard.runs.reranking import answering
    from regard.tasks.base import Generates, search_with
    from regard.tasks.reading import read_inputs

    (file,), settings = split_words(words or [], most_paths=1, default="-")
    task = load(run, device)
    reverse = load(rerank, device) if rerank else None
    if reverse and beam is not None:
        # Where beams say how many candidates are drawn, they are not idle.
        settings, beam = [*settings, f"search.beams={beam}"], None
    answer = answering(task, reverse, rerank_weight)
    search = search_with(task, beams=beam, num_best=nbest, words=settings)
    if prefix and search is None:
        raise ConfigError(
            "`--prefix` is for models that write their answer, but the task of this run is "
            f"'{task.recipe.task}'. Leave it out."
        )
    _check_folder(task, out)
    lines = read_inputs(file, task.recipe)
    if chunk is not None:
        if nbest > 1 or prefix or rerank:
            raise ConfigError(
                "`--chunk` gives one answer made of many, so it cannot be joined with `--nbest`, "
                "`--prefix` or `--rerank`. Leave one of them out."
            )
        _print_transcripts(task, list(lines), seconds=chunk, search=search, as_json=as_json)
        return
    reply = partial(answer, num_best=nbest)
    if isinstance(task, Generates):
        reply = partial(reply, search=search, prefix=prefix)
    number = 0
    while together := list(islice(lines, CHUNK)):
        answers = answer_readable(reply, together, config=task.recipe.data)
        for source, found in zip(together, answers, strict=True):
            number += 1
            if out is not None:
                path = out / f"{number:05}-{Path(source).stem}.png"
                found = [_keep_image(one, path) for one in found]
            if as_json:
                row = {"source": source, "predictions": [one.to_dict() for one in found]}
                print(json.dumps(row, ensure_ascii=False))
            else:
                _print_answers(found, number if nbest > 1 else None)


def _check_folder(task: "Task[Any]", out: Path | None) -> None:
    """Raise where images have no folder to go to, or a folder would stay empty."""
    from regard.core.errors import ConfigError
    from regard.tasks.base import GeneratesImages

    draws = isinstance(task, GeneratesImages)
    if draws and out is None:
        raise ConfigError("The answers are images, which need a folder. Name one with `--out`.")
    if out is None:
        return
    if not draws:
        raise ConfigError(
            "`--out` is for models that answer with images, but the task of this run is "
            f"'{task.recipe.task}'. Leave it out."
        )
    if out.exists() and not out.is_dir():
        raise ConfigError(f"`--out` must be a folder, but {out} is a file.")
    out.mkdir(parents=True, exist_ok=True)


def _print_answers(found: "list[Prediction]", number: int | None) -> None:
    """Print answers, each with the number of its line and its log-probability, if it has one."""
    if not found and number is None:
        print()  # It keeps the place of what cannot be read.
    for one in found:
        print(*([] if number is None else [number, f"{one.log_prob:.4f}"]), one.text, sep="\t")


def _keep_image(found: "Prediction", path: Path) -> "Prediction":
    """Write an answer's image, where it is one, and return the answer with the path as its text."""
    from dataclasses import replace

    from PIL import Image

    if found.image is None:
        return found
    Image.fromarray(found.image).save(path)
    return replace(found, text=str(path))


def _print_transcripts(
    task: "Task[Any]",
    references: Sequence[str],
    *,
    seconds: float,
    search: "SearchConfig | None",
    as_json: bool,
) -> None:
    """Print what is heard in recordings of any length, a line each."""
    from regard.runs.long_audio import join, transcribe_all

    heard = transcribe_all(task, references, seconds=seconds, search=search)
    for reference, parts in zip(references, heard, strict=True):
        if not as_json:
            print(join(parts))
            continue
        spans = [
            {"begin": part.chunk.begin, "end": part.chunk.end, "text": part.prediction.text}
            for part in parts
        ]
        row = {"source": reference, "text": join(parts), "parts": spans}
        print(json.dumps(row, ensure_ascii=False))
