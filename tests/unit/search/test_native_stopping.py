import pytest
import torch

from regard.core.native import kernels
from regard.search.settings import SearchConfig
from regard.search.stopping import Stopping


@pytest.mark.skipif(kernels.find_kernels() is None, reason="there is no C++ compiler")
@pytest.mark.parametrize("penalty", [0.0, 1.0])
def test_kernel_stops_searches_as_torch_does(monkeypatch, penalty):
    torch.manual_seed(0)
    beams, batch = 3, 40
    config = SearchConfig(beams=beams, length_penalty=penalty)
    steps = []
    for _ in range(6):
        totals = torch.rand(2, batch, beams).log()
        ended = torch.rand(batch, beams) < 0.4
        steps.append((totals[0].masked_fill(~ended, -torch.inf), totals[1]))

    def run():
        stopping = Stopping.start(config, torch.full((batch,), 9), num_best=1)
        results = []
        for length, (finished, active) in enumerate(steps, 1):
            stopping, is_done = stopping.update(finished, active, length=length)
            results.append((stopping.num_ended, stopping.best, is_done))
        return results

    found = run()
    monkeypatch.setattr(kernels, "find_kernels", lambda: None)
    for ours, theirs in zip(found, run(), strict=True):
        assert all(torch.equal(*pair) for pair in zip(ours, theirs, strict=True))
    share = [step[2].float().mean() for step in found]
    assert share[0] < 0.2 < share[-1]
