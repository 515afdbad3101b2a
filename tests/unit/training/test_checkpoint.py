import contextlib
import shutil
from pathlib import Path

import pytest
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import nn

from regard.core import tensor_files
from regard.core.checksums import add_checksums
from regard.core.errors import CheckpointError
from regard.core.files import read_json, write_json
from regard.training.checkpoint import (
    find_training,
    load_training,
    load_weights,
    read_weights,
    remove_training,
    save_training,
    save_weights,
)
from regard.training.updates.averages import Averages, average_weights


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(5, 3)
        self.projection = nn.Linear(3, 5)
        self.projection.weight = self.embedding.weight


def filled(model, value):
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.fill_(value)
    return model


def trained(model, num_steps=2):
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)
    for _ in range(num_steps):
        optimizer.zero_grad()
        model(torch.ones(1, 2)).sum().backward()
        optimizer.step()
    return optimizer


def test_saved_weights_load_unchanged(tmp_path):
    model, other = nn.Linear(3, 2), nn.Linear(3, 2)
    save_weights(model, tmp_path / "model.safetensors")
    load_weights(other, tmp_path / "model.safetensors")
    assert torch.equal(other.weight, model.weight) and torch.equal(other.bias, model.bias)


def test_file_metadata_has_the_version(tmp_path):
    save_weights(nn.Linear(3, 2), tmp_path / "model.safetensors")
    with safe_open(tmp_path / "model.safetensors", framework="pt") as file:
        assert file.metadata() == {"version": "1"}


def test_tied_weights_are_stored_once(tmp_path):
    save_weights(Tied(), tmp_path / "model.safetensors")
    names = set(read_weights(tmp_path / "model.safetensors"))
    assert names == {"embedding.weight", "projection.bias"}


def test_tied_weights_stay_tied_and_filled_after_loading(tmp_path):
    model, other = Tied(), Tied()
    save_weights(model, tmp_path / "model.safetensors")
    load_weights(other, tmp_path / "model.safetensors")
    assert other.projection.weight is other.embedding.weight
    assert torch.equal(other.projection.weight, model.embedding.weight)


def test_error_lists_all_mismatched_weights(tmp_path):
    path = tmp_path / "model.safetensors"
    save_file({"weight": torch.zeros(2, 2), "extra": torch.zeros(1)}, path)
    with pytest.raises(CheckpointError) as error:
        load_weights(nn.Linear(3, 2), path)
    assert "bias is missing; " in str(error.value)
    assert "weight is 2 x 2 but must be 2 x 3" in str(error.value)
    assert "extra is unexpected" in str(error.value)


def test_error_lists_all_names_of_a_missing_tied_weight(tmp_path):
    path = tmp_path / "model.safetensors"
    save_file({"projection.bias": torch.zeros(5)}, path)
    with pytest.raises(CheckpointError, match="embedding.weight = projection.weight is missing"):
        load_weights(Tied(), path)


def test_mismatch_leaves_the_model_unchanged(tmp_path):
    path = tmp_path / "model.safetensors"
    save_file({"weight": torch.zeros(2, 3)}, path)
    model = filled(nn.Linear(3, 2), 1.0)
    with pytest.raises(CheckpointError):
        load_weights(model, path)
    assert torch.equal(model.weight, torch.ones(2, 3))


@pytest.mark.parametrize("share", [0.0, 0.1, 0.9])
def test_truncated_file_is_reported_as_damaged(tmp_path, share):
    path = tmp_path / "model.safetensors"
    save_weights(nn.Linear(3, 2), path)
    data = path.read_bytes()
    path.write_bytes(data[: int(share * len(data))])
    with pytest.raises(CheckpointError, match=r"model.safetensors is damaged \([^\n]*Copy it"):
        load_weights(nn.Linear(3, 2), path)


def test_missing_file_is_reported(tmp_path):
    with pytest.raises(CheckpointError, match="model.safetensors is missing. Is .* a run folder?"):
        load_weights(nn.Linear(3, 2), tmp_path / "model.safetensors")


def test_file_of_a_later_version_asks_for_an_upgrade(tmp_path):
    save_file({"weight": torch.zeros(1)}, tmp_path / "a", {"format": "regard", "version": "9"})
    with pytest.raises(CheckpointError, match="was saved by format 9; this version reads 1-1. Upg"):
        read_weights(tmp_path / "a")


@pytest.mark.parametrize("version", ["", "x", "1.0", "-1", "²", "1" * 5000, "a\nb"])
def test_file_of_an_invalid_version_is_one_message(tmp_path, version):
    save_file({"weight": torch.zeros(1)}, tmp_path / "a", {"version": version})
    with pytest.raises(CheckpointError, match=r"this version reads 1-1\. Upg") as raised:
        read_weights(tmp_path / "a")
    assert "\n" not in str(raised.value) and len(str(raised.value)) < 500


def test_failed_write_leaves_the_old_weights(tmp_path, monkeypatch):
    def fail(*_):
        raise SafetensorError("No space left on device (os error 28)")

    path = tmp_path / "model.safetensors"
    save_weights(filled(nn.Linear(3, 2), 1.0), path)
    monkeypatch.setattr(tensor_files, "save_file", fail)
    with pytest.raises(CheckpointError, match="cannot be written to .*No space left.*unchanged"):
        save_weights(filled(nn.Linear(3, 2), 2.0), path)
    assert torch.equal(read_weights(path)["bias"], torch.ones(2))


def test_weights_of_another_kind_of_number_are_refused(tmp_path):
    path = tmp_path / "model.safetensors"
    save_file({"weight": torch.zeros(2, 3, dtype=torch.int32), "bias": torch.zeros(2)}, path)
    with pytest.raises(CheckpointError, match="weight has numbers of int32 but must have float32"):
        load_weights(nn.Linear(3, 2), path)


def test_weights_of_another_precision_are_converted(tmp_path):
    path = tmp_path / "model.safetensors"
    save_file({"weight": torch.ones(2, 3).bfloat16(), "bias": torch.zeros(2)}, path)
    model = nn.Linear(3, 2)
    load_weights(model, path)
    assert torch.equal(model.weight, torch.ones(2, 3))


def test_equal_weights_give_equal_bytes(tmp_path):
    model = nn.Sequential(*(nn.Linear(2, 2) for _ in range(5)))
    for number in range(10):
        save_weights(model, tmp_path / f"{number}")
    assert len({path.read_bytes() for path in tmp_path.iterdir()}) == 1


def test_average_is_the_mean(tmp_path):
    paths = [tmp_path / "a", tmp_path / "b"]
    for path, value in zip(paths, (1.0, 4.0), strict=True):
        save_weights(filled(nn.Linear(3, 2), value), path)
    assert torch.equal(average_weights(paths)["weight"], torch.full((2, 3), 2.5))


def test_average_of_different_models_names_both_files(tmp_path):
    save_weights(nn.Linear(3, 2), tmp_path / "a")
    save_weights(nn.Linear(2, 2), tmp_path / "b")
    with pytest.raises(CheckpointError, match="b and .*a cannot be averaged"):
        average_weights([tmp_path / "a", tmp_path / "b"])


def test_average_has_mean_running_statistics_and_the_last_count(tmp_path):
    norm, paths = nn.BatchNorm1d(2), [tmp_path / "a", tmp_path / "b"]
    means = []
    for path in paths:
        norm(torch.randn(5, 2))
        means.append(norm.running_mean.clone())
        save_weights(norm, path)
    averaged = average_weights(paths)
    assert torch.allclose(averaged["running_mean"], (means[0] + means[1]) / 2)
    assert averaged["num_batches_tracked"].dtype == torch.long
    assert averaged["num_batches_tracked"] == 2


def test_averages_keep_the_last_checkpoints(tmp_path):
    averages = Averages(tmp_path, max_kept=2)
    for step in (5, 10, 100):
        averages.keep(nn.Linear(1, 1), step)
    assert read_json(tmp_path / "checksums.json").keys() == {p.name for p in averages.paths()}
    assert [path.stem for path in averages.paths()] == ["step-000000010", "step-000000100"]


def test_averages_of_later_steps_can_be_removed(tmp_path):
    averages = Averages(tmp_path, max_kept=3)
    for step in (5, 10, 15):
        averages.keep(nn.Linear(1, 1), step)
    averages.remove(after=10)
    assert [path.stem for path in averages.paths()] == ["step-000000005", "step-000000010"]


def test_optimizer_state_is_restored(tmp_path):
    model, other = nn.Linear(2, 2), nn.Linear(2, 2)
    optimizer, fresh = trained(model), torch.optim.Adam(other.parameters(), lr=0.5)
    save_training(tmp_path, model, optimizer, state={})
    load_training(tmp_path, other, fresh)
    for mine, theirs in zip(model.parameters(), other.parameters(), strict=True):
        for name, value in optimizer.state[mine].items():
            assert torch.equal(fresh.state[theirs][name], value)


def test_optimizer_keeps_its_hyperparameters(tmp_path):
    model = nn.Linear(2, 2)
    save_training(tmp_path, model, trained(model), state={})
    optimizer = torch.optim.Adam(model.parameters(), lr=0.5)
    load_training(tmp_path, model, optimizer)
    assert optimizer.param_groups[0]["lr"] == 0.5


def test_random_generators_are_restored(tmp_path):
    model = nn.Linear(2, 2)
    optimizer = trained(model)
    save_training(tmp_path, model, optimizer, state={})
    expected = torch.rand(3)
    load_training(tmp_path, model, optimizer)
    assert torch.equal(torch.rand(3), expected)


def test_training_state_is_restored(tmp_path):
    model = nn.Linear(2, 2)
    state = {"step": 3, "best": None, "loss": 0.1 + 0.2}
    save_training(tmp_path, model, trained(model), state=state)
    assert load_training(tmp_path, model, trained(model)).state == state


def saved_steps(folder, num_steps):
    """Save the training state of several steps; return the model and its optimiser."""
    model = nn.Linear(2, 2)
    optimizer = trained(model)
    for step in range(1, num_steps + 1):
        save_training(folder, model, optimizer, state={"step": step})
    return model, optimizer


def test_last_two_training_states_are_kept(tmp_path):
    model, optimizer = saved_steps(tmp_path, 3)
    assert {path.name for path in tmp_path.iterdir()} == {"resume", "resume.old"}
    assert load_training(tmp_path, model, optimizer).state == {"step": 3}
    shutil.rmtree(tmp_path / "resume")
    assert load_training(tmp_path, model, optimizer).state == {"step": 2}


def test_partial_folder_of_a_crash_is_ignored(tmp_path):
    model, optimizer = saved_steps(tmp_path, 1)
    (tmp_path / "resume.part").mkdir()
    (tmp_path / "resume.part" / "model.safetensors").write_bytes(b"half")
    assert load_training(tmp_path, model, optimizer).state == {"step": 1}
    save_training(tmp_path, model, optimizer, state={"step": 2})
    assert {path.name for path in tmp_path.iterdir()} == {"resume", "resume.old"}


@pytest.mark.parametrize("number", range(4))
def test_crash_between_two_renames_leaves_a_complete_state(tmp_path, monkeypatch, number):
    model, optimizer = saved_steps(tmp_path, 2)
    renames = iter(range(number))
    rename = Path.rename

    def crash(path, target):
        if next(renames, None) is None:
            raise KeyboardInterrupt
        return rename(path, target)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", crash)
        with contextlib.suppress(KeyboardInterrupt):
            save_training(tmp_path, model, optimizer, state={"step": 3})
    assert load_training(tmp_path, model, optimizer).state["step"] == (3 if number == 3 else 2)


DAMAGES = {
    "zeroed": lambda path: path.write_bytes(bytes(path.stat().st_size)),
    "cut": lambda path: path.write_bytes(path.read_bytes()[: path.stat().st_size // 2]),
    "missing": Path.unlink,
}


@pytest.mark.parametrize(
    "name", ["model.safetensors", "training.safetensors", "training.json", "checksums.json"]
)
@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_training_state_is_named_and_the_one_before_is_used(tmp_path, caplog, damage, name):
    model, optimizer = saved_steps(tmp_path, 2)
    DAMAGES[damage](tmp_path / "resume" / name)
    state = load_training(tmp_path, model, optimizer).state
    if (damage, name) == ("missing", "checksums.json"):
        assert state == {"step": 2}
        return
    assert state == {"step": 1}
    (message,) = caplog.messages
    assert f"resume is damaged: {name} " in message.replace(str(tmp_path / "resume") + "/", "")
    assert message.endswith("resume.old, saved before it.")


def test_two_damaged_training_states_are_an_error(tmp_path):
    model, optimizer = saved_steps(tmp_path, 2)
    for folder in ("resume", "resume.old"):
        DAMAGES["zeroed"](tmp_path / folder / "training.safetensors")
    with pytest.raises(
        CheckpointError, match=r"resume is damaged: .*resume\.old is damaged: .*--for"
    ):
        load_training(tmp_path, model, optimizer)


def test_file_in_place_of_the_training_state_is_named(tmp_path):
    model, optimizer = saved_steps(tmp_path, 1)
    shutil.rmtree(tmp_path / "resume")
    (tmp_path / "resume").touch()
    with pytest.raises(CheckpointError, match="resume is damaged: it is not a folder"):
        load_training(tmp_path, model, optimizer)


def test_full_disk_leaves_the_training_state_and_frees_its_space(tmp_path, monkeypatch):
    def fail(*_):
        raise SafetensorError("No space left on device (os error 28)")

    model, optimizer = saved_steps(tmp_path, 1)
    with monkeypatch.context() as patch:
        patch.setattr(tensor_files, "save_file", fail)
        with pytest.raises(CheckpointError, match="Is the disk full"):
            save_training(tmp_path, model, optimizer, state={"step": 2})
    assert [path.name for path in tmp_path.iterdir()] == ["resume"]
    assert load_training(tmp_path, model, optimizer).state == {"step": 1}


def test_invalid_states_of_random_generators_are_refused(tmp_path):
    model, optimizer = saved_steps(tmp_path, 1)
    path = tmp_path / "resume" / "training.safetensors"
    tensors = load_file(path) | {"rng.cpu": torch.zeros(10, dtype=torch.uint8)}
    save_file(tensors, path, {"version": "2"})
    (tmp_path / "resume" / "checksums.json").unlink()
    before = torch.get_rng_state()
    with pytest.raises(CheckpointError, match="no valid states of random generators"):
        load_training(tmp_path, model, optimizer)
    assert torch.equal(torch.get_rng_state(), before)


def test_averages_of_another_shape_are_refused(tmp_path):
    model = nn.Linear(2, 2)
    averages = {"weight": torch.zeros(2, 1)}
    save_training(tmp_path, model, trained(model), state={}, averages=averages)
    with pytest.raises(CheckpointError, match="averages of .* weight is 2 x 1 but must be 2 x 2"):
        load_training(tmp_path, model, trained(model))


def test_damaged_checkpoint_is_not_averaged(tmp_path, caplog):
    averages = Averages(tmp_path, max_kept=3)
    for step in (1, 2, 3):
        averages.keep(nn.Linear(2, 2), step)
    DAMAGES["zeroed"](averages.paths()[1])
    assert [path.stem[-1] for path in averages.undamaged()] == ["1", "3"]
    assert "step-000000002.safetensors differs from its checksum" in caplog.text


def test_files_of_other_names_are_neither_averaged_nor_removed(tmp_path):
    folder = tmp_path / "run" / "averages"
    averages = Averages(folder, max_kept=1)
    others = ["step-x.safetensors", "step-1.txt", "step-.safetensors", "notes"]
    folder.mkdir(parents=True)
    for name in others:
        (folder / name).write_bytes(b"x")
    add_checksums(folder)
    (folder / "notes").write_bytes(b"y")
    for step in (1, 2):
        averages.keep(nn.Linear(1, 1), step)
    averages.remove(after=1)
    assert averages.undamaged() == averages.paths() == []
    assert {path.name for path in folder.iterdir()} == {*others, "checksums.json"}


def test_list_that_names_the_run_folder_removes_nothing(tmp_path):
    folder = tmp_path / "run" / "averages"
    Averages(folder, max_kept=1).keep(nn.Linear(1, 1), 1)
    (tmp_path / "run" / "config.json").touch()
    listed = read_json(folder / "checksums.json")
    write_json(folder / "checksums.json", {**listed, "..": [{"bytes": 1, "sha256": ""}]})
    with pytest.raises(CheckpointError, match=r"must list files of its folder"):
        Averages(folder, max_kept=1).remove(after=0)
    assert (tmp_path / "run" / "config.json").exists()


def test_missing_resume_state_is_reported(tmp_path):
    with pytest.raises(CheckpointError, match="has no state to resume from. Start without"):
        find_training(tmp_path)


def test_remove_training_removes_all_folders(tmp_path):
    model = nn.Linear(2, 2)
    save_training(tmp_path, model, trained(model), state={})
    remove_training(tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_resuming_with_another_optimizer_is_refused(tmp_path):
    model = nn.Linear(2, 2)
    save_training(tmp_path, model, trained(model), state={})
    with pytest.raises(CheckpointError, match="with the optimiser Adam, but .* is SGD now"):
        load_training(tmp_path, model, torch.optim.SGD(model.parameters()))
