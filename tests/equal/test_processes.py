"""Training by two processes equals training by one, for several families of models."""

import json
from dataclasses import asdict

import pytest

from regard.core.files import read_json_lines
from regard.data.example import Example
from regard.data.text.readers import write_examples
from regard.runs import train as training
from regard.runs.recipes import load_recipe
from regard.runs.request import Request
from regard.training.checkpoint import read_weights
from tests.fixtures.tasks import make_sentence, shrink
from tests.processes import run_processes

FAMILIES = {
    "bahdanau2015-laptop": lambda text, number: Example(text, text.upper()),
    "vaswani2017-tiny": lambda text, number: Example(text, text.upper()),
    "sst2-transformer": lambda text, number: Example(text, ("left", "right")[number % 2]),
    "liu2019-laptop": lambda text, number: Example(text),
    "gpt-laptop": lambda text, number: Example(text),
}
"""Examples of numbers by recipe."""


def write_data(folder, example):
    """Write training, validation and test examples; 25 examples make batches of 1 to 4."""
    files = {}
    for first, (side, num) in zip(
        (0, 100, 200), (("data", 25), ("valid", 4), ("test", 4)), strict=True
    ):
        examples = [example(make_sentence(n), n) for n in range(first, first + num)]
        files[side] = folder / f"{side}.{'jsonl' if examples[0].target else 'txt'}"
        if examples[0].target:
            write_examples(files[side], examples)
        else:
            files[side].write_text("".join(f"{one.source}\n" for one in examples))
    return files


def without_dropout(values, path=""):
    """Return overrides that set all dropout probabilities of a recipe to 0."""
    for key, value in values.items():
        if isinstance(value, dict):
            yield from without_dropout(value, f"{path}{key}.")
        elif "dropout" in key and value:
            yield f"{path}{key}={json.dumps(0.0)}"


def make_request(name, folder, out, *settings):
    values = asdict(load_recipe(name))
    files = write_data(folder, FAMILIES[name])
    return Request(
        **files,
        recipe=name,
        # Adam divides gradients by their size, rounding errors of zero gradients as well.
        settings=(
            *shrink(values),
            *without_dropout(values),
            "train.optimizer.kind=sgd",
            "train.optimizer.learning_rate=0.1",
            "train.max_steps=5",
            "train.validate_every=4",
            *settings,
        ),
        out=out,
        device="cpu",
    )


def train_quickly(request):
    """Train without a report."""
    training.write_report = lambda *args, **options: None
    result = training.train(request)
    return result.evaluation is not None


def read_run(folder):
    rows = read_json_lines(folder / "journal.jsonl")
    losses = [row[name] for row in rows for name in ("loss", "gradient_norm") if name in row]
    return losses, read_weights(folder / "resume" / "model.safetensors")


def assert_equal_runs(ours, theirs):
    (losses, weights), (others, expected) = read_run(ours), read_run(theirs)
    assert losses == pytest.approx(others, abs=1e-5)
    assert len(losses) > 6
    assert weights.keys() == expected.keys()
    for name, tensor in weights.items():
        assert (tensor - expected[name]).abs().max() < 1e-5, name


QUICK = {("bahdanau2015-laptop", "ddp"), ("vaswani2017-tiny", "fsdp"), ("gpt-laptop", "ddp")}
CASES = [
    pytest.param(name, parallel, marks=() if (name, parallel) in QUICK else pytest.mark.faults)
    for name in FAMILIES
    for parallel in ("ddp", "fsdp")
]


@pytest.mark.parametrize(("name", "parallel"), CASES)
def test_two_processes_train_as_one(tmp_path, name, parallel, monkeypatch):
    monkeypatch.setattr(training, "write_report", None)
    train_quickly(make_request(name, tmp_path, tmp_path / "one"))
    request = make_request(name, tmp_path, tmp_path / "two", f"train.parallel={parallel}")
    assert run_processes(2, train_quickly, request) == [True, False]
    assert_equal_runs(tmp_path / "two", tmp_path / "one")
    ours, theirs = (read_json_lines(tmp_path / one / "samples.jsonl") for one in ("two", "one"))
    assert [(row["step"], row["source"]) for row in ours] == [
        (row["step"], row["source"]) for row in theirs
    ]
    assert {row["step"] for row in ours} == {4, 5}
