import pytest

from regard.data.datasets.synthetic import scenes
from regard.runs.request import Request
from regard.runs.saved.config import read_config
from regard.studies.reproduce.applications import show_attend_tell as captions
from regard.studies.reproduce.applications.show_attend_tell import (
    EXACT,
    POINTING,
    show_attend_tell,
)

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
TINY_DECODER = ("model.decoder.embedding_dim=4", "model.decoder.attention_dim=4")


def tiny_request(*, settings=(), **others):
    return Request(settings=(*settings, *TINY, *TINY_DECODER), **others)


@pytest.fixture(scope="module")
def reproduced(tmp_path_factory):
    """Folder and findings after one step on a few small scenes."""
    folder = tmp_path_factory.mktemp("reproduced")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scenes, "NUM_HELD_OUT", 30)
        patch.setattr(captions, "DATA", "scenes:pairs,40")
        patch.setattr(captions, "Request", tiny_request)
        return folder, show_attend_tell(5, folder)


def test_all_models_are_evaluated(reproduced):
    _, findings = reproduced
    (numbers,) = findings.tables.values()
    assert list(numbers) == ["soft", "hard"]
    for row in numbers.values():
        assert row[EXACT] == 0 and 0 <= row[POINTING] <= 100


def test_claims_do_not_hold_for_untrained_models(reproduced):
    _, findings = reproduced
    assert [claim.holds for claim in findings.claims[:2]] == [False] * 2


def test_plots_are_saved(reproduced, tmp_path):
    _, findings = reproduced
    findings.save(tmp_path, title="Captions", description="", provenance={"seed": 5})
    assert (tmp_path / "show-attend-tell.svg").exists()
    assert (tmp_path / "show-attend-tell.png").exists()


def test_models_have_the_given_seed(reproduced):
    folder, _ = reproduced
    assert read_config(folder / "hard-5")["recipe"]["seed"] == 5
