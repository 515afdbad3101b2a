"""Weight decay, dropout and early stopping on a small noisy data set that over-fits."""

import math
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor, nn

from regard.core.files import read_json_lines
from regard.plots.inputs import Points
from regard.plots.panels import panels
from regard.studies.reproduce.findings import Claim, Findings, Plot
from regard.training.loop import Trainer
from regard.training.losses import Loss, cross_entropy
from regard.training.optimizers import AdamwConfig, SgdConfig, build_optimizer
from regard.training.settings import TrainConfig
from regard.training.validation import Validation

NUM_TRAIN, NUM_VALID, DIM = 200, 1_000, 20
NUM_INFORMATIVE = 4
WRONG = 0.1
"""Share of wrong labels."""
WIDTH, NUM_EPOCHS, BATCH = 128, 60, 50
DECAY, DROPOUT, PATIENCE = 6.0, 0.5, 5

NONE, WEIGHT_DECAY, DROPPED, STOPPED = "none", "weight decay", "dropout", "early stopping"


@dataclass(frozen=True)
class Data:
    """Training and validation examples."""

    x: Tensor
    """(B, D)."""
    labels: Tensor
    valid_x: Tensor
    valid_labels: Tensor


@dataclass(frozen=True)
class MiniBatch:
    """A mini-batch of the training data."""

    x: Tensor
    labels: Tensor

    @property
    def num_target_tokens(self) -> int:
        """Number of examples."""
        return len(self.labels)


class Batches:
    """Mini-batches in an order that depends on the epoch."""

    def __init__(self, data: Data, seed: int) -> None:
        self._data = data
        self._seed = seed

    def epoch(self, number: int, *, skip: int = 0) -> Iterator[MiniBatch]:
        """Yield the batches of an epoch."""
        generator = torch.Generator().manual_seed(1_000 * self._seed + number)
        order = torch.randperm(NUM_TRAIN, generator=generator)
        for rows in torch.split(order, BATCH)[skip:]:
            yield MiniBatch(self._data.x[rows], self._data.labels[rows])

    def num_batches(self, _number: int) -> int:
        """Return the number of batches of an epoch."""
        return math.ceil(NUM_TRAIN / BATCH)


@dataclass(frozen=True)
class Curves:
    """Values after each epoch."""

    train: list[float]
    """Training losses."""
    valid: list[float]
    """Validation losses."""
    errors: list[float]
    """Validation errors in percent."""
    norms: list[float]
    """Norms of all weight matrices."""
    best_epoch: int
    """Epoch of the lowest validation loss."""


def regularisation(seed: int, _folder: Path | None = None) -> Findings:
    """Train a perceptron without and with each method.

    Args:
        seed: Seed of data and weights.
    """
    data = sample_data(seed)
    curves = {
        NONE: train(data, seed),
        WEIGHT_DECAY: train(data, seed, decay=DECAY),
        DROPPED: train(data, seed, dropout=DROPOUT),
        STOPPED: train(data, seed, patience=PATIENCE),
    }
    rows = {name: _row(name, one) for name, one in curves.items()}
    return Findings(
        tables={"Losses": rows},
        claims=(*_claims(curves), _decay_claim(seed)),
        plots={"regularisation": _plot(curves)},
    )


def sample_data(seed: int) -> Data:
    """Return examples whose label is the sign of a sum of few inputs, some labels wrong."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(NUM_TRAIN + NUM_VALID, DIM, generator=generator)
    labels = (x[:, :NUM_INFORMATIVE].sum(1) > 0).long()
    is_wrong = torch.rand(len(labels), generator=generator) < WRONG
    labels = labels.where(~is_wrong, 1 - labels)
    return Data(x[:NUM_TRAIN], labels[:NUM_TRAIN], x[NUM_TRAIN:], labels[NUM_TRAIN:])


def build_network(seed: int, dropout: float) -> nn.Sequential:
    """Return a perceptron of two hidden layers, each with dropout."""
    torch_state = torch.random.get_rng_state()
    torch.manual_seed(seed)
    model = nn.Sequential(
        nn.Linear(DIM, WIDTH), nn.ReLU(), nn.Dropout(dropout),
        nn.Linear(WIDTH, WIDTH), nn.ReLU(), nn.Dropout(dropout),
        nn.Linear(WIDTH, 2),
    )  # fmt: skip
    torch.random.set_rng_state(torch_state)
    return model


def train(
    data: Data, seed: int, *, decay: float = 0.0, dropout: float = 0.0, patience: int = 0
) -> Curves:
    """Train with the package's loop, with its weight decay and its early stopping.

    Args:
        data: Training and validation examples.
        seed: Seed of weights, batches and dropout.
        decay: Weight decay λ.
        dropout: Probability that a hidden unit is dropped.
        patience: Epochs without improvement before early stopping; 0 = never.
    """
    model = build_network(seed, dropout)
    optimizer = AdamwConfig(learning_rate=0.003, weight_decay=decay)
    config = TrainConfig(
        optimizer=optimizer, max_epochs=NUM_EPOCHS, patience=patience, log_every=10_000
    )

    def loss(batch: MiniBatch) -> Loss:
        return _loss(model, batch.x, batch.labels)

    def validate() -> Validation:
        seen = _loss(model, data.x, data.labels)
        unseen = _loss(model, data.valid_x, data.valid_labels)
        is_wrong = model(data.valid_x).argmax(1) != data.valid_labels
        values = {
            "training_loss": float(seen.nll / seen.count),
            "loss": float(unseen.nll / unseen.count),
            "error": float(100 * is_wrong.double().mean()),
            "norm": _norm(model),
        }
        return Validation(-values["loss"], values)

    torch_state = torch.random.get_rng_state()
    torch.manual_seed(seed)
    with tempfile.TemporaryDirectory() as folder:
        trainer = Trainer(
            model,
            config,
            Path(folder),
            batches=Batches(data, seed),
            loss=loss,
            validate=validate,
            loggers=(),
        )
        progress = trainer.run().progress
        rows = [r for r in read_json_lines(Path(folder) / "journal.jsonl") if r["kind"] == "valid"]
    torch.random.set_rng_state(torch_state)
    return Curves(
        train=[row["training_loss"] for row in rows],
        valid=[row["loss"] for row in rows],
        errors=[row["error"] for row in rows],
        norms=[row["norm"] for row in rows],
        best_epoch=progress.best_step // math.ceil(NUM_TRAIN / BATCH),
    )


def _loss(model: nn.Module, x: Tensor, labels: Tensor) -> Loss:
    mask = torch.ones_like(labels[:, None], dtype=torch.bool)
    return cross_entropy(model(x)[:, None], labels[:, None], mask)


def _norm(model: nn.Module) -> float:
    weights = [one.detach() for one in model.parameters() if one.dim() > 1]
    return math.sqrt(sum(float((weight**2).sum()) for weight in weights))


def compare_penalty(seed: int, *, penalty: float = 0.1, num_steps: int = 20) -> float:
    """Train with C + λ ½ ‖W‖² and with weight decay λ; return the largest difference of weights.

    Only matrices have a penalty. The optimiser is SGD.
    """
    data = sample_data(seed)
    plain, decayed = build_network(seed, 0.0).double(), build_network(seed, 0.0).double()
    config = SgdConfig(learning_rate=0.1)
    steps = {
        plain: build_optimizer(config, plain),
        decayed: build_optimizer(replace(config, weight_decay=penalty), decayed),
    }
    for _ in range(num_steps):
        for model, optimizer in steps.items():
            optimizer.zero_grad()
            cost = nn.functional.cross_entropy(model(data.x.double()), data.labels)
            if model is plain:
                weights = [one for one in model.parameters() if one.dim() > 1]
                cost = cost + penalty * sum((one**2).sum() for one in weights) / 2
            cost.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
    pairs = zip(plain.parameters(), decayed.parameters(), strict=True)
    return max(float((one - other).detach().abs().max()) for one, other in pairs)


def _row(name: str, curves: Curves) -> dict[str, float]:
    # Early stopping keeps the weights of the best epoch, the others those of the last one.
    kept = curves.best_epoch if name == STOPPED else len(curves.valid)
    return {
        "epochs": float(len(curves.valid)),
        "kept epoch": float(kept),
        "training loss": curves.train[kept - 1],
        "validation loss": curves.valid[kept - 1],
        "validation error %": curves.errors[kept - 1],
        "‖W‖": curves.norms[kept - 1],
    }


def _claims(curves: Mapping[str, Curves]) -> tuple[Claim, ...]:
    none, decayed, dropped = (curves[name] for name in (NONE, WEIGHT_DECAY, DROPPED))
    stopped = _row(STOPPED, curves[STOPPED])
    return (
        Claim(
            "Without regularisation the validation loss rises while the training loss falls.",
            f"Training loss {none.train[-1]:.3f} after {NUM_EPOCHS} epochs; validation loss "
            f"{min(none.valid):.3f} at the lowest, {none.valid[-1]:.3f} at the end.",
            none.train[-1] < 0.05 and none.valid[-1] > 1.3 * min(none.valid),
        ),
        Claim(
            "Weight decay keeps weights small and the validation loss lower.",
            f"‖W‖ {decayed.norms[-1]:.1f} instead of {none.norms[-1]:.1f}; validation loss "
            f"{decayed.valid[-1]:.3f} instead of {none.valid[-1]:.3f}.",
            decayed.norms[-1] < none.norms[-1] and decayed.valid[-1] < 0.8 * none.valid[-1],
        ),
        Claim(
            "Dropout keeps the validation loss lower.",
            f"Validation loss {dropped.valid[-1]:.3f} instead of {none.valid[-1]:.3f}.",
            dropped.valid[-1] < 0.9 * none.valid[-1],
        ),
        Claim(
            "Early stopping ends near the lowest validation loss.",
            f"Stopped after {stopped['epochs']:.0f} epochs, kept the weights of epoch "
            f"{stopped['kept epoch']:.0f}: validation loss {stopped['validation loss']:.3f} "
            f"instead of {none.valid[-1]:.3f}.",
            stopped["epochs"] < NUM_EPOCHS / 2
            and stopped["validation loss"] < 1.1 * min(none.valid),
        ),
    )


def _decay_claim(seed: int) -> Claim:
    difference = compare_penalty(seed)
    return Claim(
        "The cost C + λ ½ ‖W‖² gives the weight decay of SGD: w ← w − η (∂C/∂w + λ w).",
        f"Largest difference of weights after 20 steps: {difference:.1g}.",
        difference < 1e-12,
    )


def _plot(curves: Mapping[str, Curves]) -> Plot:
    shown: dict[str, dict[str, Points]] = {
        name: {"training loss": _points(one.train), "validation loss": _points(one.valid)}
        for name, one in curves.items()
    }
    marks = {STOPPED: ("stopping point", float(len(curves[STOPPED].valid)))}
    figure = panels(shown, x_label="epoch", y_label="loss", columns=2, marks=marks)
    caption = (
        f"{NUM_TRAIN} training examples, {100 * WRONG:.0f} % of them with a wrong label. Early "
        f"stopping waits {PATIENCE} epochs for a lower validation loss, then restores the best."
    )
    return Plot(figure, caption)


def _points(values: list[float]) -> Points:
    return [(float(number), value) for number, value in enumerate(values, start=1)]
