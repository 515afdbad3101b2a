"""Predictions for many sources, as the command line and a server compute them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count, islice
from pathlib import Path
from typing import Any

from PIL import Image

from regard.core.errors import ConfigError, DataError
from regard.data.example import Example
from regard.runs.long_audio import Segment, check_chunks, join, transcribe_all
from regard.runs.reranking import answering
from regard.tasks.base import GeneratesImages, Task, search_with
from regard.tasks.prediction import Prediction
from regard.tasks.reading import drop_unreadable
from regard.tasks.recipe import BaseDataConfig

NUM_TOGETHER = 2_000
"""Sources that are read before the first of their predictions is returned."""


@dataclass(frozen=True, kw_only=True)
class PredictOptions:
    """How a run predicts."""

    beams: int | None = None
    """Number of beams, if not the recipe's; 1 is greedy search."""
    num_best: int = 1
    """Predictions per source."""
    prefix: str = ""
    """First words of every prediction."""
    overrides: tuple[str, ...] = ()
    """Changes of the search, such as `search.temperature=0.8`."""
    chunk_seconds: float | None = None
    """Longest part into which recordings are cut; they are not cut if not given."""
    image_folder: Path | None = None
    """Where images are saved that a model predicts."""
    rerank_weight: float | None = None
    """Weight of the run that reranks, if there is one."""


@dataclass(frozen=True)
class SourcePredictions:
    """What a run predicts for one source."""

    source: str
    predictions: list[Prediction] = field(default_factory=list)
    """The best first; empty where the source cannot be read."""
    segments: list[Segment] | None = None
    """The parts of a recording, where it was cut into chunks."""

    @property
    def texts(self) -> list[str]:
        """The predictions as text; an empty one where the source cannot be read."""
        if self.segments is not None:
            return [join(self.segments)]
        return [one.text for one in self.predictions] or [""]

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that JSON can hold."""
        if self.segments is None:
            predictions = [one.to_dict() for one in self.predictions]
            return {"source": self.source, "predictions": predictions}
        parts = [
            {"begin": one.chunk.begin, "end": one.chunk.end, "text": one.prediction.text}
            for one in self.segments
        ]
        return {"source": self.source, "text": join(self.segments), "parts": parts}


class PredictionPipeline:
    """Predicts for any number of sources, in the order given."""

    def __init__(
        self, task: Task[Any], options: PredictOptions, *, reranker: Task[Any] | None = None
    ) -> None:
        """Check that the task and the options fit together.

        Args:
            task: The run that predicts.
            options: How it predicts.
            reranker: A run that predicts sources from targets and so reranks predictions.
        """
        self.task = task
        self.options = options
        beams, overrides = options.beams, options.overrides
        if reranker is not None and beams is not None:
            # Beams are then the number of candidates, which sampling has as well.
            beams, overrides = None, (*overrides, f"search.beams={beams}")
        predict = partial(
            answering(task, reranker, options.rerank_weight), num_best=options.num_best
        )
        search = search_with(task, beams=beams, num_best=options.num_best, words=overrides)
        if options.prefix and search is None:
            raise ConfigError(
                "`--prefix` is for models that write their answer, but the task of this run is "
                f"'{task.recipe.task}'. Leave it out."
            )
        _check_image_folder(task, options.image_folder)
        if options.chunk_seconds is not None:
            if options.num_best > 1 or options.prefix or reranker is not None:
                raise ConfigError(
                    "`--chunk` gives one answer made of many, so it cannot be joined with "
                    "`--nbest`, `--prefix` or `--rerank`. Leave one of them out."
                )
            check_chunks(task, options.chunk_seconds)
        self.search = search
        if search is not None:
            predict = partial(predict, search=search, prefix=options.prefix)
        self._predict = predict

    def __call__(self, sources: Iterable[str]) -> Iterator[SourcePredictions]:
        """Yield the predictions of each source; those that cannot be read have none."""
        if self.options.chunk_seconds is not None:
            yield from self._transcribe(list(sources), self.options.chunk_seconds)
            return
        waiting, numbers = iter(sources), count(1)
        while together := list(islice(waiting, NUM_TOGETHER)):
            found = predict_readable(self._predict, together, config=self.task.recipe.data)
            for source, predictions, number in zip(together, found, numbers, strict=False):
                if self.options.image_folder is not None:
                    path = self.options.image_folder / f"{number:05}-{Path(source).stem}.png"
                    predictions = [_save_image(one, path) for one in predictions]
                yield SourcePredictions(source, predictions)

    def _transcribe(self, paths: Sequence[str], seconds: float) -> Iterator[SourcePredictions]:
        found = transcribe_all(self.task, paths, seconds=seconds, search=self.search)
        for path, segments in zip(paths, found, strict=True):
            yield SourcePredictions(path, segments=segments)


def predict_readable(
    predict: Callable[[Sequence[str]], list[list[Prediction]]],
    sources: Sequence[str],
    *,
    config: BaseDataConfig,
) -> list[list[Prediction]]:
    """Predict for sources in the order given; those whose image cannot be read get no prediction.

    Their number is logged as in training. If there is no other source, it is an error.

    Args:
        predict: Predicts for sources that can all be read.
        sources: The sources.
        config: How sources are read.
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
    bad = {example.source for example in filled} - {example.source for example in kept}
    found = iter(predict([source for source in sources if source not in bad]))
    return [[] if source in bad else next(found) for source in sources]


def _check_image_folder(task: Task[Any], folder: Path | None) -> None:
    """Raise if predicted images have no folder, or a folder would stay empty."""
    has_images = isinstance(task, GeneratesImages)
    if has_images and folder is None:
        raise ConfigError("The answers are images, which need a folder. Name one with `--out`.")
    if folder is None:
        return
    if not has_images:
        raise ConfigError(
            "`--out` is for models that answer with images, but the task of this run is "
            f"'{task.recipe.task}'. Leave it out."
        )
    if folder.exists() and not folder.is_dir():
        raise ConfigError(f"`--out` must be a folder, but {folder} is a file.")
    folder.mkdir(parents=True, exist_ok=True)


def _save_image(found: Prediction, path: Path) -> Prediction:
    """Save the image of a prediction, if it has one, and return it with the path as its text."""
    if found.image is None:
        return found
    Image.fromarray(found.image).save(path)
    return replace(found, text=str(path))
