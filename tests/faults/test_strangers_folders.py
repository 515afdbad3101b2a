"""Folders of strangers: every damaged file and every changed value is loaded or refused.

A refusal is one line and exit code 2. No command crashes, hangs, or allocates more than a gigabyte.
"""

import math
import shutil
import struct

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from tests.faults.attack import (
    FILE_DAMAGES,
    JSON_DAMAGES,
    VALUES,
    changed,
    changes_of,
    collect,
    damages_of,
    leaves,
    read_header,
    read_json,
    write_header,
    write_value,
)

CONFIG, WEIGHTS, VOCABULARY = "config.json", "model.safetensors", "source.tokenizer.json"
READING = {
    CONFIG: ["predict", "explain", "evaluate", "chat", "plot", "report", "compare", "resume"],
    WEIGHTS: ["predict", "evaluate", "resume"],
    VOCABULARY: ["predict", "evaluate", "resume"],
    "target.tokenizer.json": ["predict", "evaluate"],
    "metrics.json": ["report", "compare"],
    "predictions.json": ["report", "compare"],
    "test.jsonl": ["evaluate", "report", "compare", "chat"],
    "journal.jsonl": ["plot", "report", "resume"],
    "samples.jsonl": ["resume"],
    "resume/training.json": ["resume"],
    "resume/training.safetensors": ["resume"],
}
"""Files of a run folder, and the commands that read them."""
QUICK = ("evaluate", "report", "compare", "plot")
"""Commands that show results."""


@pytest.fixture(scope="module")
def clean(tiny_run, tmp_path_factory):
    """A run folder to be copied, without checksums: a stranger would make them fit."""
    folder = shutil.copytree(tiny_run.folder, tmp_path_factory.mktemp("clean") / "run")
    for checksums in folder.rglob("checksums.json"):
        checksums.unlink()
    return folder


@pytest.fixture(scope="module")
def attempt(commands, clean, reverse_files, tmp_path_factory):
    """Function from the name of a command and a folder to what is wrong with the outcome."""
    out = tmp_path_factory.mktemp("out")
    data = (reverse_files.train, "--valid", reverse_files.valid, "--test", reverse_files.test)

    def run(name, folder, *, is_refused=True):
        arguments = {
            "predict": ("predict", folder, "--device", "cpu"),
            "explain": ("explain", folder),
            "evaluate": ("evaluate", folder, "--device", "cpu"),
            "chat": ("chat", folder, "--device", "cpu"),
            "plot": ("plot", folder, "--out", out / "plot.svg"),
            "report": ("report", folder, "--out", out / "report.html", "--device", "cpu"),
            "compare": ("compare", folder, clean, "--out", out / "page.html"),
            "resume": ("train", *data, "--out", folder, "--resume", "--device", "cpu"),
        }[name]
        outcome = commands(*arguments)
        return outcome.fault if is_refused or outcome.code == 0 else outcome.err

    return run


def test_untouched_folder_is_read(commands, clean):
    assert commands("predict", clean, "--device", "cpu").code == 0


@pytest.mark.faults
@pytest.mark.parametrize("name", READING[CONFIG])
def test_untouched_folder_is_read_by_every_command(attempt, altered, name):
    folder = altered(lambda folder: None)
    assert attempt(name, folder, is_refused=False) == ""


@pytest.mark.parametrize("name", [CONFIG, WEIGHTS, VOCABULARY])
@pytest.mark.parametrize("damage", FILE_DAMAGES)
def test_damaged_file_is_one_message(attempt, altered, name, damage):
    folder = altered(lambda folder: FILE_DAMAGES[damage](folder / name))
    assert attempt("predict", folder) == ""


@pytest.mark.parametrize("name", [CONFIG, VOCABULARY])
@pytest.mark.parametrize("damage", JSON_DAMAGES)
def test_wrong_json_is_one_message(attempt, altered, name, damage):
    folder = altered(lambda folder: JSON_DAMAGES[damage](folder / name))
    assert attempt("predict", folder) == ""


SIZES = {
    "wide decoder": ("model.decoder.dim", 20_000),
    "wider decoder": ("model.decoder.dim", 10**12),
    "deep encoder": ("model.encoder.num_layers", 10**9),
    "long target": ("search.min_length", 10**9),
    "many beams": ("search.beams", 10**9),
    "long output": ("search.max_extra", 10**9),
    "many samples": ("search.consensus", 10**9),
    "large number": ("model.encoder.dim", 10**400),
}


@pytest.mark.parametrize("case", SIZES)
def test_sizes_beyond_the_weights_are_one_message(commands, clean, altered, case):
    name, value = SIZES[case]
    *sections, key = name.split(".")
    path = ("recipe", *sections, key)
    folder = altered(write_value(CONFIG, changed(read_json(clean / CONFIG), path, value)))
    outcome = commands("predict", folder, "--device", "cpu")
    assert outcome.fault == ""
    assert outcome.code == 2


@pytest.fixture(scope="module")
def tokenizer(clean):
    return read_json(clean / VOCABULARY)


STEP = {"type": "Replace", "pattern": {"Regex": "."}, "content": "aaaaaaaaaa"}
TOKENIZERS = {
    "padding": {"padding": {
        "strategy": {"Fixed": 10**12}, "direction": "Right", "pad_to_multiple_of": None,
        "pad_id": 0, "pad_type_id": 0, "pad_token": "<pad>",
    }},
    "truncation": {"truncation": {
        "direction": "Right", "max_length": 0, "strategy": "LongestFirst", "stride": 10,
    }},
    "long replacement": {"normalizer": {**STEP, "content": "a" * 10**6}},
    "many replacements": {"normalizer": {"type": "Sequence", "normalizers": [STEP] * 12}},
    "characters": {"normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAAAAAAA"}},
    "tokens of no length": {"pre_tokenizer": {"type": "FixedLength", "length": 0}},
    "stripped tokens": {"decoder": {
        "type": "Strip", "content": "a", "start": 10**15, "stop": 10**15,
    }},
    "no decoder": {"decoder": None},
    "template": {"post_processor": {
        "type": "TemplateProcessing", "single": [{"Sequence": {"id": "A", "type_id": 0}}] * 10**5,
        "pair": [], "special_tokens": {},
    }},
    "no unknown token": {"model": {
        "type": "WordLevel", "unk_token": "none",
        "vocab": {"<pad>": 0, "<unk>": 1, "<sos>": 2, "<eos>": 3},
    }},
    "large id": {"model": {
        "type": "WordLevel", "unk_token": "<unk>",
        "vocab": {"<pad>": 0, "<unk>": 1, "<sos>": 2, "<eos>": 2**32 - 1},
    }},
}  # fmt: skip


@pytest.mark.parametrize("case", TOKENIZERS)
def test_hostile_tokenizer_is_cleaned_or_one_message(attempt, altered, tokenizer, case):
    folder = altered(write_value(VOCABULARY, {**tokenizer, **TOKENIZERS[case]}))
    assert attempt("predict", folder) == ""


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_weights_that_are_not_finite_are_named(commands, altered, value):
    def change(folder):
        weights = load_file(folder / WEIGHTS)
        weights["decoder.embedding.weight"][1, 2] = value
        save_file(weights, folder / WEIGHTS)

    outcome = commands("predict", altered(change), "--device", "cpu")
    assert outcome.code == 2
    assert "holds NaN or infinity in decoder.embedding.weight. The training" in outcome.err
    assert outcome.fault == ""


def cases_of_header(header):
    """Yield changed headers of a weight file."""
    name, *_ = [one for one in header if one != "__metadata__"]
    for key, value in (
        ("dtype", "F8_E4M3"), ("dtype", "C64"), ("dtype", "none"), ("dtype", "I64"),
        ("shape", [10**9, 10**9]), ("shape", []), ("shape", [-1]), ("shape", "a"), ("shape", [0]),
        ("data_offsets", [0, 10**18]), ("data_offsets", [8, 0]), ("data_offsets", [0]),
    ):  # fmt: skip
        yield {**header, name: {**header[name], key: value}}
    yield {**header, "x" * 10_000: header[name]}
    yield {**header, "a\nb\x1b[31m": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}}
    yield {key: value for key, value in header.items() if key != name}
    yield {**header, "__metadata__": {"version": "x" * 1000}}
    yield {**header, "__metadata__": {"version": 3}}
    yield {**header, "__metadata__": []}
    empty = {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}
    yield header | {f"weight.{number}": empty for number in range(50_000)}


def test_changed_headers_of_weights_are_one_message(attempt, clean, altered):
    header, data = read_header(clean / WEIGHTS)
    faults = []
    for number, case in enumerate(cases_of_header(header)):
        folder = altered(lambda folder, case=case: write_header(folder / WEIGHTS, case, data))
        if fault := attempt("predict", folder):
            faults.append((number, fault))
    assert faults == []


@pytest.mark.parametrize("length", [2**63, 2**64 - 1, 2**33, 2**25, 3])
def test_wrong_length_of_a_header_is_one_message(attempt, altered, length):
    def change(folder):
        data = (folder / WEIGHTS).read_bytes()
        (folder / WEIGHTS).write_bytes(struct.pack("<Q", length) + data[8:])

    assert attempt("predict", altered(change)) == ""


@settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(choices=st.data())
def test_random_changes_of_settings_are_loaded_or_one_message(attempt, clean, altered, choices):
    config = read_json(clean / CONFIG)
    for _ in range(choices.draw(st.integers(1, 2))):
        path = choices.draw(st.sampled_from(sorted(leaves(config), key=str)))
        value = choices.draw(
            st.one_of(
                st.sampled_from(VALUES),
                st.integers(-(2**70), 2**70),
                st.floats(),
                st.text(max_size=5),
                st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
            )
        )
        config = changed(config, path, value)
    assert attempt("predict", altered(write_value(CONFIG, config))) == ""


# --- The whole attack


@pytest.mark.faults
@pytest.mark.parametrize("name", READING)
def test_every_damage_of_every_file(attempt, altered, name):
    assert collect(damages_of(name, is_json=".json" in name), attempt, altered, READING[name]) == {}


@pytest.mark.faults
@pytest.mark.parametrize("command", ["predict", "explain"])
def test_every_change_of_every_setting(attempt, clean, altered, command):
    config = read_json(clean / CONFIG)
    assert collect(changes_of(CONFIG, config), attempt, altered, [command]) == {}


RESULTS = ("metrics.json", "predictions.json", "test.jsonl", "journal.jsonl")


@pytest.mark.faults
@pytest.mark.parametrize(
    ("name", "command"),
    [(name, command) for name in RESULTS for command in READING[name] if command in QUICK],
)
def test_every_change_of_every_result(attempt, clean, altered, name, command):
    value = read_json(clean / name)
    cases = changes_of(name, value[:3] if name == "predictions.json" else value, limit=60)
    assert collect(cases, attempt, altered, [command]) == {}


@pytest.mark.faults
def test_every_change_of_a_tokenizer(attempt, altered, tokenizer):
    assert collect(changes_of(VOCABULARY, tokenizer), attempt, altered, ["predict"]) == {}
