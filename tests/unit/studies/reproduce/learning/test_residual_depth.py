import pytest

from regard.runs.request import Request
from regard.studies.reproduce.learning import residual_depth
from regard.studies.reproduce.learning.residual_depth import (
    SETTINGS,
    gradient_norms,
    prepare,
    train_with_errors,
)

TINY = ("data.source.size=8", "model.encoder.widths=[2, 2, 2]", "model.encoder.blocks=[1, 1, 1]")


@pytest.fixture
def prepared(tmp_path):
    settings = (*SETTINGS, *TINY, "train.max_epochs=2")
    request = Request(
        data=("shapes:30",), recipe="he2016-laptop", settings=settings, out=tmp_path, device="cpu"
    )
    task, splits = prepare(request)
    splits.test[20:] = []
    return task, splits


def test_errors_are_measured_after_each_epoch(prepared, tmp_path):
    rows = train_with_errors(*prepared, tmp_path, num_train=10)
    assert [row["epoch"] for row in rows] == [1, 2]
    assert all(0 <= row[key] <= 100 for row in rows for key in ("training_error", "error"))


def test_every_convolution_has_a_gradient_norm(prepared):
    task, splits = prepared
    before = {name: value.clone() for name, value in task.model.state_dict().items()}
    norms = gradient_norms(task, splits)
    assert len(norms) == 7 and all(norm > 0 for norm in norms)  # the stem and three blocks of two
    assert all(value.equal(before[name]) for name, value in task.model.state_dict().items())


def test_layers_are_counted_as_in_the_paper():
    assert all(6 * blocks + 2 == layers for layers, blocks in residual_depth.DEPTHS.items())
