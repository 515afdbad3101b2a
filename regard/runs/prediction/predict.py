"""Prediction for many sources, shared by the command line and servers."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from PIL import Image

from regard.core.errors import ConfigError, DataError
from regard.core.logging import logger
from regard.core.progress import with_label
from regard.data.example import Example
from regard.runs.prediction.details import with_details
from regard.runs.prediction.groups import group, group_arriving
from regard.runs.prediction.lexical import control_words
from regard.runs.prediction.long_audio import Segment, check_chunks, join_segments, transcribe_all
from regard.runs.prediction.progress import SourceCounter
from regard.runs.reranking import predict_function
from regard.tasks.base import GeneratesImages, Task
from regard.tasks.generation.lexical import LexicalOptions
from regard.tasks.prediction import Prediction
from regard.tasks.reading import drop_unreadable, find_modality
from regard.tasks.recipe import BaseDataConfig
from regard.tasks.search import search_with

NUM_SOURCES = 2_000
"""Number of sources that are read and sorted into batches at once."""


@dataclass(frozen=True, kw_only=True)
class PredictOptions:
    """Options of prediction."""

    beams: int | None = None
    """Number of beams, the recipe's if not given; 1 is greedy search."""
    num_best: int = 1
    """Number of predictions per source."""
    prefix: str = ""
    """First words of every prediction."""
    overrides: tuple[str, ...] = ()
    """Overrides of search settings, such as `search.temperature=0.8`."""
    chunk_seconds: float | None = None
    """Maximum length of the segments of a recording; recordings are not cut if not given."""
    image_folder: Path | None = None
    """Folder for predicted images."""
    rerank_weight: float | None = None
    """Weight of the reranker, if there is one."""
    lexical: LexicalOptions | None = None
    """Words that predictions must contain, and words that they must not contain."""
    alternatives: int | None = None
    """Number of most likely tokens at each position of predictions; none if not given."""
    tree: Path | None = None
    """JSON file for the beam tree of the only source."""


@dataclass(frozen=True)
class SourcePredictions:
    """Predictions for one source."""

    source: str
    predictions: list[Prediction] = field(default_factory=list)
    """Predictions in descending order of score; empty if the source cannot be read."""
    segments: list[Segment] | None = None
    """Segments of a recording that was cut into chunks."""

    @property
    def texts(self) -> list[str]:
        """Predictions as text; one empty text if the source cannot be read."""
        if self.segments is not None:
            return [join_segments(self.segments)]
        return [prediction.text for prediction in self.predictions] or [""]

    def to_dict(self) -> dict[str, Any]:
        """Return a dictionary that can be written as JSON."""
        if self.segments is None:
            predictions = [prediction.to_dict() for prediction in self.predictions]
            return {"source": self.source, "predictions": predictions}
        parts = [
            {
                "begin": segment.chunk.start,
                "end": segment.chunk.end,
                "text": segment.prediction.text,
            }
            for segment in self.segments
        ]
        return {"source": self.source, "text": join_segments(self.segments), "parts": parts}


class PredictionPipeline:
    """Prediction for any number of sources, in input order."""

    def __init__(
        self, task: Task[Any], options: PredictOptions, *, reranker: Task[Any] | None = None
    ) -> None:
        """Check that the task supports the options.

        Args:
            task: The run that predicts.
            options: Options of prediction.
            reranker: A run that predicts sources from targets, to rerank predictions.
        """
        if options.lexical is not None:
            task = control_words(task, options.lexical)
        self.task = task
        self.options = options
        beams, overrides = options.beams, options.overrides
        if reranker is not None and beams is not None:
            # With a reranker, `beams` is the number of candidates, also for sampling.
            beams, overrides = None, (*overrides, f"search.beams={beams}")
        function = predict_function(task, reranker, options.rerank_weight)
        predict = partial(function, num_best=options.num_best)
        search = search_with(task, beams=beams, num_best=options.num_best, overrides=overrides)
        if options.prefix and search is None:
            raise ConfigError(
                "`--prefix` is for models that generate text, but the task of this run is "
                f"'{task.recipe.task}'. Leave it out."
            )
        _check_image_folder(task, options.image_folder)
        if options.chunk_seconds is not None:
            if options.num_best > 1 or options.prefix or reranker is not None:
                raise ConfigError(
                    "`--chunk` joins the predictions of segments into one, so it cannot be used "
                    "with `--nbest`, `--prefix` or `--rerank`. Leave one of them out."
                )
            check_chunks(task, options.chunk_seconds)
        self.search = search
        if search is not None:
            predict = partial(predict, search=search, prefix=options.prefix)
        self._predict = with_details(
            predict, task, search=search, options=options, is_reranked=reranker is not None
        )

    def __call__(
        self, sources: Iterable[str], *, is_live: bool = False
    ) -> Iterator[SourcePredictions]:
        """Yield the predictions of each source; unreadable sources have none.

        Args:
            sources: The sources, of which only a group is in memory at a time.
            is_live: Whether sources arrive one after another, as from a pipe or a terminal. Then
                those that have arrived are predicted after a short pause.
        """
        return chain.from_iterable(self.predict_groups(sources, is_live=is_live))

    def predict_groups(
        self,
        sources: Iterable[str],
        *,
        is_live: bool = False,
        num_before: int = 0,
        counter: SourceCounter | None = None,
    ) -> Iterator[list[SourcePredictions]]:
        """Yield the predictions of groups of sources, each as soon as it is complete.

        Args:
            sources: The sources, as for a call.
            is_live: As for a call.
            num_before: Number of sources before the first one.
            counter: Shows the progress of all groups; if not given, that of each group is shown.
        """
        groups = group_arriving(sources, NUM_SOURCES) if is_live else group(sources, NUM_SOURCES)
        num_done, errors = num_before, []
        if counter is not None:
            counter.start(num_before)
        for taken in groups:
            is_only = num_done == 0 and len(taken) < NUM_SOURCES
            if counter is not None and not is_only:
                progress = counter.group(len(taken))
            else:
                progress = with_label(
                    "" if is_only else f"{num_done + 1:,}–{num_done + len(taken):,}"
                )
            with progress:
                try:
                    results = self._predict_group(taken, first=num_done + 1)
                except DataError as error:
                    # Unreadable files must not keep those that arrive later from prediction.
                    if not is_live or find_modality(self.task.recipe.data).medium is None:
                        raise
                    logger.warning("%s", error)
                    errors += [error] * len(taken)
                    results = [SourcePredictions(source) for source in taken]
            num_done += len(taken)
            yield results
        if errors and len(errors) == num_done - num_before:
            raise errors[0]

    def _predict_group(self, sources: list[str], *, first: int) -> list[SourcePredictions]:
        """Return the predictions of several sources; `first` is the number of the first one."""
        if (seconds := self.options.chunk_seconds) is not None:
            transcripts = transcribe_all(self.task, sources, seconds=seconds, search=self.search)
            return [
                SourcePredictions(source, segments=segments)
                for source, segments in zip(sources, transcripts, strict=True)
            ]
        predicted = predict_readable(self._predict, sources, config=self.task.recipe.data)
        results = []
        for number, (source, found) in enumerate(zip(sources, predicted, strict=True), first):
            if self.options.image_folder is not None:
                path = self.options.image_folder / f"{number:05}-{Path(source).stem}.png"
                found = [_save_image(prediction, path) for prediction in found]
            results.append(SourcePredictions(source, found))
        return results


def predict_readable(
    predict: Callable[[Sequence[str]], list[list[Prediction]]],
    sources: Sequence[str],
    *,
    config: BaseDataConfig,
) -> list[list[Prediction]]:
    """Predict for sources in input order; sources whose image cannot be read get no prediction.

    Their number is logged as in training. Raise `DataError` if no source can be read.

    Args:
        predict: Predicts for sources that can all be read.
        sources: The sources.
        config: Data settings of the run.
    """
    try:
        return predict(sources)
    except DataError:
        if len(sources) == 1:
            raise
        filled = [Example(source) for source in sources if source.strip()]
        kept = drop_unreadable(filled, config)
        if len(kept) == len(filled):
            raise
    unreadable = {example.source for example in filled} - {example.source for example in kept}
    predicted = iter(predict([source for source in sources if source not in unreadable]))
    return [[] if source in unreadable else next(predicted) for source in sources]


def _check_image_folder(task: Task[Any], folder: Path | None) -> None:
    """Raise if predicted images have no folder, or a folder is given for other predictions."""
    has_images = isinstance(task, GeneratesImages)
    if has_images and folder is None:
        raise ConfigError("Predicted images need a folder. Name one with `--out`.")
    if folder is None:
        return
    if not has_images:
        raise ConfigError(
            "`--out` is for models that predict images, but the task of this run is "
            f"'{task.recipe.task}'. Leave it out."
        )
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"`--out` must be a folder, but {folder} is a file.")
    folder.mkdir(parents=True, exist_ok=True)


def _save_image(prediction: Prediction, path: Path) -> Prediction:
    """Save the image of a prediction, if it has one, and return it with the path as its text."""
    if prediction.image is None:
        return prediction
    Image.fromarray(prediction.image).save(path)
    return replace(prediction, text=str(path))
