from dataclasses import replace

import pytest

from regard.core.errors import ConfigError, DataError
from regard.runs.folder import METRICS
from regard.runs.recipes import load_recipe
from regard.runs.saved.config import CONFIG, read_config
from regard.studies import ladder
from regard.studies.ladder import FULL, LAPTOP, train_ladder

SETTINGS = (
    "train.max_steps=2",
    "train.validate_every=1",
    "train.schedule.warmup_steps=0",
    "validation.metric=loss",
)
KINDS = {
    "sutskever2014": "sutskever",
    "cho2014": "cho",
    "bahdanau2015": "bahdanau",
    "luong2015": "luong",
    "gehring2017": "convolution",
    "vaswani2017": "transformer",
    "prefix-lm": "prefix",
}
NAMES = ("bahdanau2015", "cho2014")


@pytest.fixture(scope="module")
def request_of(reverse_files):
    """Function from a folder to a request of the ladder."""

    def build(out):
        request = reverse_files.request(out)
        return replace(request, recipe=None, settings=SETTINGS, device="cpu")

    return build


@pytest.fixture(scope="module")
def trained(request_of, tmp_path_factory):
    request = request_of(tmp_path_factory.mktemp("ladder"))
    return request, train_ladder(request, only=NAMES)


def never(*_):
    raise AssertionError("nothing should be trained")


@pytest.mark.parametrize("recipes", [FULL, LAPTOP], ids=["full", "laptop"])
def test_every_model_has_a_recipe(recipes):
    kinds = {name: load_recipe(recipe).model.decoder.kind for name, recipe in recipes.items()}
    assert kinds == KINDS


def test_models_are_trained_in_order(trained):
    request, folders = trained
    assert folders == [request.out / "cho2014", request.out / "bahdanau2015"]
    assert [read_config(folder)["recipe"]["model"]["decoder"]["kind"] for folder in folders] == [
        "cho",
        "bahdanau",
    ]


def test_settings_apply_to_every_model(trained):
    for folder in trained[1]:
        assert read_config(folder)["recipe"]["train"]["max_steps"] == 2


def test_finished_models_are_not_trained_again(trained, monkeypatch):
    request, folders = trained
    monkeypatch.setattr(ladder, "train", never)
    assert train_ladder(request, only=NAMES) == folders


def test_finished_models_with_tokens_that_fit_the_data_are_not_trained_again(trained, monkeypatch):
    def read_fitted(folder):
        config = read_config(folder)
        config["recipe"]["data"]["source"]["kind"] = "bpe"
        return config

    monkeypatch.setattr(ladder, "train", never)
    monkeypatch.setattr(ladder, "read_config", read_fitted)
    request, folders = trained
    assert train_ladder(request, only=NAMES) == folders


@pytest.mark.parametrize(
    "change",
    [
        {"settings": (*SETTINGS, "seed=9")},
        {"settings": (*SETTINGS, "data.source.kind=char")},
        {"data": ("phrasebook",)},
    ],
    ids=["seed", "tokens", "data"],
)
def test_finished_model_with_other_settings_is_refused(trained, change):
    request, _ = trained
    with pytest.raises(ConfigError, match="cho2014 was trained with other settings or on other"):
        train_ladder(replace(request, **change), only=NAMES)


def test_interrupted_ladder_is_resumed(request_of, tmp_path, monkeypatch, interrupted_at):
    request = request_of(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr("regard.runs.train.choose_display", lambda: interrupted_at(1))
        assert train_ladder(request, only=NAMES) is None
    assert not (tmp_path / "bahdanau2015").exists()
    assert train_ladder(request, only=NAMES) == [tmp_path / "cho2014", tmp_path / "bahdanau2015"]


def test_model_without_a_checkpoint_is_restarted(trained, tmp_path, request_of):
    request = request_of(tmp_path)
    folder = tmp_path / "cho2014"
    folder.mkdir()
    (folder / CONFIG).write_bytes((trained[1][0] / CONFIG).read_bytes())
    assert train_ladder(request, only=NAMES)[0] == folder
    assert (folder / METRICS).exists()


def test_wrong_setting_is_found_before_anything_is_trained(request_of, tmp_path, monkeypatch):
    monkeypatch.setattr(ladder, "train", never)
    # The decoder of Cho et al. has no attention.
    wrong = replace(request_of(tmp_path), settings=("model.decoder.attention_dim=8",))
    with pytest.raises(ConfigError, match="`model.decoder.attention_dim` is not a setting"):
        train_ladder(wrong)
    assert list(tmp_path.iterdir()) == []


def test_missing_data_is_an_error(request_of, tmp_path):
    absent = replace(request_of(tmp_path / "out"), data=("absent.tsv",))
    with pytest.raises(DataError, match="'absent.tsv' does not exist"):
        train_ladder(absent, only=NAMES)


def test_error_for_an_unknown_model_suggests_a_name(request_of, tmp_path):
    with pytest.raises(
        ConfigError, match="`only` must be one of 'sutskever2014'.*but is 'cho2015'.*mean 'cho2014'"
    ):
        train_ladder(request_of(tmp_path), only=["cho2015"])


def test_single_model_is_refused(request_of, tmp_path):
    with pytest.raises(ConfigError, match="`only` must name at least two models.*but is 'cho2014'"):
        train_ladder(request_of(tmp_path), only=["cho2014"])
