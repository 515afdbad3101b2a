"""A modality and an encoder from outside the package: a vector of numbers on each line."""

import json
import random
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import pytest
import torch
from torch import nn

import regard
from regard.core.errors import ConfigError
from regard.data.example import Example
from regard.data.modality import MODALITIES, Modality, SourceField, detect_modality, modality_of
from regard.models.build import ModelConfig
from regard.models.classifier import ClassifierConfig
from regard.models.decoders import BahdanauDecoderConfig
from regard.models.encoders import ENCODERS
from regard.models.interfaces import Encoder, Memory, masked_mean
from regard.tasks.classification.recipe import ClassificationDataConfig, ClassificationRecipe
from regard.tasks.generation.recipe import DataConfig, Recipe
from regard.training.settings import TrainConfig

FILE = "source.vectors.json"


@dataclass(frozen=True)
class VectorSpec:
    """Scaled vectors, (B, S, 1)."""

    plural: ClassVar[str] = "vectors"
    largest: float


class VectorField(SourceField):
    """Vectors of numbers, separated by spaces, divided by the largest number in training."""

    modality = "vectors"

    def __init__(self, largest):
        self.largest = largest

    @classmethod
    def fit(cls, config, raws):
        return cls(max(abs(number) for raw in raws for number in map(float, raw.split())))

    @classmethod
    def load(cls, folder):
        return cls(**json.loads((folder / FILE).read_text()))

    @property
    def spec(self):
        return VectorSpec(self.largest)

    def read_all(self, raws):
        return [[float(number) / self.largest for number in raw.split()] for raw in raws]

    def stack(self, items):
        longest = max(map(len, items))
        padded = [[*item, *[0.0] * (longest - len(item))] for item in items]
        mask = [[position < len(item) for position in range(longest)] for item in items]
        return torch.tensor(padded)[..., None], torch.tensor(mask)

    def save(self, folder, side):
        (folder / FILE).write_text(json.dumps({"largest": self.largest}))


def read_vectors(path, second=None, *, columns=()):
    lines = (line.split("\t") for line in Path(path).read_text().splitlines())
    return [Example(numbers, target) for numbers, target in lines]


@dataclass(frozen=True, kw_only=True)
class VectorConfig:
    kind: str = "vectors"
    modality: ClassVar[Modality]


VectorConfig.modality = Modality(
    name="vectors",
    config=VectorConfig,
    input_spec=VectorSpec,
    fit=VectorField.fit,
    load=VectorField.load,
    files=(FILE,),
    read_pairs=read_vectors,
    read_labelled=read_vectors,
    read_sources=lambda path: Path(path).read_text().splitlines(),
)


class VectorEncoder(Encoder):
    """A linear map of every number."""

    def __init__(self, config):
        super().__init__()
        self.memory_dim = config.dim
        self.layers = nn.Sequential(
            nn.Linear(1, config.dim), nn.ReLU(), nn.Linear(config.dim, config.dim)
        )

    def forward(self, values, mask):
        states = self.layers(values)
        mask = mask.to(states.device)
        return Memory(states, mask, masked_mean(states, mask))


@dataclass(frozen=True, kw_only=True)
class VectorEncoderConfig:
    kind: str = "vectors"
    dim: int = 16

    def build(self, spec):
        assert isinstance(spec, VectorSpec)
        return VectorEncoder(self)


TRAIN = TrainConfig(max_steps=150, max_epochs=0, log_every=10, validate_every=75)


@pytest.fixture
def write_data(tmp_path):
    def write(target):
        generator = random.Random(0)
        rows = {
            tuple(generator.randint(-9, 9) for _ in range(generator.randint(2, 4)))
            for _ in range(300)
        }
        lines = [f"{' '.join(map(str, row))}\t{target(row)}" for row in sorted(rows)]
        (tmp_path / "vectors.tsv").write_text("\n".join(lines))
        return (str(tmp_path / "vectors.tsv"),)

    return write


def losses(folder):
    lines = [json.loads(line) for line in (folder / "journal.jsonl").read_text().splitlines()]
    return [line["loss"] for line in lines if "loss" in line]


def train_and_load(recipe, data, folder):
    request = regard.Request(data=data, recipe=recipe, out=folder, device="cpu")
    trained = regard.train(request)
    found = losses(folder)
    assert found[-1] < 0.6 * found[0]
    loaded = regard.load(folder, "cpu", recipe=recipe)
    asked = ["3 4", "-5 -2 -1", "9 -1 2 1"]
    before, after = trained.predictor.predict(asked), loaded.predict(asked)
    assert before == after
    with pytest.raises(ConfigError, match="`data.source.kind` must be .* but is 'vectors'"):
        regard.load(folder, "cpu")
    return trained


def test_a_classifier_of_vectors_learns_and_is_loaded_again(write_data, with_reports, tmp_path):
    data = write_data(lambda row: "positive" if sum(row) > 0 else "negative")
    recipe = ClassificationRecipe(
        data=ClassificationDataConfig(source=VectorConfig()),
        model=ClassifierConfig(encoder=VectorEncoderConfig(), pooling="mean"),
        train=TRAIN,
    )
    trained = train_and_load(recipe, data, tmp_path / "run")
    assert trained.evaluation.results["accuracy"].value > 80
    assert trained.report is not None


def test_text_is_generated_from_vectors(write_data, tmp_path):
    data = write_data(lambda row: " ".join("up" if number > 0 else "down" for number in row))
    recipe = Recipe(
        data=DataConfig(source=VectorConfig()),
        model=ModelConfig(
            encoder=VectorEncoderConfig(), decoder=BahdanauDecoderConfig(embedding_dim=16, dim=16)
        ),
        train=TRAIN,
    )
    train_and_load(recipe, data, tmp_path / "run")


def test_the_tables_are_unchanged():
    assert modality_of(VectorConfig()) is VectorConfig.modality
    assert VectorConfig.modality not in MODALITIES.values()
    assert VectorEncoderConfig not in ENCODERS
    assert detect_modality([Example("1 2 3")]) is MODALITIES["text"]


def test_settings_do_not_change_a_recipe_that_is_given(tmp_path):
    request = regard.Request(
        data=("reverse",), recipe=Recipe(), settings=("seed=2",), out=tmp_path / "run"
    )
    with pytest.raises(ConfigError, match="`settings` override recipes by name"):
        request.resolve()
