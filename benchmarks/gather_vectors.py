"""Extractors of sentence vectors: poolings and transforms that retrieve paraphrases."""

from collections.abc import Callable

import torch
from gather import Finished, Paraphrases, read_paraphrases, slim
from results import Row

from regard.interpret.embed import embed
from regard.metrics.representation.vectors import Array
from regard.models.encoders.rnn import RnnEncoder
from regard.models.pca import Pca

NUM_OTHERS = 20_000
"""Training sentences whose vectors give the mean and the covariance."""
NUM_DIRECTIONS = 256
"""Directions that whitening keeps, as in Su et al. 2021."""


def vector_variants(run: Finished, data: str) -> Row:
    """Score poolings of an encoder, each as it is, centred and whitened.

    Mean and covariance are those of training sentences. Both held-out parts are scored, so that a
    variant can be chosen on one and reported on the other.
    """
    test, splits = read_paraphrases(data)
    others = list(dict.fromkeys(example.source for example in splits.train))[:NUM_OTHERS]
    sides = {"valid": Paraphrases(splits.valid), "test": test}
    scores: Row = {side: {} for side in sides}
    is_recurrent = isinstance(run.task.encoder, RnnEncoder)
    for pooling in ("summary", "mean", "final") if is_recurrent else ("summary", "mean"):
        known = embed(run.task, others, pooling=pooling)
        for side, found in sides.items():
            vectors = embed(run.task, found.sentences, pooling=pooling)
            scores[side][pooling] = {
                name: slim(found.score(transform(vectors, known)))
                for name, transform in TRANSFORMS.items()
            }
    return {"variants": scores}


def whiten(vectors: Array, others: Array) -> Array:
    """Project on principal directions of other vectors and divide by the standard deviations."""
    known = torch.from_numpy(others)
    pca = Pca.fit(known, min(NUM_DIRECTIONS, known.shape[1]))
    whitened: Array = (pca.encode(torch.from_numpy(vectors)) / pca.variances.sqrt()).numpy()
    return whitened


TRANSFORMS: dict[str, Callable[[Array, Array], Array]] = {
    "plain": lambda vectors, others: vectors,
    "centred": lambda vectors, others: vectors - others.mean(0),
    "whitened": whiten,
}
"""Transforms by name: (vectors, vectors of other sentences) → vectors."""

EVERY_SEED = (vector_variants,)
"""Extractors of one run: (the run, argument of the plan) → keys of its row."""
