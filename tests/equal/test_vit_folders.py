"""Imported vision transformers equal those of `transformers`, and exported ones equal ours."""

import json

import numpy as np
import pytest
import torch
from PIL import Image
from safetensors.torch import load_file

from regard.interop.huggingface.export import export_run
from regard.interop.huggingface.load import import_folder
from regard.runs.folder import load
from tests.huggingface_folders import save_vit

transformers = pytest.importorskip("transformers", reason="transformers is not installed")

PREPROCESSOR = {
    "image_processor_type": "ViTImageProcessor",
    "size": {"height": 8, "width": 8},
    "do_resize": True,
    "resample": 3,
    "do_rescale": True,
    "rescale_factor": 1 / 255,
    "do_normalize": True,
    "image_mean": [0.4, 0.5, 0.6],
    "image_std": [0.2, 0.3, 0.25],
}
MASK = torch.ones(2, 1, dtype=torch.bool)


@pytest.fixture(autouse=True)
def without_gradients():
    with torch.inference_mode():
        yield


@pytest.fixture
def values():
    return torch.randn(2, 3, 8, 8, generator=torch.Generator().manual_seed(3))


@pytest.fixture
def image_files(tmp_path):
    """Two images as files: a square of the size that is wanted, and a larger rectangle."""
    generator, paths = np.random.default_rng(4), []
    for number, shape in enumerate([(8, 8, 3), (20, 31, 3)]):
        paths.append(tmp_path / f"{number}.png")
        Image.fromarray(generator.integers(0, 256, shape, dtype=np.uint8)).save(paths[-1])
    return paths


def predict_theirs(folder, model, path):
    """Return the probabilities of the labels of a file by `transformers`."""
    processor = transformers.AutoImageProcessor.from_pretrained(folder, backend="pil")
    with Image.open(path) as image:
        inputs = processor(images=image, return_tensors="pt")
    return model(**inputs).logits[0].softmax(-1)


def predict_ours(task, path):
    """Return the probabilities of the labels of a file by our model."""
    (found,) = task.predict([str(path)], num_best=4)
    by_label = {one.text: one.log_prob for one in found}
    return torch.tensor([by_label[name] for name in task.labels.names]).exp()


@pytest.mark.parametrize("changes", [{}, {"image_size": 12, "num_channels": 1}])
def test_logits_equal_hugging_face(tmp_path, changes):
    theirs = save_vit(tmp_path / "hf", **changes)
    task = import_folder(tmp_path / "hf", tmp_path / "run").task
    values = torch.randn(2, *task.source.spec.shape)
    expected = theirs(pixel_values=values).logits
    assert torch.allclose(task.model(values, MASK), expected, atol=1e-4)
    again = load(tmp_path / "run", "cpu")
    assert torch.equal(again.model(values, MASK), task.model(values, MASK))


def test_predictions_for_files_equal_hugging_face(tmp_path, image_files):
    theirs = save_vit(tmp_path / "hf", preprocessor=PREPROCESSOR)
    task = import_folder(tmp_path / "hf", tmp_path / "run").task
    assert task.labels.names == ("cat", "crane (1)", "dog", "crane (3)")
    for path in image_files:
        expected = predict_theirs(tmp_path / "hf", theirs, path)
        assert torch.allclose(predict_ours(task, path), expected, atol=1e-4)


@pytest.mark.parametrize("fit", ["squash", "crop"])
def test_predictions_of_an_exported_folder_equal_ours(tmp_path, image_files, fit):
    cut = {
        "image_processor_type": "CLIPImageProcessor",
        "size": {"shortest_edge": 8},
        "do_center_crop": True,
        "crop_size": {"height": 8, "width": 8},
    }
    given = {**PREPROCESSOR, **(cut if fit == "crop" else {})}
    save_vit(tmp_path / "hf", preprocessor=given)
    task = import_folder(tmp_path / "hf", tmp_path / "run").task
    assert task.source.config.fit == fit
    exported = export_run(tmp_path / "run", tmp_path / "out")
    assert (exported.model_type, exported.left_out) == ("vit", ())
    assert exported.difference < 1e-4
    written = json.loads((tmp_path / "out" / "preprocessor_config.json").read_text("utf-8"))
    assert {name: written[name] for name in given} == given
    theirs = transformers.ViTForImageClassification.from_pretrained(tmp_path / "out").eval()
    assert theirs.config.id2label[3] == "crane (3)"
    # Where the middle of a longer side is not a whole pixel, the two cut a little differently.
    tolerance = 1e-4 if fit == "squash" else 0.05
    assert torch.allclose(
        predict_ours(task, image_files[0]), predict_theirs(tmp_path / "out", theirs, image_files[0])
    )
    for path in image_files:
        expected = predict_theirs(tmp_path / "out", theirs, path)
        assert torch.allclose(predict_ours(task, path), expected, atol=tolerance)


def test_weights_come_back_as_they_were(tmp_path):
    save_vit(tmp_path / "hf")
    import_folder(tmp_path / "hf", tmp_path / "run")
    export_run(tmp_path / "run", tmp_path / "out")
    before, after = (load_file(tmp_path / name / "model.safetensors") for name in ("hf", "out"))
    assert before.keys() == after.keys()
    assert all(torch.equal(before[name], after[name]) for name in before)


def test_encoder_alone_gets_a_fresh_head(tmp_path, values):
    theirs = save_vit(tmp_path / "hf", has_head=False)
    imported = import_folder(tmp_path / "hf", tmp_path / "run")
    (note,) = imported.notes
    assert "no head" in note
    states = imported.task.model.encoder(values, MASK)
    expected = theirs(pixel_values=values).last_hidden_state
    assert torch.allclose(states.summary, expected[:, 0], atol=1e-4)
    assert torch.allclose(states.states, expected[:, 1:], atol=1e-4)
