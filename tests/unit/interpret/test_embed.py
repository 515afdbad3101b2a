import logging
import shutil

import numpy as np
import pytest
import torch

from regard.core.errors import ConfigError
from regard.core.specs import TextSpec
from regard.data.datasets.labelled import generate_opinions
from regard.data.datasets.synthetic import scenes
from regard.data.datasets.synthetic.scenes import load_scenes
from regard.data.datasets.texts import to_lines
from regard.data.example import Example
from regard.interpret.embed import embed, project
from regard.models.encoders.rnn import RnnEncoder, RnnEncoderConfig
from regard.models.heads.pooling import FinalPooling
from regard.models.layer_states import layer_states
from regard.runs.folder import load
from regard.runs.recipes import load_recipe
from regard.tasks.autoencoding.task import AutoencodingTask
from regard.tasks.classification.task import ClassificationTask
from regard.tasks.language_modeling import LanguageModelingTask
from regard.tasks.masked_lm.task import MaskedLmTask
from regard.tasks.regions.segmentation import SegmentationTask

CPU = torch.device("cpu")
LINES = ["a b c", "e d", "b a c d", "c"]
BLOCKS = (
    "model.encoder.dim=8",
    "model.encoder.num_heads=2",
    "model.encoder.num_layers=2",
    "model.encoder.feed_forward_dim=8",
    "train.precision=fp32",
)


@pytest.fixture
def warnings(caplog):
    """The warnings of `embed`."""
    logging.getLogger("regard").propagate = True
    caplog.set_level(logging.WARNING, logger="regard")
    return caplog


def masked_task():
    overrides = (
        "data.batch.max_length=12",
        "data.batch.max_tokens=60",
        "model.encoder.max_length=12",
    )
    recipe = load_recipe(
        "liu2019-laptop", (*BLOCKS, *overrides, "model.encoder.positions=learned",
                           "data.tokenizer.vocab_size=60"),
    )  # fmt: skip
    return MaskedLmTask.prepare(recipe, [Example(line) for line in LINES * 3], device=CPU)


def language_task(kind):
    sizes = {
        "transformer": ("model.num_heads=2", "model.feed_forward_dim=8", "model.num_layers=2"),
        "rnn": ("model.kind=rnn", "model.embedding_dim=8"),
    }
    overrides = (*sizes[kind], "model.dim=8", "data.window=16", "data.num_windows=4")
    recipe = load_recipe(
        "gpt-laptop", ["model.init.rule=default", "train.precision=fp32", *overrides]
    )
    return LanguageModelingTask.prepare(recipe, to_lines("\n".join(LINES) * 4), device=CPU)


def classification_task():
    recipe = load_recipe("sst2-transformer", (*BLOCKS, "model.encoder.dropout=0.0"))
    return ClassificationTask.prepare(recipe, generate_opinions(20), device=CPU)


TASKS = {
    "masked": masked_task,
    "language transformer": lambda: language_task("transformer"),
    "language rnn": lambda: language_task("rnn"),
    "classification": classification_task,
}


@pytest.mark.parametrize("pooling", ["summary", "mean", "first"])
@pytest.mark.parametrize("name", TASKS)
def test_vectors_of_any_task_are_in_order_and_batched_equals_alone(name, pooling):
    task = TASKS[name]()
    vectors = embed(task, LINES, pooling=pooling)
    assert vectors.dtype == np.float32 and vectors.shape == (4, 8)
    for line, vector in zip(LINES, vectors, strict=True):
        np.testing.assert_allclose(embed(task, [line], pooling=pooling)[0], vector, atol=1e-5)
    if pooling != "first":
        assert len(np.unique(vectors.round(4), axis=0)) == 4


def test_default_vector_is_the_summary_of_the_encoder(tiny_run):
    predictor = tiny_run.predictor
    (batch,) = predictor.batches([Example("a b c", "c b a")])
    with torch.inference_mode():
        memory = predictor.model.encode(predictor.inputs(batch), batch.source_mask)
    np.testing.assert_allclose(embed(predictor, ["a b c"])[0], memory.summary[0], atol=1e-6)
    mean = embed(predictor, ["a b c"], pooling="mean")[0]
    np.testing.assert_allclose(mean, memory.states[0].mean(0), atol=1e-6)


def test_vector_of_an_autoencoder_is_its_latent():
    overrides = (
        "model.encoder.encoder.embedding_dim=6",
        "model.encoder.encoder.dim=6",
        "model.encoder.bottleneck.dim=5",
        "model.decoder.embedding_dim=6",
        "model.decoder.dim=6",
    )
    recipe = load_recipe("bowman2016-laptop", overrides)
    task = AutoencodingTask.prepare(recipe, [Example(line) for line in LINES * 3], device=CPU)
    np.testing.assert_allclose(embed(task, LINES), task.encode(LINES), atol=1e-6)


def test_layer_zero_is_the_mean_of_embeddings(tiny_run):
    predictor = tiny_run.predictor
    ids = torch.tensor(predictor.source.read("a b c"))
    expected = predictor.model.encoder.embedding(ids).mean(0).detach()
    np.testing.assert_allclose(embed(predictor, ["a b c"], layer=0)[0], expected, atol=1e-6)


def test_final_states_of_all_layers_are_one_vector():
    encoder = RnnEncoder(RnnEncoderConfig(cell="lstm", num_layers=2, dim=3), TextSpec(vocab_size=9))
    memory = encoder(torch.tensor([[1, 4, 2]]), torch.ones(1, 3, dtype=torch.bool))
    vector = FinalPooling(3)(memory)
    assert vector.shape == (1, 12)  # h and c of two layers
    assert torch.equal(vector[:, 6:9], memory.summary)


def test_final_states_need_a_recurrent_encoder(tiny_run):
    assert embed(tiny_run.predictor, LINES, pooling="final").shape[0] == len(LINES)
    with pytest.raises(ConfigError, match="`pooling` 'final' needs a recurrent encoder"):
        embed(masked_task(), LINES, pooling="final")
    with pytest.raises(ConfigError, match="has no summary, but is 'final'"):
        embed(tiny_run.predictor, LINES, layer=1, pooling="final")


def test_pooling_of_a_layer_ignores_padding(tiny_run):
    predictor = tiny_run.predictor
    ids = torch.tensor([predictor.source.read("e d")])
    with torch.inference_mode():
        states = layer_states(predictor.model.encoder, ids, torch.ones_like(ids).bool())[1]
    found = embed(predictor, ["a b c d", "e d"], layer=1)[1]
    np.testing.assert_allclose(found, states[0].mean(0), atol=1e-6)


def test_vectors_of_images_are_in_order():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scenes, "NUM_HELD_OUT", 6)
        examples = load_scenes("regions,24", 0)
    overrides = (
        "data.source.size=16",
        "model.encoder.widths=[4]",
        "model.encoder.blocks=[1]",
        "train.precision=fp32",
    )
    recipe = load_recipe("scenes-segmentation-laptop", overrides)
    task = SegmentationTask.prepare(recipe, examples.train, device=CPU)
    sources = [example.source for example in examples.test]
    vectors = embed(task, sources)
    np.testing.assert_allclose(vectors[3], embed(task, [sources[3]])[0], atol=1e-5)
    with pytest.raises(ConfigError, match="'first' is for runs that read text"):
        embed(task, sources, pooling="first")
    with pytest.raises(ConfigError, match="Single layers can be .* in encoders of text"):
        embed(task, sources, layer=1)


def test_empty_line_has_a_zero_vector_and_a_warning(tiny_run, warnings):
    vectors = embed(tiny_run.predictor, ["a b", "", "  ", "c"])
    assert not vectors[1:3].any()
    assert vectors[0].any() and vectors[3].any()
    assert "2 of 4 lines are empty: their vectors are zeros" in warnings.text


def test_no_lines_are_no_vectors(tiny_run):
    assert embed(tiny_run.predictor, []).shape == (0, 48)


def test_text_beyond_learned_positions_is_shortened_with_a_warning(warnings):
    task = masked_task()
    long = " ".join(["a b c d"] * 9)
    vector = embed(task, [long])[0]
    assert "shortened 1 of 1 texts to 12 tokens" in warnings.text
    np.testing.assert_allclose(vector, embed(task, [f"{long} e"])[0], atol=1e-6)


def test_unknown_layer_is_refused(tiny_run):
    with pytest.raises(ConfigError, match="`layer` must be between 0 and 1, but is 2"):
        embed(tiny_run.predictor, LINES, layer=2)


def test_layer_has_no_summary(tiny_run):
    with pytest.raises(ConfigError, match="must be 'mean' or 'first' with a `layer`"):
        embed(tiny_run.predictor, LINES, layer=1, pooling="summary")


def test_unknown_pooling_is_refused(tiny_run):
    with pytest.raises(ConfigError, match="`pooling` must be one of 'summary', 'mean', 'first'"):
        embed(tiny_run.predictor, LINES, pooling="men")


def test_ensemble_is_refused(tiny_run, tmp_path):
    other = shutil.copytree(tiny_run.folder, tmp_path / "other")
    ensemble = load(f"{tiny_run.folder},{other}", "cpu")
    with pytest.raises(ConfigError, match="Vectors need a run with one encoder"):
        embed(ensemble, LINES)


def test_projection_is_on_the_eigenvectors_of_the_covariance():
    vectors = np.random.default_rng(1).normal(size=(12, 5)).astype(np.float32)
    points, share = project(vectors)
    values, axes = np.linalg.eigh(np.cov(vectors.T))
    expected = (vectors - vectors.mean(0)) @ axes[:, ::-1][:, :2]
    np.testing.assert_allclose(np.abs(points), np.abs(expected), atol=1e-5)
    assert share == pytest.approx(values[-2:].sum() / values.sum(), rel=1e-5)
