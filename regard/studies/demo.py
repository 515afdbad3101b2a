"""Demo: two small translation models trained on the built-in phrasebook and compared."""

from pathlib import Path

from regard.runs.folder import REPORT
from regard.runs.parallel import train_in_parallel
from regard.runs.request import Request

SENTENCES = (
    "I would like to learn German.",
    "The old man reads the new book because he is tired.",
    "Tomorrow I get up at seven.",
)

MODELS = {
    "bahdanau2015": (
        "bahdanau2015-laptop",
        # With smaller batches, four epochs are nearly as good as six of the recipe.
        ("data.batch.max_tokens=800", "train.max_epochs=4"),
    ),
    "vaswani2017": (
        "vaswani2017-tiny",
        (
            "data.source.kind=word",  # the grammar has few words, so no subwords
            "data.source.vocab_size=8000",
            # Small batches, half the blocks and no dropout (a quarter of the time) allow enough
            # steps in a few minutes on one core.
            "data.batch.max_tokens=600",
            "model.encoder.num_layers=2",
            "model.decoder.num_layers=2",
            "model.encoder.dropout=0.0",
            "model.decoder.dropout=0.0",
            "train.max_steps=2800",
            "train.schedule.warmup_steps=200",
            "train.optimizer.learning_rate=0.003",
        ),
    ),
}
"""Recipe and overrides by the name of the run; the overrides shorten training."""


def is_trained(out: Path) -> bool:
    """Return whether all models are trained: the report is the last file to be written."""
    return all((out / name / REPORT).exists() for name in MODELS)


def train_models(out: Path, device: str) -> bool:
    """Train the models that are not trained yet; return False if training was interrupted.

    Args:
        out: The folder of the run folders.
        device: Device of the training.
    """
    requests = [
        Request(
            data=("phrasebook",), recipe=recipe, settings=settings, out=out / name, device=device
        )
        for name, (recipe, settings) in MODELS.items()
    ]
    remaining = [request for request in requests if not (request.out / REPORT).exists()]
    return train_in_parallel([request.resume_if_started() for request in remaining])
