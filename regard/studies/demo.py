"""The demonstration: two small translators trained on the built-in phrasebook and compared."""

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
        # Smaller batches learn in four passes nearly what the recipe learns in six.
        ("data.batch.max_tokens=800", "train.max_epochs=4"),
    ),
    "vaswani2017": (
        "vaswani2017-tiny",
        (
            "data.source.kind=word",  # a grammar's words need no pieces
            # Small batches, half the blocks and no dropout, which costs a quarter of the time:
            # so there are enough steps in a few minutes on one core.
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
"""By the name of a run its recipe, and the overrides that make it fit into the time."""


def is_trained(out: Path) -> bool:
    """Return whether all models are trained; the report is the last file that training writes."""
    return all((out / name / REPORT).exists() for name in MODELS)


def train_models(out: Path, device: str) -> bool:
    """Train the models that are not trained yet; return False if that was interrupted.

    Args:
        out: The folder of the run folders.
        device: Where to train.
    """
    requests = [
        Request(data=("phrasebook",), recipe=recipe, settings=words, out=out / name, device=device)
        for name, (recipe, words) in MODELS.items()
    ]
    waiting = [request for request in requests if not (request.out / REPORT).exists()]
    return train_in_parallel([request.resume_if_started() for request in waiting])
