import pytest
import torch

from regard.bench.contender import Contender
from regard.bench.turns import WARMUP_STEPS, measure_in_turns
from regard.core.errors import RegardError

CPU = torch.device("cpu")


class Scripted(Contender):
    """Contender whose steps take given times; the first steps take longer."""

    num_parameters = 10

    def __init__(self, name, calls, *, seconds=0.1, compile_seconds=0.0, fails_after=None):
        self.name, self.calls = name, calls
        self.seconds, self.extra = seconds, compile_seconds
        self.fails_after = fails_after
        self.is_closed = False

    def run(self, num_steps):
        self.calls.append((self.name, num_steps))
        if self.fails_after is not None and len(self.calls) > self.fails_after:
            raise RuntimeError("out of memory\nTried to allocate 1 GiB")
        extra, self.extra = self.extra, 0.0
        return num_steps * self.seconds + extra

    def close(self):
        self.is_closed = True


def measure(contenders, **options):
    defaults = {"rounds": 3, "seconds": 1.0, "device": CPU}
    builders = {name: lambda one=one: one for name, one in contenders.items()}
    return measure_in_turns(builders, **(defaults | options))


def test_contenders_alternate_after_the_warm_up():
    calls = []
    names = {name: Scripted(name, calls, seconds=0.5) for name in ("a", "b")}
    measure(names)
    # A step takes half the time of a turn, so the second warm-up is long enough.
    warm_up = [("a", WARMUP_STEPS), ("a", 1), ("b", WARMUP_STEPS), ("b", 1)]
    assert calls == warm_up + [("a", 2), ("b", 2)] * 3
    assert all(one.is_closed for one in names.values())


def test_turns_are_as_long_as_asked_and_seconds_are_per_step():
    one = measure({"a": Scripted("a", [], seconds=0.01)})["a"]
    assert one.steps_per_turn == pytest.approx(100, abs=1)
    assert one.turns == pytest.approx([0.01] * 3)
    assert (one.num_parameters, one.error, one.peak_bytes) == (10, "", None)


def test_time_of_compilation_is_reported_separately():
    one = measure({"a": Scripted("a", [], compile_seconds=7.0)})["a"]
    assert one.compile_seconds == pytest.approx(7.0)
    assert one.turns == pytest.approx([0.1] * 3)


def test_other_measurements_take_part_in_every_round():
    calls = []
    measure({"a": Scripted("a", calls, seconds=1.0)}, each_round=lambda: calls.append("other"))
    assert calls[2:] == ["other", ("a", 1)] * 3


def test_contender_that_fails_in_a_turn_is_left_out():
    calls = []
    failing = Scripted("a", [], fails_after=4)
    found = measure({"a": failing, "b": Scripted("b", calls)})
    assert found["a"].error == "RuntimeError: out of memory"
    assert found["a"].turns == []
    assert failing.is_closed
    assert len(found["b"].turns) == 3


def test_contender_that_cannot_be_built_is_left_out():
    def refuse():
        raise RegardError("`transformers` is not installed.")

    builders = {"a": refuse, "b": lambda: Scripted("b", [])}
    found = measure_in_turns(builders, rounds=1, seconds=1.0, device=CPU)
    assert found["a"].error == "`transformers` is not installed."
    assert len(found["b"].turns) == 1


def test_contenders_are_closed_after_an_interruption():
    contender = Scripted("a", [])

    def interrupt():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        measure({"a": contender}, each_round=interrupt)
    assert contender.is_closed
