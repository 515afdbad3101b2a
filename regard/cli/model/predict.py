"""`regard predict`: one prediction per line, in input order."""

import sys
from collections.abc import Callable, Iterable
from contextlib import redirect_stdout
from functools import partial
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from regard.cli.arguments import split_columns, split_search_arguments
from regard.cli.completion import complete_search
from regard.cli.options import (
    OUT,
    Beam,
    Columns,
    Device,
    JsonLines,
    Rerank,
    RerankWeight,
    Run,
    SearchSeed,
)
from regard.cli.output import print_json
from regard.core.errors import ConfigError
from regard.core.logging import logger

if TYPE_CHECKING:
    from regard.runs.prediction.predict import PredictionPipeline, SourcePredictions


def predict(
    run: Run,
    arguments: Annotated[
        list[str] | None,
        Argument(
            metavar="[SOURCE] [search.key=value ...]",
            help="A file, - for standard input, or a sentence; and search settings.",
            autocompletion=complete_search,
        ),
    ] = None,
    columns: Columns = None,
    beam: Beam = None,
    nbest: Annotated[int, Option(help="Predictions per line.")] = 1,
    prefix: Annotated[str, Option(help="The beginning of every prediction.")] = "",
    chunk: Annotated[
        float | None, Option(metavar="SECONDS", help="Maximum length of audio segments.")
    ] = None,
    as_json: JsonLines = False,
    alternatives: Annotated[
        int | None, Option(metavar="K", help="With --json, the K most likely tokens per position.")
    ] = None,
    tree: Annotated[
        Path | None,
        Option(metavar="FILE", help="For one sentence, a JSON file for the beam tree."),
    ] = None,
    out: Annotated[
        Path | None, Option(*OUT, help="A file for the predictions; for images, a folder.")
    ] = None,
    rerank: Rerank = None,
    rerank_weight: RerankWeight = None,
    resume: Annotated[
        bool,
        Option("--resume", help="Continue the predictions of an interrupted command in --out."),
    ] = False,
    glossary: Annotated[
        Path | None, Option(metavar="FILE", help="Terms and their translations, tab-separated.")
    ] = None,
    keep: Annotated[
        list[str] | None,
        Option(
            metavar="PATTERN",
            help="Parts of a source to keep: url, email, number, placeholder or a regular "
            "expression. May be repeated.",
        ),
    ] = None,
    forbid: Annotated[
        list[str] | None,
        Option(metavar="WORD", help="A word that no prediction contains. May be repeated."),
    ] = None,
    replace_unknown: Annotated[
        bool, Option("--replace-unknown", help="Replace unknown words by attended source words.")
    ] = False,
    seed: SearchSeed = None,
    engine: Annotated[
        str, Option(help="Library of the search: regard, or ctranslate2 for transformers.")
    ] = "regard",
    device: Device = "auto",
) -> None:
    """Predict a target for a sentence, or for every line of a file.

    An existing file or folder is read. Any other SOURCE is a sentence or a word, unless it is
    the name of a missing file: with a slash and a suffix such as .txt, or with one of them and
    without a space.
    Without SOURCE, every line of standard input is a source; predictions are printed as soon as
    no further line arrives.

    With --nbest above 1, each prediction is a line: line number, log-probability, text. They
    are in the order of the search: by log-probability / length ** search.length_penalty.
    With search.temperature above 0, predictions are sampled.
    With --rerank, there are as many candidates as beams, but at least 10, also when sampling.
    With several processes (`torchrun -m regard predict`), each predicts a part of the file, and
    --out names the file for all predictions.
    With --resume, a command that was killed or stopped continues where it ended, with the same
    arguments; until the end, predictions are in OUT.part.
    With --glossary and --keep, predictions contain the translations of terms and the kept parts
    of their sources; --json then lists which of them each prediction contains.
    With --alternatives, --json also has the most likely tokens at each position of a prediction,
    with their log-probabilities. With --tree, all hypotheses that beam search kept or finished are
    written to a file.
    Files that cannot be read get an empty line, and their number is logged.
    With --chunk, recordings are cut at pauses; --json then has the text of every segment.
    """
    from regard.data.text.lines import watching_position
    from regard.runs.folder import load
    from regard.runs.prediction.lexical import read_lexical_options
    from regard.runs.prediction.output import PartialOutput, check_resumed, describe_settings
    from regard.runs.prediction.predict import PredictionPipeline, PredictOptions
    from regard.runs.prediction.progress import SourceCounter
    from regard.runs.prediction.shares import check_shared, predict_shares
    from regard.runs.prediction.writing import print_predictions, write_predictions
    from regard.tasks.base import GeneratesImages
    from regard.tasks.sources import is_text, read_argument, takes_text
    from regard.training.distributed.joining import join_processes

    sources, overrides = split_search_arguments(arguments, max_paths=1, seed=seed)
    lexical = read_lexical_options(
        glossary=glossary,
        keep=keep or (),
        forbid=forbid or (),
        replace_unknown=replace_unknown,
    )
    _check_alternatives(alternatives, as_json=as_json)
    with join_processes(device) as processes:
        task = load(run, device)
        if engine != "regard":
            from regard.interop.engines import with_engine

            task = with_engine(
                task,
                engine,
                has_log_probs=as_json or nbest > 1,
                options={
                    "--rerank": rerank,
                    "--prefix": prefix,
                    "--glossary": glossary,
                    "--keep": keep,
                    "--forbid": forbid,
                    "--replace-unknown": replace_unknown,
                    "--alternatives": alternatives,
                    "--tree": tree,
                },
            )
        has_images = isinstance(task, GeneratesImages)
        if resume:
            check_resumed(out, has_images=has_images, num_processes=processes.num)
        options = PredictOptions(
            beams=beam,
            num_best=nbest,
            prefix=prefix,
            overrides=tuple(overrides),
            chunk_seconds=chunk,
            image_folder=out if has_images else None,
            rerank_weight=rerank_weight,
            lexical=lexical,
            alternatives=alternatives,
            tree=tree,
        )
        pipeline = PredictionPipeline(
            task, options, reranker=load(rerank, device) if rerank else None
        )
        if not sources and is_terminal():
            logger.info("Reading standard input, one source per line; Ctrl-D ends.")
        (source,) = sources or ["-"]
        shared_out = check_shared(task, source, out) if processes.num > 1 else None
        with watching_position() as position:
            texts = read_argument(
                source, task.recipe, labels=task.label_names, columns=split_columns(columns)
            )
        is_lines = takes_text(task.recipe)
        print_results = partial(
            _print,
            as_json=as_json,
            has_rows=nbest > 1,
            keeps_lines=is_lines and is_text(source),
        )
        if shared_out is not None:
            predict = partial(_predict_group, pipeline, print_results)
            predict_shares(texts, shared_out, processes=processes, predict=predict)
            if processes.is_first:
                print(shared_out)
            return
        out_file = None if has_images else out
        # At a terminal, a progress line that stays would mix with predictions or typed text.
        is_mixed = out_file is None and sys.stdout.isatty()
        counter = SourceCounter("lines" if is_lines else "sources", position.fraction)
        predict_groups = partial(
            pipeline.predict_groups,
            is_live=source == "-",
            counter=None if is_mixed or (source == "-" and is_terminal()) else counter,
        )
        with counter:
            if out_file is None:
                print_predictions(predict_groups(texts), print_results)
                return
            settings = describe_settings(pipeline, filter(None, (run, rerank)))
            settings |= {"--json": as_json, "--engine": engine}
            output = PartialOutput(out_file, settings, is_resumed=resume)
            write_predictions(predict_groups, texts, output=output, print_results=print_results)
        print(out)


def _check_alternatives(alternatives: int | None, *, as_json: bool) -> None:
    """Raise `ConfigError` if alternatives would not be printed."""
    if alternatives is not None and not as_json:
        raise ConfigError("`--alternatives` needs `--json`, which prints them. Add it.")


def _predict_group(
    pipeline: "PredictionPipeline",
    print_results: Callable[..., None],
    sources: list[str],
    first: int,
) -> str:
    """Return what is printed for a group of sources.

    Args:
        pipeline: Predicts.
        print_results: Prints predictions, with `first`.
        sources: The sources.
        first: Number of the first one.
    """
    with redirect_stdout(StringIO()) as text:
        print_results(pipeline(sources), first=first)
    return text.getvalue()


def is_terminal() -> bool:
    """Return whether standard input is typed at a terminal."""
    return sys.stdin.isatty()


def _print(
    results: "Iterable[SourcePredictions]",
    *,
    as_json: bool,
    has_rows: bool,
    keeps_lines: bool,
    first: int = 1,
) -> None:
    """Print predictions: as JSON, as rows with their log-probability, or one text per line.

    Args:
        results: The predictions.
        as_json: Whether to print JSON.
        has_rows: Whether to print rows.
        keeps_lines: Whether a text may take several lines; otherwise it must not, since the lines
            of the output correspond to those of the input.
        first: Number of the first source.
    """
    for number, result in enumerate(results, start=first):
        if as_json:
            print_json(result.to_dict(), indent=None)
        elif has_rows:
            for prediction in result.predictions:
                text = prediction.text if keeps_lines else prediction.text.replace("\n", " ")
                print(number, f"{prediction.log_prob:.4f}", text, sep="\t")
        elif keeps_lines:
            print(*result.texts, sep="\n")
        else:
            print(*(text.replace("\n", " ") for text in result.texts), sep="\n")
        sys.stdout.flush()  # A program at the other end of a pipe may wait for the answer.
