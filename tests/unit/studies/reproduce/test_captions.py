import pytest

from regard.data.datasets.synthetic import scenes
from regard.runs import folder as runs
from regard.runs.request import Request
from regard.studies.reproduce import captions
from regard.studies.reproduce.captions import EXACT, MODELS, POINTING, show_attend_tell

TINY = (
    "data.source.size=16",
    "model.encoder.dim=4",
    "model.encoder.num_layers=1",
    "model.encoder.num_heads=2",
    "model.encoder.feed_forward_dim=4",
    "model.encoder.grid.widths=[4]",
    "model.encoder.grid.blocks=[1]",
    "model.decoder.dim=4",
    "train.max_steps=1",
    "train.max_epochs=0",
)
TINY_LSTM = ("model.decoder.embedding_dim=4", "model.decoder.attention_dim=4")
TINY_BLOCKS = ("model.decoder.num_heads=2", "model.decoder.feed_forward_dim=4")


def request_little(*, settings=(), recipe, **others):
    decoder = TINY_BLOCKS if recipe == MODELS["transformer"] else TINY_LSTM
    return Request(settings=(*settings, *TINY, *decoder), recipe=recipe, **others)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """What all models find after one step on a few small scenes, and their folder."""
    folder = tmp_path_factory.mktemp("made")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scenes, "NUM_HELD_OUT", 30)
        patch.setattr(captions, "DATA", "scenes:40")
        patch.setattr(captions, "Request", request_little)
        findings = show_attend_tell(5, folder)
        weights = [(folder / f"{name}-5" / runs.WEIGHTS).stat().st_mtime_ns for name in MODELS]
        again = show_attend_tell(5, folder)
        kept = [(folder / f"{name}-5" / runs.WEIGHTS).stat().st_mtime_ns for name in MODELS]
    return folder, findings, again, weights == kept


def test_all_captioners_are_measured(made):
    _, findings, _, _ = made
    assert list(findings.numbers) == ["soft", "hard", "transformer"]
    for row in findings.numbers.values():
        assert row[EXACT] == 0 and 0 <= row[POINTING] <= 100


def test_what_has_not_learned_is_not_as_expected(made):
    _, findings, _, _ = made
    held = {relation.claim: relation.holds for relation in findings.relations}
    assert not held["Soft attention writes 95 of 100 captions exactly."]
    assert not held["A transformer writes 95 of 100 captions exactly."]
    assert not held["Hard attention writes most captions exactly."]


def test_runs_that_are_there_are_taken(made):
    _, findings, again, is_kept = made
    assert is_kept
    assert again.numbers == findings.numbers


def test_pictures_and_numbers_are_saved(made, tmp_path):
    _, findings, _, _ = made
    findings.save(tmp_path, {"seed": 5})
    for model in ("", "-hard", "-transformer"):
        name = f"show-attend-tell{model}"
        assert (tmp_path / f"{name}.svg").exists() and (tmp_path / f"{name}.png").exists()


def test_seed_of_the_models_is_the_one_asked_for(made):
    folder, *_ = made
    assert runs.read_config(folder / "hard-5")["recipe"]["seed"] == 5
