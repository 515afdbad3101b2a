import json
import sys

import pytest

from tests.huggingface_folders import ENGLISH, GERMAN, save_bert, save_marian

pytest.importorskip("transformers", reason="transformers is not installed")


@pytest.fixture
def bert(regard, tmp_path):
    """Run folder imported from a BERT checkpoint."""
    save_bert(tmp_path / "hf")
    result = regard("import", "hf", tmp_path / "hf", "--out", tmp_path / "run")
    assert result.code == 0, result
    return tmp_path / "run"


@pytest.fixture
def marian(regard, tmp_path):
    """Run folder imported from a Marian checkpoint."""
    pytest.importorskip("sentencepiece", reason="sentencepiece is not installed")
    save_marian(tmp_path / "hf")
    assert regard("import", "hf", tmp_path / "hf", "--out", tmp_path / "run").code == 0
    return tmp_path / "run"


def test_import_prints_notes_size_and_folder(regard, tmp_path):
    save_bert(tmp_path / "hf", has_head=False)
    result = regard("import", "hf", tmp_path / "hf", "--out", tmp_path / "run")
    head, parameters, folder = result.lines
    assert head == "The folder has no head that predicts masked tokens; it is newly initialised."
    assert parameters.endswith(" parameters, task 'masked_language_model'.")
    assert folder == f"Run folder: {tmp_path / 'run'}"


def test_run_is_named_after_the_folder(regard, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    save_bert(tmp_path / "tiny-bert")
    assert regard("import", "hf", "tiny-bert").lines[-1] == "Run folder: runs/tiny-bert"


def test_imported_model_predicts_a_masked_token(regard, bert):
    result = regard("predict", bert, "--json", stdin="a [MASK] b\n")
    assert result.code == 0, result
    (best, *_) = json.loads(result.out)["predictions"]
    assert len(best["tokens"]) == 1


def test_imported_translation_model_predicts_scores_and_shows(regard, marian, tmp_path):
    assert regard("predict", marian, stdin=f"{ENGLISH[0]}\n").code == 0
    pairs = tmp_path / "pairs.tsv"
    pairs.write_text(f"{ENGLISH[0]}\t{GERMAN[0]}\n", encoding="utf-8")
    assert float(regard("score", marian, pairs).out) < 0
    assert regard("show", marian, ENGLISH[0], "--target", GERMAN[0]).code == 0


def test_export_reports_the_check(regard, bert, tmp_path):
    result = regard("export", "hf", bert, "--out", tmp_path / "out")
    checked, folder = result.lines
    assert checked.startswith("Checked: `transformers` gives the same logits to ")
    assert folder == f"Hugging Face folder (bert): {tmp_path / 'out'}"


def test_export_reports_a_missing_check(regard, bert, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "transformers", None)
    result = regard("export", "hf", bert, "--out", tmp_path / "out")
    assert result.lines[0].startswith("Not checked: install `transformers`")


def test_imported_run_can_be_fine_tuned_and_exported(regard, marian, tmp_path):
    pairs = tmp_path / "pairs.tsv"
    lines = [f"{a} {n}\t{b} {n}\n" for n in range(8) for a, b in zip(ENGLISH, GERMAN, strict=False)]
    pairs.write_text("".join(lines), encoding="utf-8")
    out = tmp_path / "tuned"
    result = regard(
        "train", pairs, f"init_from={marian}", "train.max_steps=2", "train.precision=fp32",
        "--out", out, "--device", "cpu",
    )  # fmt: skip
    assert result.code == 0, result
    # The fine-tuned model can still be exported as Marian.
    assert regard("export", "hf", out, "--out", tmp_path / "out").code == 0


def test_imported_encoder_becomes_a_classifier(regard, bert, tmp_path):
    lines = []
    for number in range(40):
        text = " ".join("abcd"[number // 4**digit % 4] for digit in range(3))
        lines.append(f"{text}\t{'even' if number % 2 else 'odd'}\n")
    labelled = tmp_path / "labelled.tsv"
    labelled.write_text("".join(lines), encoding="utf-8")
    out = tmp_path / "classifier"
    result = regard(
        "train", labelled, "--recipe", "sst2-bert", f"init_from={bert}", "train.max_steps=1",
        "data.batch.max_length=12", "--out", out, "--device", "cpu",
    )  # fmt: skip
    assert result.code == 0, result
    config = json.loads((out / "config.json").read_text(encoding="utf-8"))
    assert config["recipe"]["model"]["encoder"]["dim"] == 16


def test_errors_are_one_line(refused, tmp_path, bert):
    assert "must be a Hugging Face folder" in refused("import", "hf", tmp_path / "nothing")
    again = refused("import", "hf", tmp_path / "hf", "--out", bert)
    assert "already holds a model" in again
    assert "is not a folder" in refused("export", "hf", tmp_path / "no", "--out", tmp_path / "x")
