"""Prediction in a Ray cluster: a class for `ray.data.Dataset.map_batches`.

Ray itself is not imported, so that it need not be installed anywhere else.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regard.core.errors import DataError
from regard.core.tables import did_you_mean
from regard.runs.folder import load
from regard.runs.prediction.predict import PredictionPipeline, PredictOptions

Columns = dict[str, NDArray[Any]]
"""Rows of a Ray data set, column by column."""


class Predictor:
    """Adds predictions to batches of rows. Each actor loads the run once.

        rows = ray.data.read_text("corpus.txt")
        actors = ray.data.ActorPoolStrategy(size=4)
        rows.map_batches(Predictor, fn_constructor_args=["runs/mine"], compute=actors, num_gpus=1)

    A prediction does not depend on the other rows of its batch.

    Args:
        run: A run folder that all machines can read, or several joined by commas (an ensemble).
        source: Column of the sources: texts, or paths of images or recordings.
        target: Column to add, with the best prediction of each source.
        device: Device of the model; Ray shows an actor only the GPUs that it has reserved.
        beams: Number of beams, the run's if not given; 1 is greedy search.
        overrides: Overrides of search settings, such as `search.length_penalty=0.6`.
    """

    def __init__(
        self,
        run: str | Path,
        *,
        source: str = "text",
        target: str = "prediction",
        device: str = "auto",
        beams: int | None = None,
        overrides: Sequence[str] = (),
    ) -> None:
        self._source = source
        self._target = target
        options = PredictOptions(beams=beams, overrides=tuple(overrides))
        self._predict = PredictionPipeline(load(run, device), options)

    def __call__(self, batch: Columns) -> Columns:
        """Return the rows with two more columns: predictions, and their log-probabilities.

        The log-probability of a source that cannot be read is NaN, and its prediction is empty.
        """
        if self._source not in batch:
            raise DataError(
                f"`source` must be a column of the rows, but is '{self._source}'."
                f"{did_you_mean(self._source, batch)} Columns: {', '.join(batch)}."
            )
        results = list(self._predict(map(str, batch[self._source])))
        log_probs = [
            one.predictions[0].log_prob if one.predictions else float("nan") for one in results
        ]
        return {
            **batch,
            self._target: np.array([one.texts[0] for one in results], dtype=object),
            f"{self._target}_log_prob": np.array(log_probs),
        }
