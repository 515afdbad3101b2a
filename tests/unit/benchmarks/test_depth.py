"""Errors of networks by epoch, and the epoch at which they are compared."""

from depth import errors_at, last_common_epoch, prepare, train_with_errors

from regard.runs.request import Request

TINY = (
    "data.source.size=8", "model.encoder.widths=[2, 2]", "model.encoder.blocks=[1, 1]",
    "train.max_epochs=2",
)  # fmt: skip


def test_errors_are_measured_after_each_epoch(tmp_path):
    request = Request(
        data=("shapes:30",), recipe="he2016-laptop", settings=TINY, out=tmp_path, device="cpu"
    )
    task, splits = prepare(request)
    splits.test[20:] = []
    rows = train_with_errors(task, splits, tmp_path, num_train=10)
    assert [row["epoch"] for row in rows] == [1, 2]
    assert all(0 <= row[key] <= 100 for row in rows for key in ("training_error", "error"))


def test_networks_are_compared_at_the_last_epoch_that_all_completed():
    curves = {"a": [10, 20, 30], "b": [10, 20, 23]}  # b was stopped in its third epoch
    rows = [
        {"curve": {"epoch": [1, 2, 3], "step": steps, "training_error": [9, 8, 7], "error": steps}}
        for steps in curves.values()
    ]
    assert last_common_epoch(rows) == 2
    assert errors_at(rows[1], 2)["error"]["value"] == 20
