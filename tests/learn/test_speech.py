"""Speech recipes learn strings of tones, with and without a decoder."""

import pytest

from regard.runs.request import Request
from regard.runs.train import train

pytestmark = pytest.mark.learn

CTC_ONLY = ("model.ctc.weight=1.0", "search.ctc_weight=1.0")
CASES = {
    "chan2016-laptop": (),
    "speech-transformer-laptop": (),
    "chan2016-laptop without a decoder": CTC_ONLY,
}


@pytest.mark.parametrize("case", CASES)
def test_tones_are_transcribed(case, tmp_path, monkeypatch, value):
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "cache"))
    request = Request(
        data=("tones",),
        recipe=case.partition(" ")[0],
        settings=CASES[case],
        out=tmp_path / "run",
        device="cpu",
    )
    assert value(train(request), "wer") <= 5
