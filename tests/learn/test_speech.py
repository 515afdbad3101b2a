"""Strings of tones are learned by both ways to listen, with a decoder and without."""

import pytest

from regard.runs.request import Request
from regard.runs.train import train

pytestmark = pytest.mark.learn

ALONE = ("model.ctc.weight=1.0", "search.ctc_weight=1.0")
CASES = {
    "chan2016-laptop": (),
    "speech-transformer-laptop": (),
    "chan2016-laptop without a decoder": ALONE,
}


@pytest.mark.parametrize("case", CASES)
def test_tones_are_heard(case, tmp_path, monkeypatch, value):
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "cache"))
    request = Request(
        data=("tones",),
        recipe=case.partition(" ")[0],
        settings=CASES[case],
        out=tmp_path / "run",
        device="cpu",
    )
    assert value(train(request), "wer") <= 5
