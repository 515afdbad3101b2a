import json
import os

import pytest
import torch
from safetensors.torch import load_file, save_file

from regard.core.errors import CheckpointError, ConfigError
from regard.interop.huggingface.load import import_folder
from regard.runs.folder import load

WORDS = "bert.embeddings.word_embeddings.weight"


def read(folder, tmp_path):
    return import_folder(folder.path, tmp_path / "run")


def assert_refused(folder, tmp_path, *, match, error=CheckpointError):
    with pytest.raises(error, match=match):
        read(folder, tmp_path)
    # Nothing is left behind, hidden or not.
    assert {path.name for path in tmp_path.iterdir()} == {"bert"}


def test_folder_becomes_a_run(folder, tmp_path):
    task = read(folder, tmp_path).task
    again = load(tmp_path / "run", "cpu")
    assert again.recipe == task.recipe
    assert all(
        torch.equal(a, b)
        for a, b in zip(again.model.parameters(), task.model.parameters(), strict=True)
    )
    # Two runs of a char model: the same text has the same log-probability.
    assert again.predict(["a <mask> c"])[0][0].tokens == task.predict(["a <mask> c"])[0][0].tokens


def test_half_precision_is_converted_with_a_note(folder, tmp_path):
    expected = load_file(folder.path / "model.safetensors")[WORDS].to(torch.bfloat16).float()
    folder.change(lambda tensors: tensors.update({WORDS: tensors[WORDS].to(torch.bfloat16)}))
    imported = read(folder, tmp_path)
    assert imported.notes == ["Converted from bfloat16 to float32: 1 of 26 weights."]
    assert torch.equal(imported.task.model.encoder.embedding.weight, expected)


def test_weights_in_several_files_are_read(folder, tmp_path):
    expected = read(folder, tmp_path).task.model.state_dict()
    path = folder.path / "model.safetensors"
    tensors = load_file(path)
    names, index = sorted(tensors), {}
    for number, part in enumerate((names[::2], names[1::2])):
        file = f"model-{number}.safetensors"
        save_file({name: tensors[name] for name in part}, folder.path / file)
        index |= dict.fromkeys(part, file)
    path.unlink()
    written = json.dumps({"weight_map": index})
    (folder.path / "model.safetensors.index.json").write_text(written, encoding="utf-8")
    loaded = import_folder(folder.path, tmp_path / "again").task.model.state_dict()
    assert all(torch.equal(loaded[name], tensor) for name, tensor in expected.items())


def test_index_with_files_in_other_folders_is_refused(folder, tmp_path):
    (folder.path / "model.safetensors").rename(tmp_path / "bert" / "other.safetensors")
    index = json.dumps({"weight_map": {WORDS: "../other.safetensors"}})
    (folder.path / "model.safetensors.index.json").write_text(index, encoding="utf-8")
    assert_refused(folder, tmp_path, match="must name files beside it under `weight_map`, but")


def test_legacy_names_of_norm_weights_are_read(folder, tmp_path):
    expected = read(folder, tmp_path).task.model.state_dict()

    def rename(tensors):
        for name in list(tensors):
            if "LayerNorm" in name:
                old = name.replace(".weight", ".gamma").replace(".bias", ".beta")
                tensors[old] = tensors.pop(name)

    folder.change(rename)
    loaded = import_folder(folder.path, tmp_path / "again").task.model.state_dict()
    assert all(torch.equal(loaded[name], tensor) for name, tensor in expected.items())


def test_all_faults_of_the_weights_are_listed_at_once(folder, tmp_path):
    def damage(tensors):
        for number in range(5):
            tensors[f"bert.extra.{number}"] = torch.zeros(2)
        del tensors["bert.encoder.layer.0.output.dense.bias"]
        name = "bert.embeddings.position_embeddings.weight"
        tensors[name] = tensors[name][:4].clone()
        tensors["bert.embeddings.LayerNorm.bias"] = torch.zeros(8, dtype=torch.int8)
        tensors["cls.predictions.decoder.weight"] = tensors[WORDS] + 1

    folder.change(damage)
    assert_refused(
        folder,
        tmp_path,
        match=(
            r"^The weights do not match config\.json; "
            r"1 missing: bert\.encoder\.layer\.0\.output\.dense\.bias; "
            r"5 unexpected: bert\.extra\.0, bert\.extra\.1, bert\.extra\.2 and 2 more; "
            r"1 of another shape: bert\.embeddings\.position_embeddings\.weight is 4 x 8 but must "
            r"be 9 x 8; 1 not tied, as they must be: cls\.predictions\.decoder\.weight differs "
            r"from bert\.embeddings\.word_embeddings\.weight; "
            r"1 not floating-point numbers: bert\.embeddings\.LayerNorm\.bias \(int8\)\.$"
        ),
    )


def test_incomplete_head_is_refused(folder, tmp_path):
    folder.change(lambda tensors: tensors.pop("cls.predictions.bias"))
    assert_refused(folder, tmp_path, match=r"1 missing: cls\.predictions\.bias\.$")


def test_all_unsupported_options_are_listed_at_once(folder, tmp_path):
    folder.configure(
        hidden_act="gelu_new",
        position_embedding_type="relative_key",
        is_decoder=True,
        quantization_config={"bits": 4},
    )
    assert_refused(
        folder,
        tmp_path,
        error=ConfigError,
        match=(
            r"^This 'bert' model cannot be imported: `hidden_act` must be 'gelu', but is "
            r"'gelu_new'; `position_embedding_type` must be 'absolute', but is 'relative_key'; "
            r"`is_decoder` must be false, but is true; `quantization_config` must be absent: "
            r"quantised weights are not read\.$"
        ),
    )


def test_unknown_model_type_is_refused_with_the_supported_ones(folder, tmp_path):
    folder.configure(model_type="berta")
    match = r"^`model_type` must be one of 'bert', 'roberta', .*'marian', 'vit', but is 'berta'\."
    assert_refused(folder, tmp_path, error=ConfigError, match=match)


def test_size_of_the_wrong_type_is_refused(folder, tmp_path):
    folder.configure(hidden_size="large")
    match = "`hidden_size` must be an integer, but is 'large'"
    assert_refused(folder, tmp_path, error=ConfigError, match=match)


def test_padding_token_must_be_the_vocabularys(folder, tmp_path):
    folder.configure(pad_token_id=1)
    match = r"^`pad_token_id` must be the vocabulary's padding token \(0\), but is 1\.$"
    assert_refused(folder, tmp_path, error=ConfigError, match=match)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json"])
def test_missing_file_is_named(folder, tmp_path, name):
    (folder.path / name).unlink()
    assert_refused(folder, tmp_path, match=rf"must .*{name}.*, but has (none|neither)\.$")


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "tokenizer.json"])
def test_damaged_file_is_named(folder, tmp_path, name):
    path = folder.path / name
    path.write_bytes(path.read_bytes()[:20])
    assert_refused(folder, tmp_path, match=rf"{name} is .*damaged")


def test_config_without_a_model_type_is_refused(folder, tmp_path):
    (folder.path / "config.json").write_text("{}", encoding="utf-8")
    assert_refused(folder, tmp_path, match=r"must have a `model_type` \(.+'vit'\), but has none\.")


def test_file_of_torch_is_read_without_pickle(folder, tmp_path):
    weights = load_file(folder.path / "model.safetensors")
    (folder.path / "model.safetensors").unlink()
    torch.save(weights, folder.path / "pytorch_model.bin")
    found = read(folder, tmp_path).task.model.state_dict()
    expected = weights["bert.embeddings.word_embeddings.weight"]
    assert torch.equal(found["encoder.embedding.weight"], expected)


def test_pickle_with_code_is_refused_and_not_run(folder, tmp_path):
    class Command:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "made"),)

    (folder.path / "model.safetensors").unlink()
    torch.save({"weight": Command()}, folder.path / "pytorch_model.bin")
    assert_refused(folder, tmp_path, match=r"must hold tensors .* calls posix mkdir\)\. Save the")


def test_existing_run_is_kept(folder, tmp_path):
    read(folder, tmp_path)
    before = (tmp_path / "run" / "config.json").stat().st_mtime_ns
    with pytest.raises(ConfigError, match=r"already holds a model\. Replace it \(--force\)"):
        read(folder, tmp_path)
    folder.configure(hidden_act="relu")
    with pytest.raises(ConfigError, match="`hidden_act` must be 'gelu'"):
        import_folder(folder.path, tmp_path / "run", is_forced=True)
    assert (tmp_path / "run" / "config.json").stat().st_mtime_ns == before


def test_existing_run_is_replaced_if_forced(folder, tmp_path):
    read(folder, tmp_path)
    (tmp_path / "run" / "report.html").touch()
    import_folder(folder.path, tmp_path / "run", is_forced=True)
    assert not (tmp_path / "run" / "report.html").exists()
    assert {path.name for path in tmp_path.iterdir()} == {"bert", "run"}


def test_folder_without_a_model_is_never_replaced(folder, tmp_path):
    (tmp_path / "letters").mkdir()
    (tmp_path / "letters" / "dear.txt").touch()
    with pytest.raises(ConfigError, match="letters contains files, but no model"):
        import_folder(folder.path, tmp_path / "letters", is_forced=True)


def test_output_that_contains_the_input_is_refused(folder):
    for out in (folder.path, folder.path.parent):
        with pytest.raises(ConfigError, match="^`--out` must not contain .+, but is"):
            import_folder(folder.path, out, is_forced=True)


def test_output_that_is_a_file_is_refused(folder, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ConfigError, match=r"^`--out` must be a folder, but .+ is a file\.$"):
        import_folder(folder.path, tmp_path / "file")
