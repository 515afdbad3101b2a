"""Normalisation: the worked example, and pre-norm against post-norm and three norms in training."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from regard.data.datasets.synthetic.toys import reverse
from regard.data.example import Example
from regard.models.layers import NORMS
from regard.plots.panels import panels
from regard.studies.reproduce.findings import Claim, Findings, Plot
from regard.studies.reproduce.transformers.training import (
    SMALL_TRANSFORMER,
    Training,
    accuracy,
    read_recipe,
    train_small,
)

WORDS = ("Popcorn", "Popped", "Tea", "Steeped")
FEATURES = torch.tensor(
    [[0.31, 0.14, 0.93], [0.14, 0.88, 0.98], [0.85, 0.20, 0.14], [0.46, 0.61, 0.49]]
)
LAYER_ROW = torch.tensor([-0.442, -0.943, 1.384])
"""Layer norm of Popcorn, worked out by hand."""
BATCH_COLUMN = torch.tensor([-0.495, -1.143, 1.563, 0.076])
"""Batch norm of the first feature, worked out by hand."""

NUM_TRAIN, NUM_TEST, LIMITS = 6_000, 200, (3, 10)
SETTINGS = ("train.max_steps=300",)
NUM_LAYERS = 4
"""Blocks in the encoder, and in the decoder."""

EXACT, LOSS = "exact %", "training loss"


@dataclass(frozen=True)
class Variant:
    """Settings that differ between the compared models."""

    norm: str
    is_norm_first: bool
    warmup_steps: int

    @property
    def settings(self) -> tuple[str, ...]:
        """Overrides of the recipe."""
        first = str(self.is_norm_first).lower()
        return (
            f"train.schedule.warmup_steps={self.warmup_steps}",
            *(
                f"model.{side}.{setting}"
                for side in ("encoder", "decoder")
                for setting in (
                    f"norm={self.norm}",
                    f"is_norm_first={first}",
                    f"num_layers={NUM_LAYERS}",
                )
            ),
        )


PRE, POST = "pre-norm, layer", "post-norm, layer"
RMS, BATCH = "pre-norm, RMS", "pre-norm, batch"
PRE_AT_ONCE, POST_AT_ONCE = f"{PRE}, no warm-up", f"{POST}, no warm-up"
VARIANTS = {
    PRE: Variant("layer", is_norm_first=True, warmup_steps=50),
    POST: Variant("layer", is_norm_first=False, warmup_steps=50),
    PRE_AT_ONCE: Variant("layer", is_norm_first=True, warmup_steps=0),
    POST_AT_ONCE: Variant("layer", is_norm_first=False, warmup_steps=0),
    RMS: Variant("rms", is_norm_first=True, warmup_steps=50),
    BATCH: Variant("batch", is_norm_first=True, warmup_steps=50),
}


def norms(seed: int, _folder: Path | None = None) -> Findings:
    """Normalise the worked example, and train the same Transformer with each norm."""
    pairs = reverse(NUM_TRAIN + NUM_TEST, seed=0, limits=LIMITS)
    test, train = pairs[:NUM_TEST], pairs[NUM_TEST:]
    trained = {name: train_variant(variant, train, seed) for name, variant in VARIANTS.items()}
    numbers = {
        name: {
            EXACT: accuracy(training.task, test),
            LOSS: training.final_loss,
            "CPU seconds": training.seconds,
        }
        for name, training in trained.items()
    }
    normed = {name: normalise(name) for name in ("layer", "batch", "rms")}
    return Findings(
        tables={
            "Worked example": _example_table(normed),
            f"Reversing letters with {NUM_LAYERS} + {NUM_LAYERS} blocks": numbers,
        },
        claims=(*_example_claims(normed), *_training_claims(numbers)),
        plots={"norms": _plot(trained)},
    )


def normalise(name: str, features: Tensor = FEATURES) -> Tensor:
    """Normalise the words' features by a norm of the package, (x − μ) / σ over its axis.

    Args:
        name: Key of `NORMS`; 'layer' and 'rms' normalise each row, 'batch' each column.
        features: Features of a batch of words, one row each.
    """
    with torch.no_grad():
        normed: Tensor = NORMS[name](features.shape[1], 1e-8)(features[None])[0]
    return normed


def train_variant(variant: Variant, pairs: Sequence[Example], seed: int) -> Training:
    """Train the small Transformer with one kind and position of norm."""
    settings = (*SETTINGS, *variant.settings)
    return train_small(read_recipe(SMALL_TRANSFORMER, settings, seed=seed), pairs)


def _example_table(normed: dict[str, Tensor]) -> dict[str, dict[str, str]]:
    return {
        word: {"features": _numbers(FEATURES[row], ".2f")}
        | {f"{name} norm": _numbers(values[row], ".3f") for name, values in normed.items()}
        for row, word in enumerate(WORDS)
    }


def _numbers(values: Tensor, spec: str) -> str:
    return " ".join(format(value, spec).replace("-", "−") for value in values.tolist())


def _example_claims(normed: dict[str, Tensor]) -> tuple[Claim, ...]:
    layer_error = float((normed["layer"][0] - LAYER_ROW).abs().max())
    batch_error = float((normed["batch"][:, 0] - BATCH_COLUMN).abs().max())
    changed = FEATURES.clone()
    changed[2] = 0.0
    layer, batch = (
        float((normalise(name, changed)[0] - normed[name][0]).abs().max())
        for name in ("layer", "batch")
    )
    return (
        Claim(
            "Layer norm of Popcorn: −0.442 −0.943 1.384; batch norm of the first feature: −0.495 "
            "−1.143 1.563 0.076.",
            f"The norms of the package differ by at most {max(layer_error, batch_error):.4f}.",
            max(layer_error, batch_error) < 1e-3,
        ),
        Claim(
            "Layer norm normalises each word by itself; batch norm depends on the other words.",
            f"With other features of Tea, Popcorn changes by {layer:.2f} with layer norm and by "
            f"{batch:.2f} with batch norm.",
            layer == 0 and batch > 0.1,
        ),
    )


def _training_claims(numbers: dict[str, dict[str, float]]) -> tuple[Claim, ...]:
    pre, post, pre_at_once, post_at_once, rms, batch = (
        numbers[name] for name in (PRE, POST, PRE_AT_ONCE, POST_AT_ONCE, RMS, BATCH)
    )
    return (
        Claim(
            "Post-norm needs a warm-up of the learning rate.",
            f"Loss after training {post_at_once[LOSS]:.2f} without and {post[LOSS]:.2f} with "
            f"warm-up; {post_at_once[EXACT]:.0f} % and {post[EXACT]:.0f} % exact.",
            post_at_once[LOSS] > post[LOSS] + 0.5,
        ),
        Claim(
            "Pre-norm trains without a warm-up.",
            f"Loss {pre_at_once[LOSS]:.2f} without and {pre[LOSS]:.2f} with warm-up; "
            f"{pre_at_once[EXACT]:.0f} % and {pre[EXACT]:.0f} % exact.",
            pre_at_once[LOSS] < pre[LOSS] + 0.5,
        ),
        Claim(
            "RMS norm is as good as layer norm.",
            f"Loss {rms[LOSS]:.2f} and {pre[LOSS]:.2f}; {rms[EXACT]:.0f} % and {pre[EXACT]:.0f} % "
            "exact.",
            rms[LOSS] < pre[LOSS] + 0.1,
        ),
        Claim(
            "Layer norm suits sequences better than batch norm.",
            f"Exact outputs: {pre[EXACT]:.0f} % with layer and {batch[EXACT]:.0f} % with batch "
            f"norm; training loss {pre[LOSS]:.2f} and {batch[LOSS]:.2f}.",
            pre[EXACT] > batch[EXACT] + 5,
        ),
    )


def _plot(trained: dict[str, Training]) -> Plot:
    groups = {
        "position of the norm": (PRE, POST),
        "the same without warm-up": (PRE_AT_ONCE, POST_AT_ONCE),
        "kind of norm": (PRE, RMS, BATCH),
    }
    figure = panels(
        {
            title: {name.removesuffix(", no warm-up"): trained[name].losses for name in names}
            for title, names in groups.items()
        },
        x_label="step",
        y_label="loss per letter (nats)",
    )
    return Plot(
        figure,
        f"Training loss of the same Transformer with {NUM_LAYERS} + {NUM_LAYERS} blocks, reversing "
        "letters. Without warm-up, the learning rate is 0.004 from the first step.",
    )
