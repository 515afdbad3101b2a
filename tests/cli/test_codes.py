"""`regard sample` and `regard interpolate`, as a person types them."""

import pytest

from regard.tasks.learning import train
from regard.tasks.request import Request

SMALL = (
    "model.encoder.encoder.embedding_dim=12",
    "model.encoder.encoder.dim=12",
    "model.encoder.bottleneck.dim=5",
    "model.decoder.embedding_dim=12",
    "model.decoder.dim=12",
    "train.max_epochs=0",
    "train.max_steps=20",
    "train.validate_every=20",
)
FIRST, LAST = "a b c", "e e d a"


def learn(files, folder, recipe):
    return train(
        Request(
            data=(files.train,),
            valid=(files.valid,),
            test=(files.test,),
            recipe=recipe,
            settings=SMALL,
            out=folder,
            device="cpu",
        )
    )


@pytest.fixture(scope="module")
def variational(reverse_files, tmp_path_factory):
    return learn(reverse_files, tmp_path_factory.mktemp("runs") / "drawn", "bowman2016-laptop")


@pytest.fixture(scope="module")
def plain(reverse_files, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "plain"
    return learn(reverse_files, folder, "dai2015-autoencoder-laptop")


def test_samples_hang_on_the_seed_alone(regard, variational):
    five = regard("sample", variational.folder, "-n", 5)
    assert five.code == 0 and len(five.lines) == 5
    assert regard("sample", variational.folder, "--num", 3).lines == five.lines[:3]
    drawn = ("search.temperature=1", "search.seed=2")
    wild = regard("sample", variational.folder, *drawn, "-n", 5).lines
    assert wild == regard("sample", variational.folder, *drawn, "-n", 5).lines
    assert wild != five.lines


def test_ends_are_what_the_model_makes_of_the_given(regard, variational, tmp_path):
    found = regard("interpolate", variational.folder, FIRST, LAST, "--steps", 4)
    assert found.code == 0 and len(found.lines) == 4
    path = tmp_path / "ends.txt"
    path.write_text(f"{FIRST}\n{LAST}\n", encoding="utf-8")
    ends = regard("predict", variational.folder, path).lines
    assert [found.lines[0], found.lines[-1]] == ends


def test_codes_of_any_autoencoder_can_be_mixed(regard, plain):
    assert len(regard("interpolate", plain.folder, FIRST, LAST, "--steps", 2).lines) == 2


def test_evaluation_says_what_codes_are_worth(regard, variational):
    found = regard("evaluate", variational.folder, variational.folder / "test.jsonl")
    assert found.code == 0
    for name in ("accuracy", "BLEU", "token accuracy", "ELBO", "KL", "active units"):
        assert any(line.startswith(name) for line in found.lines), name


def test_only_variational_codes_can_be_drawn(refused, plain, tiny_run):
    assert "this run has no variational code. Train one with" in refused("sample", plain.folder)
    line = refused("sample", tiny_run.folder)
    assert line.startswith("This needs a run of an autoencoder, but the task of this run is 'gen")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((" ", LAST), "Both ends must have at least one word, but one is empty."),
        ((FIRST, LAST, "--steps", 1), "`steps` must be at least 2, but is 1."),
        ((FIRST, LAST, "train.seed=1"), "`train.seed` cannot be changed once a model is trained"),
    ],
)
def test_bad_ends_are_refused(refused, plain, words, message):
    assert refused("interpolate", plain.folder, *words).startswith(message)


def test_no_samples_are_refused(refused, variational):
    assert refused("sample", variational.folder, "-n", 0) == "`num` must be at least 1, but is 0."
    assert refused("sample", variational.folder, "--seed", -1).startswith("`seed` must be at least")


def test_other_tasks_have_nothing_between(refused, tiny_run):
    assert "needs a run of an autoencoder" in refused("interpolate", tiny_run.folder, "a", "b")
