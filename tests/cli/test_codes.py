"""`regard sample` and `regard interpolate`, as a person types them."""

import re
from base64 import b64decode
from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from regard.runs.request import Request
from regard.runs.train import train
from regard.tasks.latents import interpolate
from regard.tasks.prediction import as_picture

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


@pytest.mark.parametrize("words", [("sample",), ("interpolate", FIRST, LAST)])
def test_texts_need_no_picture(refused, variational, words, tmp_path):
    verb, *ends = words
    told = refused(verb, variational.folder, *ends, "--out", tmp_path / "texts.svg")
    assert "those of this run stand for texts, which are printed" in told
    assert not (tmp_path / "texts.svg").exists()


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
        ((FIRST, LAST, "--steps", 1), "`steps` must be between 2 and 100000, but is 1."),
        ((FIRST, LAST, "train.seed=1"), "`train.seed` cannot be changed once a model is trained"),
    ],
)
def test_bad_ends_are_refused(refused, plain, words, message):
    assert refused("interpolate", plain.folder, *words).startswith(message)


def test_no_samples_are_refused(refused, variational):
    told = refused("sample", variational.folder, "-n", 0)
    assert told == "`num` must be between 1 and 100000, but is 0."
    assert refused("sample", variational.folder, "--seed", -1).startswith("`seed` must be between")


def test_more_than_fits_in_memory_is_refused(refused, variational, pictures):
    assert "`num` must be between 1 and" in refused("sample", variational.folder, "-n", 10**9)
    assert "`seed` must be between 0 and" in refused("sample", variational.folder, "--seed", 10**20)
    told = "`steps` must be between 2 and"
    assert told in refused("interpolate", variational.folder, FIRST, LAST, "--steps", 10**9)
    told = "A sheet holds at most 500 images, but 501 are asked for. Ask for fewer."
    assert refused("sample", pictures.folder, "-n", 501) == told
    ends = ("shapes/0/1", "shapes/0/2")
    assert refused("interpolate", pictures.folder, *ends, "--steps", 501) == told


def test_a_long_walk_goes_on_in_the_next_row(regard, pictures, tmp_path):
    path = tmp_path / "walk.png"
    sizes = {}
    for steps in (12, 13):
        words = ("shapes/0/1", "shapes/0/2", "--steps", steps, "--out", path)
        assert regard("interpolate", pictures.folder, *words).code == 0
        with Image.open(path) as image:
            sizes[steps] = image.size
    assert sizes[13][0] == sizes[12][0] and sizes[13][1] > 1.5 * sizes[12][1]


def test_other_tasks_have_nothing_between(refused, tiny_run):
    assert "needs a run of an autoencoder" in refused("interpolate", tiny_run.folder, "a", "b")


IMAGES = (
    "data.source.size=12",
    "data.target.size=12",
    "data.batch.max_sentences=8",
    "model.encoder.encoder.widths=[3,4]",
    "model.encoder.encoder.blocks=[1,1]",
    "model.encoder.bottleneck.dim=3",
    "model.generator.widths=[4,3]",
    "model.generator.blocks=[1,1]",
    "train.max_epochs=0",
    "train.max_steps=10",
    "train.validate_every=10",
)


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "pictures"
    request = Request(
        data=("shapes:40",),
        recipe="kingma2014-laptop",
        settings=IMAGES,
        out=folder,
        device="cpu",
    )
    return train(request)


def read_images(path):
    """The pixels that an SVG sheet holds, in their order."""
    found = re.findall(r"data:image/png;base64,([^\"]+)", path.read_text(encoding="utf-8"))
    return [np.asarray(Image.open(BytesIO(b64decode(one))).convert("RGB")) for one in found]


def test_made_up_images_stand_on_a_sheet(regard, pictures, tmp_path):
    path = tmp_path / "sheet.svg"
    found = regard("sample", pictures.folder, "-n", 3, "--out", path)
    assert (found.code, found.lines) == (0, [str(path)])
    assert len(read_images(path)) == 3


def test_ends_of_a_strip_are_the_images_as_they_are_drawn(regard, pictures, tmp_path):
    path = tmp_path / "strip.svg"
    names = ("shapes/0/1", "shapes/0/2")
    found = regard("interpolate", pictures.folder, *names, "--steps", 4, "--out", path)
    assert found.code == 0
    task = pictures.predictor
    ends = [best[0].image for best in task.predict(names)]
    between = task.decode(interpolate(*task.encode(names), 4))
    assert len(read_images(path)) == len(between) == 4
    for place, end in zip((0, -1), ends, strict=True):
        assert np.array_equal(as_picture(between[place]), end)


def test_images_are_not_searched_for(refused, pictures, tmp_path):
    line = refused("sample", pictures.folder, "search.beams=2", "--out", tmp_path / "x.svg")
    assert line.startswith("`search.beams=2` is for models that search for their answer")


def test_picture_has_a_kind_that_can_be_written(refused, pictures):
    line = refused("sample", pictures.folder, "--out", "x.gif")
    assert line == "`--out` must end in .png, .svg or .html, but is 'x.gif'."


def test_images_that_are_not_there_are_refused(refused, pictures):
    assert "nowhere.png" in refused("interpolate", pictures.folder, "nowhere.png", "shapes/0/1")
