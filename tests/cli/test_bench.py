import json

import pytest

from regard.bench import matrix_rate, train
from regard.bench.decode import bench as decode
from regard.bench.peers import table

TINY = ("--size", "tiny", "--rounds", 2, "--seconds", 0.01, "--no-compile", "--device", "cpu")
QUICK = (*TINY, "--precision", "fp32")


@pytest.fixture(autouse=True)
def quick_measurements(monkeypatch):
    """Measure small matrices, and no memory, which takes processes of their own."""
    monkeypatch.setattr(matrix_rate, "SQUARE", {"cpu": 16})
    monkeypatch.setattr(train, "measure_process", lambda entry, settings: 3 * 2**29)
    monkeypatch.setattr(decode, "measure_process", lambda entry, settings: 3 * 2**29)


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


DECODE = ("--rounds", 1, "--sentences", 6, "--batch", 3, "--device", "cpu")


def test_decoding_of_a_run_is_compared(regard, tiny_run):
    done = regard("bench", "decode", tiny_run.folder, *DECODE, "--batch-mates", 4)
    assert done.code == 0
    words = [line.split() for line in done.lines]
    rows = {(row[0], row[2]): row for row in words if row[1:2] == ["fp32"] and len(row) == 9}
    assert rows.keys() == {("regard", "1"), ("regard", "5"), ("loop", "1"), ("loop", "5")}
    assert rows["regard", "5"][6:] == rows["loop", "5"][6:]  # BLEU, share of equal outputs
    assert any(row[:2] == ["regard", "fp32"] and row[-2:] == ["1,536", "MiB"] for row in words)
    assert ["hf", "fp32", *["–"] * 6] in words
    (reason,) = (line for line in done.lines if line.startswith("hf fp32: "))
    assert "but is 'rnn'" in reason
    assert (
        "regard fp32, 1 beam: 0 of 4 outputs differ in a batch and alone, 0 with a margin above "
        "0.0001" in done.lines
    )


def test_json_of_decoding_has_all_measurements(regard, tiny_run, reverse_files):
    options = ("--peer", "none", "--beam", "2", "--json")
    report = json.loads(
        regard("bench", "decode", tiny_run.folder, reverse_files.valid, *DECODE, *options).out
    )
    assert (report["data"], report["sentences"]) == ([reverse_files.valid], 6)
    assert report["commit"] is not None and report["hardware"] and report["torch"]
    (result,) = report["results"]
    (search,) = result["searches"]
    assert (search["beams"], len(search["turns"]), search["equal"]) == (2, 1, 1.0)
    assert report["batch_mates"] == []


def test_decoding_needs_a_run(refused):
    message = refused("bench", "decode")
    assert "regard train multi30k --recipe vaswani2017-small --out runs/small" in message


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        (("--peer", "hf,ctranslat2"), ("--peer", "'ctranslat2'", "'ctranslate2'")),
        (("--precision", "fp16"), ("--precision", "'fp16'", "'bf16'")),
        (("--beam", "1,x"), ("--beam", "whole numbers", "'x'")),
        (("--beam", "0"), ("--beam", "at least 1")),
        (("--batch-mates", "-1"), ("--batch-mates", "at least 0")),
    ],
)
def test_wrong_options_of_decoding_are_refused(refused, tiny_run, options, parts):
    message = refused("bench", "decode", tiny_run.folder, *options)
    assert all(part in message for part in parts)
