"""Attribution agrees with Captum, with its definitions, and with recomputation by hand."""

import warnings

import numpy as np
import pytest
import torch

from regard.core.errors import ConfigError
from regard.data.example import Example
from regard.interpret import attribution
from regard.interpret.attribution import (
    METHODS,
    attribute,
    by_erasure,
    by_gradients,
    integrate_gradients,
)
from regard.interpret.passes import force
from regard.search.watching import watching
from tests.unit.interpret.conftest import FAMILIES

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from captum.attr import (
        FeatureAblation,
        IntegratedGradients,
        LayerGradientXActivation,
        LayerIntegratedGradients,
    )

SOURCE, TARGET = "a c e b", "v y z"


def forced_target(task, source=SOURCE, target=TARGET):
    return force(task, source, target)


def token_log_probs(task, source=SOURCE, target=TARGET):
    (scored,) = task.score([Example(source, target)])
    return np.array(scored.token_log_probs)


@pytest.fixture(scope="module", params=FAMILIES)
def family(request, untrained_run):
    return untrained_run(request.param)


class TestFamilies:
    """Every family of encoder–decoders."""

    def test_log_probs_are_those_of_forced_decoding(self, family):
        forced, expected = forced_target(family), token_log_probs(family)
        given = forced.log_probs_of(forced.source.values[None], forced.prefix_values[None])[0]
        assert forced.log_probs().tolist() == pytest.approx(expected, abs=1e-5)
        assert given.tolist() == pytest.approx(expected, abs=1e-5)

    def test_integrated_gradients_sum_to_the_difference_of_log_probs(self, family):
        forced = forced_target(family)
        found = integrate_gradients(forced, 200)
        with torch.no_grad():
            without = forced.log_probs_of(
                forced.source.baseline[None], forced.prefix_baseline[None]
            )
        differences = token_log_probs(family) - without[0].numpy()
        assert abs(differences).max() > 0.01
        assert found.source.sum(1) + found.prefix.sum(1) == pytest.approx(differences, abs=0.02)
        assert found.max_error < 0.02

    def test_gradients_are_the_slope_along_each_embedding(self, family):
        forced, step = forced_target(family), 1e-3
        found = by_gradients(forced)
        for values, scores, index in (
            (forced.source.values, found.source, 0),
            (forced.prefix_values, found.prefix, 1),
        ):
            for token in range(2):
                inputs = [forced.source.values[None].double(), forced.prefix_values[None].double()]
                ends = []
                for sign in (1, -1):
                    moved = values.double().clone()
                    moved[token] *= 1 + sign * step
                    inputs[index] = moved[None]
                    ends.append(_double_log_probs(forced, inputs))
                slope = (ends[0] - ends[1]) / (2 * step)
                assert scores[:, token] == pytest.approx(slope.numpy(), abs=2e-3)

    def test_erasure_of_a_source_word_is_the_loss_of_log_prob_without_it(self, family):
        found, before = by_erasure(forced_target(family)), token_log_probs(family)
        words = SOURCE.split()
        for index in range(len(words)):
            rest = " ".join(words[:index] + words[index + 1 :])
            loss = before - token_log_probs(family, source=rest)
            assert found.source[:, index] == pytest.approx(loss, abs=1e-5)
        assert not found.source[:, -1].any()

    def test_erasure_of_a_target_word_is_the_loss_of_later_words(self, family):
        found, before = by_erasure(forced_target(family)), token_log_probs(family)
        shorter = token_log_probs(family, target="v z")
        assert found.prefix[2:, 1] == pytest.approx(before[2:] - shorter[1:], abs=1e-5)
        assert not np.triu(found.prefix).any()

    def test_batches_and_single_rows_give_the_same_results(self, family, monkeypatch):
        forced = forced_target(family)
        together = [by_erasure(forced), integrate_gradients(forced, 8)]
        monkeypatch.setattr("regard.interpret.forced.MAX_POSITIONS", 1)
        alone = [by_erasure(forced), integrate_gradients(forced, 8)]
        for one, other in zip(together, alone, strict=True):
            assert one.source == pytest.approx(other.source, abs=2e-5)
            assert one.prefix == pytest.approx(other.prefix, abs=2e-5)

    def test_integrated_gradients_agree_with_captum(self, family):
        forced = forced_target(family)
        found = integrate_gradients(forced, 20)
        for output in range(forced.num_outputs):
            by_source, by_prefix = IntegratedGradients(
                lambda *values, output=output: forced.log_probs_of(*values)[:, output]
            ).attribute(
                (forced.source.values[None], forced.prefix_values[None]),
                (forced.source.baseline[None], forced.prefix_baseline[None]),
                n_steps=20,
            )
            assert found.source[output] == pytest.approx(by_source[0].sum(-1).numpy(), abs=1e-5)
            assert found.prefix[output] == pytest.approx(by_prefix[0].sum(-1).numpy(), abs=1e-5)


def _double_log_probs(forced, inputs):
    """Log-probabilities in double precision, for differences of close values."""
    model = forced._task.model
    model.double()
    try:
        with torch.no_grad():
            return forced.log_probs_of(*inputs)[0]
    finally:
        model.float()


class TestLayersOfCaptum:
    """Captum's own hooks on the embedding layers of the unchanged model."""

    def test_encoder_decoder(self, untrained_run):
        task = untrained_run("transformer")
        forced = forced_target(task)
        ids, labels = forced.source.ids[None], forced._labels
        layers = [task.model.encoder.embedding, task.model.decoder.embedding]

        def log_prob(source, targets, output):
            logits = task.model(source, torch.ones_like(source).bool(), targets).logits
            return logits.log_softmax(-1)[:, output, labels[output]]

        found = by_gradients(forced)
        for output in range(forced.num_outputs):
            explained = LayerGradientXActivation(log_prob, layers)
            inputs = (ids, forced._inputs[None])
            by_source, by_target = explained.attribute(inputs, additional_forward_args=output)
            assert found.source[output] == pytest.approx(by_source[0].sum(-1).detach(), abs=1e-5)
            # Column k of a prefix is input k + 1; the first input is the start token.
            by_prefix = by_target[0, 1:].sum(-1).detach()
            assert found.prefix[output, :-1] == pytest.approx(by_prefix, abs=1e-5)

    def test_classifier_of_texts(self, text_classifier):
        forced = force(text_classifier, "the big dog", "yes")
        ids, label = forced.source.ids[None], text_classifier.labels.read("yes")
        model = text_classifier.model

        def log_prob(source):
            return model(source, torch.ones_like(source).bool()).log_softmax(-1)[:, label]

        by_layer = LayerIntegratedGradients(log_prob, model.encoder.embedding).attribute(
            ids, baselines=forced.source.ids[None] * 0 + 1, n_steps=20
        )
        # Captum takes tokens as a baseline: here the unknown token everywhere.
        forced.source.baseline = model.encoder.embedding.weight[1].detach().expand(ids.shape[1], -1)
        found = integrate_gradients(forced, 20)
        assert found.source[0] == pytest.approx(by_layer[0].sum(-1).detach().numpy(), abs=1e-5)


class TestLanguageModels:
    """Continuations of a prompt."""

    @pytest.fixture
    def run(self, task_run):
        return task_run("language_model").predictor

    def test_log_probs_are_those_of_the_whole_text(self, run):
        forced = force(run, "the d", "og")
        (scored,) = run.score([Example("the dog")])
        assert forced.target_names == ("o", "g")
        assert forced.log_probs().tolist() == pytest.approx(scored.token_log_probs[-2:], abs=1e-5)

    def test_integrated_gradients_sum_to_the_difference_of_log_probs(self, run):
        forced = force(run, "the d", "og")
        found = integrate_gradients(forced, 100)
        assert found.max_error < 0.01
        assert found.source[:, 0] == pytest.approx(0)

    def test_erasure_is_the_loss_of_log_prob_without_a_token(self, run):
        found = by_erasure(force(run, "the d", "og"))
        (whole,), (shorter,) = (run.score([Example(text)]) for text in ("the dog", "te dog"))
        loss = np.subtract(whole.token_log_probs[-2:], shorter.token_log_probs[-2:])
        # The first token is the line end.
        assert found.source[:, 2] == pytest.approx(loss, abs=1e-5)

    def test_attention_is_that_of_earlier_tokens(self, run):
        explained = attribute(run, "the d", methods=["attention"], target="og")
        (found,) = explained.attributions
        assert found.source.sum(1) + found.prefix.sum(1) == pytest.approx(1, abs=1e-5)
        assert found.prefix[0].sum() == 0

    def test_continuation_is_generated_if_none_is_given(self, run):
        explained = attribute(run, "the d")
        assert 1 <= len(explained.target_tokens) <= 6
        assert explained.source_tokens[1:] == tuple("the▁d")


class TestClassifiers:
    """Labels of texts and images."""

    def test_erasure_of_a_word(self, text_classifier):
        found = by_erasure(force(text_classifier, "the big dog", "yes"))
        (whole,), (shorter,) = (
            text_classifier.score([Example(text, "yes")]) for text in ("the big dog", "the dog")
        )
        assert found.source[0, 2] == pytest.approx(whole.log_prob - shorter.log_prob, abs=1e-5)
        assert found.source[0, 0] == found.source[0, -1] == 0

    def test_cells_of_images_agree_with_captum(self, task_run, tmp_path):
        run = task_run("classification")
        path = next(run.folder.parent.glob("*.png"))
        forced = force(run.predictor, str(path), "left")
        model, label = run.predictor.model, run.predictor.labels.read("left")

        def log_prob(pixels):
            return model(pixels, torch.ones(len(pixels), 1).bool()).log_softmax(-1)[:, label]

        pixels = forced.source.values[None]
        by_cell = FeatureAblation(log_prob).attribute(
            pixels, feature_mask=forced.source._cells[None]
        )
        found = by_erasure(forced)
        expected = torch.zeros(len(forced.source.names))
        # Captum repeats the loss of a cell for each of its values.
        expected[forced.source._cells.flatten()] = by_cell[0].flatten()
        assert found.source[0] == pytest.approx(expected.detach().numpy(), abs=1e-5)
        by_pixel = IntegratedGradients(log_prob).attribute(pixels, n_steps=12)
        summed = forced.source.sum_parts(by_pixel[0])
        assert integrate_gradients(forced, 12).source[0] == pytest.approx(summed, abs=1e-5)


def test_all_methods_share_their_tokens(tiny_run):
    explained = attribute(tiny_run.predictor, "a b c", methods=tuple(attribution.METHODS))
    values = explained.to_dict()
    assert explained.prediction == tiny_run.predictor.translate("a b c")
    assert [one["method"] for one in values["attributions"]] == list(attribution.METHODS)
    shape = len(values["target_tokens"]), len(values["source_tokens"])
    assert all(np.shape(one["source"]) == shape for one in values["attributions"])
    assert all(np.shape(one["prefix"]) == (shape[0],) * 2 for one in values["attributions"])
    (scored,) = tiny_run.predictor.predict(["a b c"])
    assert values["token_log_probs"] == pytest.approx(scored[0].token_log_probs, abs=1e-4)


def test_attention_is_the_map_of_the_run(tiny_run):
    (expected,) = tiny_run.predictor.attend([Example("a b c", "c b a")])
    explained = attribute(tiny_run.predictor, "a b c", methods=["attention"], target="c b a")
    assert explained.attributions[0].source == pytest.approx(expected.mean().numpy())


def test_recurrent_model_without_attention_has_gradients_but_no_attention(untrained_run):
    task = untrained_run("reversed")
    assert attribute(task, SOURCE, target=TARGET).attributions[0].source.any()
    with pytest.raises(ConfigError, match="has no attention to its source"):
        attribute(task, SOURCE, target=TARGET, methods=["attention"])


@pytest.mark.parametrize("methods", [(), ("erasure", "erasure")])
def test_methods_must_be_named_once(tiny_run, methods):
    with pytest.raises(ConfigError, match="at least one method, and each only once"):
        attribute(tiny_run.predictor, "a b", methods=methods)


def test_unknown_method_is_refused(tiny_run):
    with pytest.raises(ConfigError, match="`by` must be one of 'attention', .* but is 'lime'"):
        attribute(tiny_run.predictor, "a b", methods=("lime",))


def test_tasks_without_tokens_or_labels_are_refused(task_run):
    run = task_run("image_to_image")
    with pytest.raises(ConfigError, match="the task of this run is 'image_to_image'"):
        attribute(run.predictor, str(next(run.folder.parent.glob("*.png"))))


@pytest.mark.parametrize("method", ["gradients", "integrated_gradients", "erasure"])
def test_a_watching_function_ends_an_attribution(tiny_run, method):
    class EndedError(Exception):
        pass

    def watch(read):
        assert read() == ()
        raise EndedError

    with watching(watch), pytest.raises(EndedError):
        METHODS[method](force(tiny_run.predictor, "a b c", "c b a"))
