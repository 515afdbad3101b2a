"""Fixtures that train small models with a fixed seed."""

import random

import pytest

from regard.core.errors import DataError
from regard.data.datasets.catalog import find_data
from regard.data.text.readers import write_examples
from regard.runs.request import Request
from regard.runs.train import train

SMALL = (
    "data.batch.max_tokens=600",
    "data.batch.max_length=50",
    "train.max_epochs=0",
    "train.max_steps=400",
    "train.validate_every=100",
    "train.optimizer.learning_rate=0.006",
    "train.schedule.warmup_steps=20",
    "train.precision=fp32",
    "validation.metric=loss",
    "search.beams=1",
)
RECURRENT = (
    "model.encoder.num_layers=1",
    "model.encoder.embedding_dim=32",
    "model.encoder.dim=32",
    "model.encoder.dropout=0.0",
    "model.decoder.num_layers=1",
    "model.decoder.embedding_dim=32",
    "model.decoder.dim=64",
    "model.decoder.dropout=0.0",
)
NUM_TRAIN, NUM_HELD_OUT = 4_000, 100
SEED = 1


@pytest.fixture(scope="session")
def learn(tmp_path_factory):
    """Train a small model on a synthetic task and evaluate it on held-out examples."""

    def learn(task, *overrides, recipe="bahdanau2015-laptop", sizes=RECURRENT):
        folder = tmp_path_factory.mktemp("learn")
        examples = task(NUM_TRAIN + 2 * NUM_HELD_OUT, seed=SEED)
        sides = {
            "train": examples[2 * NUM_HELD_OUT :],
            "valid": examples[:NUM_HELD_OUT],
            "test": examples[NUM_HELD_OUT : 2 * NUM_HELD_OUT],
        }
        for side, part in sides.items():
            write_examples(folder / f"{side}.jsonl", part)
        data, valid, test = ((str(folder / f"{side}.jsonl"),) for side in sides)
        request = Request(
            data=data,
            valid=valid,
            test=test,
            recipe=recipe,
            settings=(*SMALL, *sizes, f"seed={SEED}", *overrides),
            out=folder / "run",
            device="cpu",
        )
        return train(request)

    return learn


@pytest.fixture(scope="session")
def learn_slice(tmp_path_factory, data_folder):
    """Train a recipe on a part of a data set and evaluate it on a part of the test set."""

    def learn(name, recipe, *overrides):
        try:
            splits = find_data(name)
        except DataError as error:
            pytest.skip(str(error))
        folder = tmp_path_factory.mktemp("learn")
        generator = random.Random(SEED)
        for side, num in (("train", NUM_TRAIN), ("valid", NUM_HELD_OUT), ("test", NUM_HELD_OUT)):
            part = generator.sample(getattr(splits, side), num)
            write_examples(folder / f"{side}.jsonl", part)
        request = Request(
            data=(str(folder / "train.jsonl"),),
            valid=(str(folder / "valid.jsonl"),),
            test=(str(folder / "test.jsonl"),),
            recipe=recipe,
            settings=(*overrides, f"seed={SEED}"),
            out=folder / "run",
            device="cpu",
        )
        return train(request)

    return learn


@pytest.fixture(scope="session")
def learn_phrasebook(tmp_path_factory):
    """Train a recipe on the phrasebook."""

    def learn(recipe, *overrides):
        request = Request(
            data=("phrasebook",),
            recipe=recipe,
            settings=(*overrides, f"seed={SEED}"),
            out=tmp_path_factory.mktemp("learn") / "run",
            device="cpu",
        )
        return train(request)

    return learn


@pytest.fixture(scope="session")
def learn_opinions(tmp_path_factory):
    """Train a classifier on generated opinions."""

    def learn(recipe, *overrides):
        request = Request(
            data=("opinions",),
            recipe=recipe,
            settings=(*overrides, f"seed={SEED}", "train.precision=fp32"),
            out=tmp_path_factory.mktemp("learn") / "run",
            device="cpu",
        )
        return train(request)

    return learn


@pytest.fixture(scope="session")
def learn_scenes(tmp_path_factory):
    """Train a recipe on a built-in data set of generated images or videos."""

    def learn(data, recipe, *overrides):
        request = Request(
            data=(data,),
            recipe=recipe,
            settings=(*overrides, f"seed={SEED}"),
            out=tmp_path_factory.mktemp("learn") / "run",
            device="cpu",
        )
        return train(request)

    return learn


@pytest.fixture(scope="session")
def captioner(learn_scenes):
    """Train a caption model of scenes, whose image encoder can initialise other models."""
    return learn_scenes("scenes", "xu2015-laptop")


@pytest.fixture(scope="session")
def value():
    """Return a function from a trained model and the name of a metric to its value."""
    return lambda trained, name: trained.evaluation.results[name].value
