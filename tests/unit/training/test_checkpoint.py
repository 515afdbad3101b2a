import pytest
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import nn

from regard.core.errors import CheckpointError
from regard.training import checkpoint
from regard.training.checkpoint import (
    Averages,
    average_weights,
    find_training,
    load_training,
    load_weights,
    read_weights,
    remove_training,
    save_training,
    save_weights,
)


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


def test_file_metadata_has_format_and_version(tmp_path):
    save_weights(nn.Linear(3, 2), tmp_path / "model.safetensors")
    with safe_open(tmp_path / "model.safetensors", framework="pt") as file:
        assert file.metadata() == {"format": "regard", "version": "1"}


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


def test_failed_write_leaves_the_old_weights(tmp_path, monkeypatch):
    def fail(*_):
        raise SafetensorError("No space left on device (os error 28)")

    path = tmp_path / "model.safetensors"
    save_weights(filled(nn.Linear(3, 2), 1.0), path)
    monkeypatch.setattr(checkpoint, "save_file", fail)
    with pytest.raises(CheckpointError, match="could not be written .*No space left.*unchanged"):
        save_weights(filled(nn.Linear(3, 2), 2.0), path)
    assert torch.equal(read_weights(path)["bias"], torch.ones(2))


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
    assert load_training(tmp_path, model, trained(model)) == state


def test_saving_again_leaves_one_folder(tmp_path):
    model = nn.Linear(2, 2)
    for step in (1, 2):
        save_training(tmp_path, model, trained(model), state={"step": step})
    assert [path.name for path in tmp_path.iterdir()] == ["resume"]
    assert load_training(tmp_path, model, trained(model)) == {"step": 2}


def test_partial_folder_of_a_crash_is_ignored(tmp_path):
    model = nn.Linear(2, 2)
    save_training(tmp_path, model, trained(model), state={"step": 1})
    (tmp_path / "resume.part").mkdir()
    (tmp_path / "resume.part" / "model.safetensors").write_bytes(b"half")
    assert load_training(tmp_path, model, trained(model)) == {"step": 1}
    save_training(tmp_path, model, trained(model), state={"step": 2})
    assert [path.name for path in tmp_path.iterdir()] == ["resume"]


def test_crash_between_the_two_renames_falls_back_to_the_old_state(tmp_path):
    model = nn.Linear(2, 2)
    save_training(tmp_path, model, trained(model), state={"step": 1})
    (tmp_path / "resume").rename(tmp_path / "resume.old")
    assert load_training(tmp_path, model, trained(model)) == {"step": 1}


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
