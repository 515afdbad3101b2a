import json

import pytest

from regard.bench import matrix_rate, train
from regard.bench.peers import table

TINY = ("--size", "tiny", "--rounds", 2, "--seconds", 0.01, "--no-compile", "--device", "cpu")
QUICK = (*TINY, "--precision", "fp32")


@pytest.fixture(autouse=True)
def quick_measurements(monkeypatch):
    """Measure small matrices, and no memory, which takes processes of their own."""
    monkeypatch.setattr(matrix_rate, "SQUARE", {"cpu": 16})
    monkeypatch.setattr(train, "measure_process", lambda entry, settings: 3 * 2**29)


RESULT = {
    "contender": str,
    "precision": str,
    "error": str,
    "note": str,
    "parameters": int,
    "tokens_per_second": float,
    "turns": list,
    "ratio": float,
    "flops_per_second": float,
    "share": float,
    "peak_bytes": int,
    "compile_seconds": float,
}


def test_json_has_all_measurements(regard):
    pytest.importorskip("transformers")
    done = regard("bench", "train", *QUICK, "--peer", "hf,torch", "--json", "--threads", 1)
    report = json.loads(done.out)
    assert (report["threads"], report["device"], report["seed"]) == (1, "cpu", 1)
    assert report["commit"] is not None and report["hardware"] and report["torch"]
    (size,) = report["sizes"]
    assert size["size"] == "tiny"
    assert size["flops_per_token"] > 0
    rates = size["matrix_rates"]["fp32"]
    assert min(rates["model"], rates["square"]) > 0
    assert [one["contender"] for one in size["results"]] == ["regard", "hf", "torch"]
    for one in size["results"]:
        assert {key: type(value) for key, value in one.items()} == RESULT
        assert len(one["turns"]) == 2


def test_table_lists_contenders_and_the_reason_of_a_failure(regard, monkeypatch):
    def missing(name):
        raise table.PackageNotFoundError(name)

    monkeypatch.setattr(table, "version", missing)
    done = regard("bench", "train", *QUICK, "--peer", "hf")
    assert done.code == 0
    words = [line.split() for line in done.lines]
    assert ["hf", "fp32", *["–"] * 6] in words
    assert "hf fp32: `transformers` is not installed." in done.lines
    (ours,) = (row for row in words if row[:2] == ["regard", "fp32"])
    assert ours[3] == "–"
    assert "1.50 GiB" in done.out


def test_output_is_written_to_a_file(regard, tmp_path):
    path = tmp_path / "bench.json"
    done = regard("bench", "train", *QUICK, "--peer", "none", "--json", "--out", path)
    assert done.out == f"{path}\n"
    (size,) = json.loads(path.read_text(encoding="utf-8"))["sizes"]
    assert [one["contender"] for one in size["results"]] == ["regard"]


def test_padded_batches_in_bf16(regard):
    options = ("--peer", "torch", "--padded", "--precision", "bf16", "--json")
    report = json.loads(regard("bench", "train", *TINY, *options).out)
    (size,) = report["sizes"]
    assert report["is_padded"]
    assert size["tokens_per_step"] < size["pairs"] * size["length"]
    assert [one["error"] for one in size["results"]] == ["", ""]
    assert {one["precision"] for one in size["results"]} == {"bf16"}


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        (("--size", "bsae"), ("--size", "'bsae'", "'base'", "'gehring2017'")),
        (("--peer", "hf,trch"), ("--peer", "'trch'", "'torch'")),
        (("--precision", "fp16"), ("--precision", "'fp16'", "'bf16'")),
        (("--rounds", "0"), ("--rounds", "at least 1")),
    ],
)
def test_wrong_options_are_refused(refused, options, parts):
    message = refused("bench", "train", *options)
    assert all(part in message for part in parts)


def test_group_prints_its_commands(regard):
    assert "train" in regard("bench").out
