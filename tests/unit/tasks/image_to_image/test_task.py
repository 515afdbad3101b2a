"""Images out: every verb of the task, on shapes that are drawn on the spot."""

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
WORDS = {
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


def build(name, *words):
    recipe = load_recipe(name, (*WORDS[name], *words))
    task = ImageToImageTask.prepare(recipe, examples_of(name), device=CPU)
    # A fresh generator draws nothing, which would hide mistakes.
    torch.manual_seed(0)
    with torch.no_grad():
        for parameter in task.model.generator.parameters():
            if not parameter.any():
                parameter.normal_(0, 0.1)
    return task


def examples_of(name):
    return VIDEOS if name.startswith("next") else EXAMPLES


@pytest.fixture(params=WORDS)
def task(request):
    return build(request.param)


@pytest.fixture
def examples(task):
    return examples_of("next" if task.source.modality == "video" else "")


@pytest.fixture
def narrow():
    return build("kingma2014-laptop")


def test_answers_are_images_of_the_target_and_batched_as_alone(task, examples):
    sources = [example.source for example in examples]
    together = task.predict(sources)
    for source, (found,) in zip(sources, together, strict=True):
        assert found.image.shape == (12, 12, 3) and found.image.dtype == np.uint8
        ((alone,),) = task.predict([source])
        assert np.abs(alone.image.astype(int) - found.image).max() <= 1
        assert alone.log_prob == pytest.approx(found.log_prob, rel=1e-3)


def test_loss_is_the_negative_score_with_what_codes_cost(task, examples):
    found = task.validation(examples)()
    scored = -sum(one.log_prob for one in task.score(examples))
    codes = sum(float(cost) for cost in task.generate(examples, has_noise=True).losses)
    num = len(examples) * math.prod(task.target.spec.shape)
    assert found.metrics["loss"] == pytest.approx((scored + codes) / num, rel=1e-4)
    assert found.value == found.metrics[task.recipe.validation.metric] * (
        -1 if task.recipe.validation.metric == "loss" else 1
    )


def test_training_loss_is_that_of_validation_where_nothing_is_drawn(task, examples):
    """In evaluation mode, and without noise, two roads lead to one number."""
    if task.recipe.data.noise.is_any:
        pytest.skip("noise is drawn anew in training")
    with torch.no_grad():
        losses = [task.loss(batch) for batch in task.batches(examples)]
    mean = sum(one.total for one in losses) / sum(one.count for one in losses)
    found = task.validation(examples)().metrics["loss"]
    assert float(mean) == pytest.approx(found, rel=1e-4)


def test_evaluation_measures_the_answers(task, examples):
    found = task.evaluate(examples, num_bootstrap=20)
    drawn = task.generate(examples, has_noise=True)
    assert found.results["psnr"].value == pytest.approx(drawn.psnr().mean())
    watched = task.validation(examples)().metrics["psnr"]
    assert found.results["psnr"].value == pytest.approx(watched)
    for key in ("source_psnr", "source_mse"):
        assert (key in found.results) == bool(task.recipe.data.change)
    assert found.results["mse"].value == pytest.approx(
        ((drawn.pixels.double() - drawn.targets.double()) / 255).square().mean().item()
    )
    assert len(found.outputs) == len(examples)


def test_evaluating_twice_gives_the_same(task, examples):
    first, second = (task.evaluate(examples).results for _ in range(2))
    assert {k: v.value for k, v in first.items()} == {k: v.value for k, v in second.items()}


def test_baseline_of_super_resolution_is_pillows_bicubic():
    task = build("super-resolution-laptop")
    found = task.evaluate(EXAMPLES).results["source_psnr"]
    values = []
    for name in NAMES:
        small, large = (
            Image.fromarray(np.asarray(render(name))).resize((side, side), Image.Resampling.BICUBIC)
            for side in (6, 12)
        )
        base = np.asarray(small.resize((12, 12), Image.Resampling.BICUBIC)).transpose(2, 0, 1)
        right = np.asarray(large).transpose(2, 0, 1)
        values.append(image_psnr(base[None], right[None])[0])
    assert found.value == pytest.approx(np.mean(values), abs=0.05)
    assert found.name == "PSNR of the source (bicubic)"
    error = task.evaluate(EXAMPLES).results["source_mse"]
    assert error.value == pytest.approx(
        np.mean([10 ** (-value / 10) for value in values]), rel=0.02
    )
    assert error.name == "MSE of the source (bicubic)"


def test_baseline_of_the_next_frame_is_the_last_one():
    task = build("next-frame-laptop")
    seen = [task.source.read_all([e.source])[0][0, -1] for e in VIDEOS]
    right = [task.source.read_last([e.source], task.target.config.frame)[0][0] for e in VIDEOS]
    found = task.evaluate(VIDEOS).results["source_psnr"]
    assert found.value == pytest.approx(image_psnr(np.stack(seen), np.stack(right)).mean())


def test_what_is_asked_is_not_spoilt_but_what_is_measured_is():
    task = build("vincent2008-laptop")
    ((answer,),) = task.predict(NAMES[:1])
    (clean,) = task.generate(EXAMPLES[:1]).pixels
    (spoilt,) = task.generate(EXAMPLES[:1], has_noise=True).pixels
    assert np.array_equal(answer.image.transpose(2, 0, 1), clean.numpy())
    assert not torch.equal(clean, spoilt)


def test_noise_is_drawn_anew_in_training():
    task = build("vincent2008-laptop")
    task.model.train()
    batch = next(task.training_batches(EXAMPLES).epoch(0))
    torch.manual_seed(3)
    first, second = float(task.loss(batch).nll), float(task.loss(batch).nll)
    torch.manual_seed(3)
    assert float(task.loss(batch).nll) == pytest.approx(first)
    assert first != second


@pytest.mark.parametrize("of", ["summary", "states"])
def test_decoded_codes_are_the_answers(of):
    task = build("hinton2006-laptop", f"model.encoder.of={of}")
    assert isinstance(task, Autoencodes)
    codes = task.encode(NAMES)
    assert codes.shape == (10, task.model.num_cells * 3) and codes.dtype == torch.float32
    drawn = task.decode(codes)
    assert drawn.shape == (10, 3, 12, 12) and drawn.dtype == torch.uint8
    for pixels, (answer,) in zip(drawn, task.predict(NAMES), strict=True):
        assert np.abs(pixels.permute(1, 2, 0).numpy().astype(int) - answer.image).max() <= 1
    assert torch.equal(task.decode(codes.double()), drawn)


def test_no_codes_are_no_images(narrow):
    assert narrow.decode(narrow.encode([])).shape == (0, 3, 12, 12)


def test_wrong_codes_are_refused(narrow):
    with pytest.raises(DataError, match=r"`latents` must have the shape \(B, \d+\).*\(2, 99\)"):
        narrow.decode(torch.zeros(2, 99))


def test_codes_of_a_residual_model_are_refused():
    task = build("super-resolution-laptop")
    with pytest.raises(ConfigError, match="`model.is_residual` must be false to decode"):
        task.decode(task.encode(NAMES))


def test_bound_is_below_the_density_at_its_best_by_the_divergence(narrow):
    found = narrow.evaluate(EXAMPLES).results
    detail = found["elbo"].detail
    assert found["elbo"].value == pytest.approx(detail["reconstruction"] - found["kl"].value)
    losses = narrow.generate(EXAMPLES).losses
    assert found["kl"].value == pytest.approx(float(losses.mean()), rel=1e-4)
    assert 0 <= found["active_units"].value <= narrow.encode(NAMES).shape[1]


def test_bound_is_that_of_torchs_distributions(narrow):
    """With a spread of nearly nothing, the drawn code is the mean, and so is what is drawn."""
    with torch.no_grad():
        narrow.model.encoder.bottleneck.log_variance_map.weight.zero_()
        narrow.model.encoder.bottleneck.log_variance_map.bias.fill_(-20.0)
    found = narrow.evaluate(EXAMPLES).results["elbo"]
    scored = np.mean([one.log_prob for one in narrow.score(EXAMPLES)])
    means = narrow.encode(NAMES)
    posterior = torch.distributions.Normal(means, math.exp(-10))
    prior = torch.distributions.Normal(0.0, 1.0)
    divergence = torch.distributions.kl_divergence(posterior, prior).sum(1).mean()
    assert found.value == pytest.approx(scored - float(divergence), rel=1e-4)


def test_others_have_no_bound():
    assert "elbo" not in build("hinton2006-laptop").evaluate(EXAMPLES).results


def test_sheet_shows_source_answer_and_target(task, examples):
    found = task.image_grid(examples[0].source)
    *sources, drawn, right = found
    assert [one.caption for one in (drawn, right)] == ["generated", "target"]
    assert drawn.note.endswith(" dB") and drawn.image.shape == right.image.shape == (12, 12, 3)
    if task.source.modality == "video":
        assert [one.caption for one in sources] == ["frame 1", "frame 2", "frame 3"]
    else:
        assert [one.caption for one in sources] == ["source"]


def test_empty_line_has_an_answer_without_image(narrow):
    (first,), (second,) = narrow.predict(["", NAMES[3]])
    assert first.image is None and second.image is not None
    assert narrow.predict([]) == [] and narrow.score([]) == []


def test_images_are_generated_without_attention(narrow):
    assert isinstance(narrow, GeneratesImages)
    assert not isinstance(narrow, Attends)


def test_empty_test_set_is_refused(narrow):
    with pytest.raises(DataError, match="nothing to evaluate"):
        narrow.evaluate([])


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Twelve images of shapes."""
    folder = tmp_path_factory.mktemp("images")
    for number in range(12):
        Image.fromarray(np.asarray(render(f"shapes/0/{number}"))).save(folder / f"{number:02}.png")
    return folder


def request_for(folder, out, *words, **changes):
    return Request(
        data=(str(folder),),
        recipe="vincent2008-laptop",
        settings=(*WORDS["vincent2008-laptop"], *words),
        out=out,
        device="cpu",
        **changes,
    )


@pytest.fixture(scope="module")
def trained(folder, tmp_path_factory):
    return train(request_for(folder, tmp_path_factory.mktemp("runs") / "run"))


def test_opened_run_draws_as_the_one_that_was_trained(trained):
    opened = load(trained.folder, "cpu")
    for (one,), (other,) in zip(
        opened.predict(NAMES), trained.predictor.predict(NAMES), strict=True
    ):
        assert np.array_equal(one.image, other.image)


def test_resumed_denoiser_is_bit_for_bit_the_one_that_never_stopped(
    folder, trained, tmp_path, interrupted_at
):
    stopped = train(request_for(folder, tmp_path / "run"), display=interrupted_at(2))
    assert stopped.summary.stopped == "interrupted"
    resumed = train(
        Request(data=(str(folder),), out=tmp_path / "run", device="cpu", is_resumed=True)
    )
    theirs = trained.predictor.model.state_dict()
    assert all(torch.equal(v, theirs[n]) for n, v in resumed.predictor.model.state_dict().items())


def test_model_of_another_run_is_taken_over(trained):
    start = load(trained.folder, "cpu")
    recipe = load_recipe("vincent2008-laptop", (*WORDS["vincent2008-laptop"], "seed=9"))
    begun = ImageToImageTask.prepare(recipe, EXAMPLES, device=CPU, init_from=start)
    theirs = start.model.state_dict()
    assert all(torch.equal(v, theirs[n]) for n, v in begun.model.state_dict().items())


def test_what_begins_with_another_run_anneals_from_nothing(narrow):
    narrow.model.encoder.bottleneck.step += 7
    begun = build_from(narrow, "kingma2014-laptop")
    assert begun.model.encoder.bottleneck.step == 0


def test_run_for_other_images_is_refused_as_a_start(trained):
    start = load(trained.folder, "cpu")
    with pytest.raises(
        ConfigError, match=r"`data.source.size` must be as in `init_from` \(12\).*6"
    ):
        build_from(start, "super-resolution-laptop")


def build_from(start, name):
    recipe = load_recipe(name, WORDS[name])
    return ImageToImageTask.prepare(recipe, EXAMPLES, device=CPU, init_from=start)


def test_eyes_of_a_classifier_are_put_before_the_bottleneck():
    words = ("data.source.size=12", "model.encoder.widths=[3,4]", "model.encoder.blocks=[1,1]")
    labelled = [Example(name, str(number % 2)) for number, name in enumerate(NAMES)]
    start = ClassificationTask.prepare(
        load_recipe("he2016-laptop", (*words, "seed=9")), labelled, device=CPU
    )
    begun = build_from(start, "hinton2006-laptop")
    theirs = start.model.encoder.state_dict()
    ours = begun.model.encoder.encoder.state_dict()
    assert all(torch.equal(value, theirs[name]) for name, value in ours.items())
    assert begun.model.encoder.memory_dim == 3
    with pytest.raises(ConfigError, match="'image_to_image' if .* is a video.*'classific"):
        build_from(start, "next-frame-laptop")


def test_images_of_any_folder_or_data_set_are_their_own_targets(folder, tmp_path):
    config = load_recipe("hinton2006-laptop").data
    splits = read_images((str(folder),), (), (), config=config)
    everything = [*splits.train, *splits.valid, *splits.test]
    assert len(everything) == 12 and all(e.source == e.target for e in everything)
    said = "".join(f"{n:02}.png\tcaption {m}\n" for n in range(12) for m in range(2))
    (folder / "said.tsv").write_text(said, encoding="utf-8")
    splits = read_images((str(folder / "said.tsv"),), (), (), config=config)
    assert len([*splits.train, *splits.valid, *splits.test]) == 12


def test_a_second_file_is_refused(folder):
    config = load_recipe("hinton2006-laptop").data
    with pytest.raises(DataError, match="their own targets.*second one, b.txt"):
        read_images((str(folder), "b.txt"), (), (), config=config)


@pytest.mark.parametrize(
    ("name", "word", "message"),
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
def test_settings_that_do_not_fit_are_refused(name, word, message):
    with pytest.raises(ConfigError, match=message):
        load_recipe(f"{name}-laptop", [word])
