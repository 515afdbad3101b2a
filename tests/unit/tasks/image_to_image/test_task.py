"""Image-to-image tasks on rendered shapes: prediction, losses, metrics, latents, fine-tuning."""

import math

import numpy as np
import pytest
import torch
from PIL import Image

from regard.core.errors import ConfigError, DataError
from regard.data.datasets.synthetic.scenes import render
from regard.data.example import Example
from regard.metrics.vision.images import image_psnr
from regard.runs.folder import load
from regard.runs.recipes import load_recipe
from regard.runs.request import Request
from regard.runs.train import train
from regard.tasks.base import Attends, Autoencodes, GeneratesImages
from regard.tasks.classification.task import ClassificationTask
from regard.tasks.image_to_image.reading import read_images
from regard.tasks.image_to_image.task import ImageToImageTask

CPU = torch.device("cpu")
NAMES = [f"shapes/0/{number}" for number in range(10)]
EXAMPLES = [Example(name, name) for name in NAMES]
VIDEOS = [Example(f"moving/0/{n}", f"moving/0/{n}") for n in range(5)]

SMALL = (
    "data.target.size=12",
    "data.batch.max_sentences=4",
    "model.generator.widths=[4,3]",
    "model.generator.blocks=[1,1]",
    "train.max_epochs=2",
)
IMAGES = (*SMALL, "model.encoder.widths=[3,4]", "model.encoder.blocks=[1,1]")
NARROW = (
    *SMALL,
    "data.source.size=12",
    "model.encoder.encoder.widths=[3,4]",
    "model.encoder.encoder.blocks=[1,1]",
    "model.encoder.bottleneck.dim=3",
)
SETTINGS = {
    "hinton2006-laptop": NARROW,
    "kingma2014-laptop": NARROW,
    "vincent2008-laptop": (*IMAGES, "data.source.size=12"),
    "super-resolution-laptop": (*IMAGES, "data.source.size=6"),
    "colouring-laptop": (*IMAGES, "data.source.size=12"),
    "next-frame-laptop": (
        *SMALL,
        "data.source.size=12",
        "data.source.num_frames=3",
        "model.encoder.image.widths=[8]",
        "model.encoder.image.blocks=[1]",
    ),
}


def build(name, *overrides):
    recipe = load_recipe(name, (*SETTINGS[name], *overrides))
    task = ImageToImageTask.prepare(recipe, examples_of(name), device=CPU)
    # Parameters that are initialised with zeros would hide errors.
    torch.manual_seed(0)
    with torch.no_grad():
        for parameter in task.model.generator.parameters():
            if not parameter.any():
                parameter.normal_(0, 0.1)
    return task


def examples_of(name):
    return VIDEOS if name.startswith("next") else EXAMPLES


@pytest.fixture(params=SETTINGS)
def task(request):
    return build(request.param)


@pytest.fixture
def examples(task):
    return examples_of("next" if task.source.modality == "video" else "")


@pytest.fixture
def variational():
    return build("kingma2014-laptop")


def test_predictions_have_the_shape_of_the_target_and_batched_equals_alone(task, examples):
    sources = [example.source for example in examples]
    together = task.predict(sources)
    for source, (found,) in zip(sources, together, strict=True):
        assert found.image.shape == (12, 12, 3) and found.image.dtype == np.uint8
        ((alone,),) = task.predict([source])
        assert np.abs(alone.image.astype(int) - found.image).max() <= 1
        assert alone.log_prob == pytest.approx(found.log_prob, rel=1e-3)


def test_validation_loss_is_the_negative_score_plus_the_loss_of_latents(task, examples):
    found = task.validation(examples)()
    scored = -sum(one.log_prob for one in task.score(examples))
    latents = sum(float(loss) for loss in task.generate(examples, has_noise=True).losses)
    num = len(examples) * math.prod(task.target.spec.shape)
    assert found.metrics["loss"] == pytest.approx((scored + latents) / num, rel=1e-4)
    assert found.value == found.metrics[task.recipe.validation.metric] * (
        -1 if task.recipe.validation.metric == "loss" else 1
    )


def test_loss_of_batches_equals_that_of_validation_without_noise(task, examples):
    if task.recipe.data.noise.is_any:
        pytest.skip("noise differs in training")
    with torch.no_grad():
        losses = [task.loss(batch) for batch in task.batches(examples)]
    mean = sum(one.total for one in losses) / sum(one.count for one in losses)
    found = task.validation(examples)().metrics["loss"]
    assert float(mean) == pytest.approx(found, rel=1e-4)


def test_evaluation_measures_the_generated_images(task, examples):
    found = task.evaluate(examples, num_bootstrap=20)
    images = task.generate(examples, has_noise=True)
    assert found.results["psnr"].value == pytest.approx(images.psnr().mean())
    validation = task.validation(examples)().metrics["psnr"]
    assert found.results["psnr"].value == pytest.approx(validation)
    for key in ("source_psnr", "source_mse"):
        assert (key in found.results) == bool(task.recipe.data.change)
    assert found.results["mse"].value == pytest.approx(
        ((images.pixels.double() - images.targets.double()) / 255).square().mean().item()
    )
    assert len(found.outputs) == len(examples)


def test_evaluation_is_deterministic(task, examples):
    first, second = (task.evaluate(examples).results for _ in range(2))
    assert {k: v.value for k, v in first.items()} == {k: v.value for k, v in second.items()}


def test_baseline_of_super_resolution_is_bicubic_upsampling():
    task = build("super-resolution-laptop")
    found = task.evaluate(EXAMPLES).results["source_psnr"]
    values = []
    for name in NAMES:
        small, large = (
            Image.fromarray(np.asarray(render(name))).resize((side, side), Image.Resampling.BICUBIC)
            for side in (6, 12)
        )
        base = np.asarray(small.resize((12, 12), Image.Resampling.BICUBIC)).transpose(2, 0, 1)
        target = np.asarray(large).transpose(2, 0, 1)
        values.append(image_psnr(base[None], target[None])[0])
    assert found.value == pytest.approx(np.mean(values), abs=0.05)
    assert found.name == "PSNR of the source (bicubic)"
    error = task.evaluate(EXAMPLES).results["source_mse"]
    assert error.value == pytest.approx(
        np.mean([10 ** (-value / 10) for value in values]), rel=0.02
    )
    assert error.name == "MSE of the source (bicubic)"


def test_baseline_of_the_next_frame_is_the_last_source_frame():
    task = build("next-frame-laptop")
    last = [task.source.read_all([e.source])[0][0, -1] for e in VIDEOS]
    targets = [task.source.read_last([e.source], task.target.config.frame)[0][0] for e in VIDEOS]
    found = task.evaluate(VIDEOS).results["source_psnr"]
    assert found.value == pytest.approx(image_psnr(np.stack(last), np.stack(targets)).mean())


def test_predict_adds_no_noise():
    task = build("vincent2008-laptop")
    ((prediction,),) = task.predict(NAMES[:1])
    (clean,) = task.generate(EXAMPLES[:1]).pixels
    (noisy,) = task.generate(EXAMPLES[:1], has_noise=True).pixels
    assert np.array_equal(prediction.image.transpose(2, 0, 1), clean.numpy())
    assert not torch.equal(clean, noisy)


def test_training_noise_differs_at_every_use():
    task = build("vincent2008-laptop")
    task.model.train()
    batch = next(task.training_batches(EXAMPLES).epoch(0))
    torch.manual_seed(3)
    first, second = float(task.loss(batch).nll), float(task.loss(batch).nll)
    torch.manual_seed(3)
    assert float(task.loss(batch).nll) == pytest.approx(first)
    assert first != second


@pytest.mark.parametrize("of", ["summary", "states"])
def test_predictions_are_the_decoded_latents(of):
    task = build("hinton2006-laptop", f"model.encoder.of={of}")
    assert isinstance(task, Autoencodes)
    latents = task.encode(NAMES)
    assert latents.shape == (10, task.model.num_cells * 3) and latents.dtype == torch.float32
    images = task.decode(latents)
    assert images.shape == (10, 3, 12, 12) and images.dtype == torch.uint8
    for pixels, (prediction,) in zip(images, task.predict(NAMES), strict=True):
        assert np.abs(pixels.permute(1, 2, 0).numpy().astype(int) - prediction.image).max() <= 1
    assert torch.equal(task.decode(latents.double()), images)


def test_no_latents_are_no_images(variational):
    assert variational.decode(variational.encode([])).shape == (0, 3, 12, 12)


def test_latents_of_another_size_are_refused(variational):
    with pytest.raises(DataError, match=r"`latents` must have the shape \(B, \d+\).*\(2, 99\)"):
        variational.decode(torch.zeros(2, 99))


def test_decoding_with_a_residual_model_is_refused():
    task = build("super-resolution-laptop")
    with pytest.raises(ConfigError, match="`model.is_residual` must be false to decode"):
        task.decode(task.encode(NAMES))


def test_elbo_is_the_reconstruction_minus_the_divergence(variational):
    found = variational.evaluate(EXAMPLES).results
    detail = found["elbo"].detail
    assert found["elbo"].value == pytest.approx(detail["reconstruction"] - found["kl"].value)
    losses = variational.generate(EXAMPLES).losses
    assert found["kl"].value == pytest.approx(float(losses.mean()), rel=1e-4)
    assert 0 <= found["active_units"].value <= variational.encode(NAMES).shape[1]


def test_elbo_equals_that_of_torch_distributions(variational):
    """With a variance near zero, the sampled latent is the mean."""
    with torch.no_grad():
        variational.model.encoder.bottleneck.log_variance_map.weight.zero_()
        variational.model.encoder.bottleneck.log_variance_map.bias.fill_(-20.0)
    found = variational.evaluate(EXAMPLES).results["elbo"]
    scored = np.mean([one.log_prob for one in variational.score(EXAMPLES)])
    means = variational.encode(NAMES)
    posterior = torch.distributions.Normal(means, math.exp(-10))
    prior = torch.distributions.Normal(0.0, 1.0)
    divergence = torch.distributions.kl_divergence(posterior, prior).sum(1).mean()
    assert found.value == pytest.approx(scored - float(divergence), rel=1e-4)


def test_plain_autoencoders_have_no_elbo():
    assert "elbo" not in build("hinton2006-laptop").evaluate(EXAMPLES).results


def test_image_grid_has_source_prediction_and_target(task, examples):
    *sources, generated, target = task.image_grid(examples[0].source)
    assert [one.caption for one in (generated, target)] == ["generated", "target"]
    assert generated.note.endswith(" dB")
    assert generated.image.shape == target.image.shape == (12, 12, 3)
    if task.source.modality == "video":
        assert [one.caption for one in sources] == ["frame 1", "frame 2", "frame 3"]
    else:
        assert [one.caption for one in sources] == ["source"]


def test_empty_line_has_a_prediction_without_image(variational):
    (first,), (second,) = variational.predict(["", NAMES[3]])
    assert first.image is None and second.image is not None
    assert variational.predict([]) == [] and variational.score([]) == []


def test_task_generates_images_and_has_no_attention(variational):
    assert isinstance(variational, GeneratesImages)
    assert not isinstance(variational, Attends)


def test_empty_test_set_is_refused(variational):
    with pytest.raises(DataError, match="nothing to evaluate"):
        variational.evaluate([])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Twelve images of shapes."""
    folder = tmp_path_factory.mktemp("images")
    for number in range(12):
        Image.fromarray(np.asarray(render(f"shapes/0/{number}"))).save(folder / f"{number:02}.png")
    return folder


def request_for(folder, out, *overrides, **changes):
    return Request(
        data=(str(folder),),
        recipe="vincent2008-laptop",
        settings=(*SETTINGS["vincent2008-laptop"], *overrides),
        out=out,
        device="cpu",
        **changes,
    )


@pytest.fixture(scope="module")
def trained(folder, tmp_path_factory):
    return train(request_for(folder, tmp_path_factory.mktemp("runs") / "run"))


def test_loaded_run_predicts_as_the_trained_one(trained):
    opened = load(trained.folder, "cpu")
    for (one,), (other,) in zip(
        opened.predict(NAMES), trained.predictor.predict(NAMES), strict=True
    ):
        assert np.array_equal(one.image, other.image)


def test_resumed_training_equals_uninterrupted(folder, trained, tmp_path, interrupted_at):
    stopped = train(request_for(folder, tmp_path / "run"), display=interrupted_at(2))
    assert stopped.summary.stopped == "interrupted"
    resumed = train(
        Request(data=(str(folder),), out=tmp_path / "run", device="cpu", is_resumed=True)
    )
    expected = trained.predictor.model.state_dict()
    assert all(torch.equal(v, expected[n]) for n, v in resumed.predictor.model.state_dict().items())


def test_fine_tuning_starts_from_all_weights_of_a_run(trained):
    start = load(trained.folder, "cpu")
    recipe = load_recipe("vincent2008-laptop", (*SETTINGS["vincent2008-laptop"], "seed=9"))
    tuned = ImageToImageTask.prepare(recipe, EXAMPLES, device=CPU, init_from=start)
    expected = start.model.state_dict()
    assert all(torch.equal(v, expected[n]) for n, v in tuned.model.state_dict().items())


def test_fine_tuning_restarts_the_annealing(variational):
    variational.model.encoder.bottleneck.step += 7
    tuned = build_from(variational, "kingma2014-laptop")
    assert tuned.model.encoder.bottleneck.step == 0


def test_fine_tuning_with_another_image_size_is_refused(trained):
    start = load(trained.folder, "cpu")
    with pytest.raises(
        ConfigError, match=r"`data.source.size` must be as in `init_from` \(12\).*6"
    ):
        build_from(start, "super-resolution-laptop")


def build_from(start, name):
    recipe = load_recipe(name, SETTINGS[name])
    return ImageToImageTask.prepare(recipe, EXAMPLES, device=CPU, init_from=start)


def test_encoder_of_a_classifier_is_used_before_the_bottleneck():
    settings = ("data.source.size=12", "model.encoder.widths=[3,4]", "model.encoder.blocks=[1,1]")
    labelled = [Example(name, str(number % 2)) for number, name in enumerate(NAMES)]
    start = ClassificationTask.prepare(
        load_recipe("he2016-laptop", (*settings, "seed=9")), labelled, device=CPU
    )
    tuned = build_from(start, "hinton2006-laptop")
    expected = start.model.encoder.state_dict()
    weights = tuned.model.encoder.encoder.state_dict()
    assert all(torch.equal(value, expected[name]) for name, value in weights.items())
    assert tuned.model.encoder.memory_dim == 3
    with pytest.raises(ConfigError, match="'image_to_image' if .* is a video.*'classific"):
        build_from(start, "next-frame-laptop")


def test_images_of_any_folder_or_data_set_are_their_own_targets(folder, tmp_path):
    config = load_recipe("hinton2006-laptop").data
    splits = read_images((str(folder),), (), (), config=config)
    examples = [*splits.train, *splits.valid, *splits.test]
    assert len(examples) == 12 and all(e.source == e.target for e in examples)
    captions = "".join(f"{n:02}.png\tcaption {m}\n" for n in range(12) for m in range(2))
    (folder / "captions.tsv").write_text(captions, encoding="utf-8")
    splits = read_images((str(folder / "captions.tsv"),), (), (), config=config)
    assert len([*splits.train, *splits.valid, *splits.test]) == 12


def test_a_second_file_is_refused(folder):
    config = load_recipe("hinton2006-laptop").data
    with pytest.raises(DataError, match="their own targets.*second one, b.txt"):
        read_images((str(folder), "b.txt"), (), (), config=config)


@pytest.mark.parametrize(
    ("name", "override", "message"),
    [
        ("super-resolution", "data.source.augmentation.crop=2", "crop` must be 0.*16 and 32.*is 2"),
        ("hinton2006", "data.source.augmentation.zoom=0.3", "zoom` must be 0.*is 0.3"),
        ("hinton2006", "data.target.augmentation.colour=0.1", "target.augmentation` must be off"),
        ("hinton2006", "data.target.fit=pad", "`data.target.fit` must be as.*'pad' and 'crop'"),
        ("hinton2006", "model.is_residual=true", "`model.is_residual` must be false"),
        ("vincent2008", "data.noise.square=99", "`data.noise.square` must be smaller.*but is 99"),
        ("colouring", "data.source.kind=video", "reads images, but the source is videos"),
    ],
)
def test_wrong_settings_are_refused(name, override, message):
    with pytest.raises(ConfigError, match=message):
        load_recipe(f"{name}-laptop", [override])
