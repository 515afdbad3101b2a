import random
import time

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


def new_seed():
    """A seed that was never tried before; it is shown when a test fails."""
    seed = time.time_ns() // 1_000 % 2**31
    print(f"seed {seed}")
    return seed


@pytest.fixture(scope="session")
def learn(tmp_path_factory):
    """Train a small model on a synthetic task, measure it on what was held out."""

    def learn(task, *words, recipe="bahdanau2015-laptop", sizes=RECURRENT):
        folder, seed = tmp_path_factory.mktemp("learn"), new_seed()
        examples = task(NUM_TRAIN + 2 * NUM_HELD_OUT, seed=seed)
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
            settings=(*SMALL, *sizes, f"seed={seed}", *words),
            out=folder / "run",
            device="cpu",
        )
        return train(request)

    return learn


@pytest.fixture(scope="session")
def learn_slice(tmp_path_factory, data_folder):
    """Train a recipe on a part of a real data set, measure it on a part of what is held out."""

    def learn(name, recipe, *words):
        try:
            splits = find_data(name)
        except DataError as error:
            pytest.skip(str(error))
        folder, seed = tmp_path_factory.mktemp("learn"), new_seed()
        generator = random.Random(seed)
        for side, num in (("train", NUM_TRAIN), ("valid", NUM_HELD_OUT), ("test", NUM_HELD_OUT)):
            part = generator.sample(getattr(splits, side), num)
            write_examples(folder / f"{side}.jsonl", part)
        request = Request(
            data=(str(folder / "train.jsonl"),),
            valid=(str(folder / "valid.jsonl"),),
            test=(str(folder / "test.jsonl"),),
            recipe=recipe,
            settings=(*words, f"seed={seed}"),
            out=folder / "run",
            device="cpu",
        )
        return train(request)

    return learn


@pytest.fixture(scope="session")
def learn_phrasebook(tmp_path_factory):
    """Train a recipe on the phrasebook."""

    def learn(recipe, *words):
        request = Request(
            data=("phrasebook",),
            recipe=recipe,
            settings=(*words, f"seed={new_seed()}"),
            out=tmp_path_factory.mktemp("learn") / "run",
            device="cpu",
        )
        return train(request)

    return learn


@pytest.fixture(scope="session")
def learn_opinions(tmp_path_factory):
    """Train a classifier on the grammar of opinions."""

    def learn(recipe, *words):
        request = Request(
            data=("opinions",),
            recipe=recipe,
            settings=(*words, f"seed={new_seed()}", "train.precision=fp32"),
            out=tmp_path_factory.mktemp("learn") / "run",
            device="cpu",
        )
        return train(request)

    return learn


@pytest.fixture(scope="session")
def learn_scenes(tmp_path_factory):
    """Train a recipe on scenes of coloured shapes."""

    def learn(data, recipe, *words):
        request = Request(
            data=(data,),
            recipe=recipe,
            settings=(*words, f"seed={new_seed()}"),
            out=tmp_path_factory.mktemp("learn") / "run",
            device="cpu",
        )
        return train(request)

    return learn


@pytest.fixture(scope="session")
def captioner(learn_scenes):
    """A run that describes scenes, and whose eyes others may begin with."""
    return learn_scenes("scenes", "xu2015-laptop")


@pytest.fixture(scope="session")
def value():
    """A trained model and a score's name to what was measured."""
    return lambda trained, name: trained.evaluation.results[name].value
