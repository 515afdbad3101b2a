from dataclasses import replace

import pytest

from regard.core.errors import ConfigError, DataError
from regard.runs import folder as runs
from regard.runs.recipes import load_recipe
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
RUNGS = ("bahdanau2015", "cho2014")


@pytest.fixture(scope="module")
def request_of(reverse_files):
    """A folder to what a person asks of the ladder."""

    def ask(out):
        request = reverse_files.request(out)
        return replace(request, recipe=None, settings=SETTINGS, device="cpu")

    return ask


@pytest.fixture(scope="module")
def climbed(request_of, tmp_path_factory):
    request = request_of(tmp_path_factory.mktemp("ladder"))
    return request, train_ladder(request, only=RUNGS)


def never(*_):
    raise AssertionError("nothing should be trained")


@pytest.mark.parametrize("recipes", [FULL, LAPTOP], ids=["full", "laptop"])
def test_every_rung_has_its_recipe(recipes):
    kinds = {name: load_recipe(recipe).model.decoder.kind for name, recipe in recipes.items()}
    assert kinds == KINDS


def test_rungs_are_climbed_from_the_lowest(climbed):
    request, folders = climbed
    assert folders == [request.out / "cho2014", request.out / "bahdanau2015"]
    assert [
        runs.read_config(folder)["recipe"]["model"]["decoder"]["kind"] for folder in folders
    ] == [
        "cho",
        "bahdanau",
    ]


def test_settings_hold_for_every_rung(climbed):
    for folder in climbed[1]:
        assert runs.read_config(folder)["recipe"]["train"]["max_steps"] == 2


def test_finished_rungs_are_not_trained_again(climbed, monkeypatch):
    request, folders = climbed
    monkeypatch.setattr(ladder, "train", never)
    assert train_ladder(request, only=RUNGS) == folders


@pytest.mark.parametrize(
    "change", [{"settings": (*SETTINGS, "seed=9")}, {"data": ("phrasebook",)}], ids=["seed", "data"]
)
def test_finished_rung_of_another_kind_is_refused(climbed, change):
    request, _ = climbed
    with pytest.raises(ConfigError, match="cho2014 was trained with other settings or on other"):
        train_ladder(replace(request, **change), only=RUNGS)


def test_interrupted_ladder_goes_on_where_it_stopped(
    request_of, tmp_path, monkeypatch, interrupted_at
):
    request = request_of(tmp_path)
    with monkeypatch.context() as patched:
        patched.setattr("regard.training.loop.find_display", lambda: interrupted_at(1))
        assert train_ladder(request, only=RUNGS) is None
    assert not (tmp_path / "bahdanau2015").exists()
    assert train_ladder(request, only=RUNGS) == [tmp_path / "cho2014", tmp_path / "bahdanau2015"]


def test_rung_that_never_began_in_earnest_begins_anew(climbed, tmp_path, request_of):
    request = request_of(tmp_path)
    folder = tmp_path / "cho2014"
    folder.mkdir()
    (folder / runs.CONFIG).write_bytes((climbed[1][0] / runs.CONFIG).read_bytes())
    assert train_ladder(request, only=RUNGS)[0] == folder
    assert (folder / runs.METRICS).exists()


def test_wrong_setting_is_found_before_anything_is_trained(request_of, tmp_path, monkeypatch):
    monkeypatch.setattr(ladder, "train", never)
    # The decoder of Cho et al. has no attention to set.
    wrong = replace(request_of(tmp_path), settings=("model.decoder.attention_dim=8",))
    with pytest.raises(ConfigError, match="`model.decoder.attention_dim` is not a setting"):
        train_ladder(wrong)
    assert list(tmp_path.iterdir()) == []


def test_missing_data_is_told(request_of, tmp_path):
    absent = replace(request_of(tmp_path / "out"), data=("absent.tsv",))
    with pytest.raises(DataError, match="'absent.tsv' is neither a file nor a data set"):
        train_ladder(absent, only=RUNGS)


def test_unknown_rung_is_named_with_its_neighbour(request_of, tmp_path):
    with pytest.raises(
        ConfigError, match="`only` must be one of 'sutskever2014'.*but is 'cho2015'.*mean 'cho2014'"
    ):
        train_ladder(request_of(tmp_path), only=["cho2015"])


def test_single_rung_is_refused(request_of, tmp_path):
    with pytest.raises(ConfigError, match="`only` must name at least two rungs.*but is 'cho2014'"):
        train_ladder(request_of(tmp_path), only=["cho2014"])
