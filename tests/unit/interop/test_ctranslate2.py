"""Predictions of CTranslate2 equal those of this package, and the rest is refused."""

import shutil
import sys
from dataclasses import replace

import pytest
import torch

from regard.core.errors import ConfigError, ExportError
from regard.data.text.field import TextField
from regard.data.text.tokenizers import TokenizerConfig
from regard.data.text.vocabulary import train_tokenizer
from regard.interop.ctranslate2 import convert as converting
from regard.interop.ctranslate2.convert import convert
from regard.interop.ctranslate2.engine import CTranslate2Predictor
from regard.interop.engines import with_engine
from regard.models.build import ModelConfig
from regard.models.decoders import TransformerDecoderConfig
from regard.models.encoders.transformer import TransformerEncoderConfig
from regard.runs.folder import load, read_test_set
from regard.tasks.generation.lexical import LexicalOptions
from regard.tasks.generation.recipe import DataConfig, Recipe
from regard.tasks.generation.task import Predictor

pytest.importorskip("ctranslate2", reason="ctranslate2 is not installed")


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """Return an empty cache."""
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "ctranslate2"


@pytest.fixture
def sources(tiny_transformer_run):
    return [one.source for one in read_test_set(tiny_transformer_run.folder)]


def predict_both(task, sources, *, num_best=1, **changes):
    search = replace(task.search, **changes)
    other = CTranslate2Predictor.of(task, has_token_log_probs=True)
    return (
        predictor.predict(sources, search=search, num_best=num_best) for predictor in (task, other)
    )


def assert_equal(ours, theirs):
    for mine, other in zip(ours, theirs, strict=True):
        assert [(one.text, one.tokens) for one in mine] == [(one.text, one.tokens) for one in other]
        for one, two in zip(mine, other, strict=True):
            assert two.log_prob == pytest.approx(one.log_prob, abs=1e-4)
            assert two.token_log_probs == pytest.approx(one.token_log_probs, abs=1e-4)


@pytest.mark.parametrize(
    "changes",
    [
        {"beams": 1},
        {"beams": 5},
        {"beams": 5, "length_penalty": 0.5},
        # Limits within the targets, which differ between the sentences of a batch.
        {"beams": 1, "max_ratio": 0.5, "max_extra": 1},
        {"beams": 3, "max_ratio": 0.5, "max_extra": 1},
    ],
)
def test_predictions_equal_those_of_this_package(tiny_transformer_run, sources, changes):
    assert_equal(*predict_both(tiny_transformer_run.predictor, [*sources, ""], **changes))


def test_lists_of_best_predictions_are_equal(tiny_transformer_run, sources):
    assert_equal(*predict_both(tiny_transformer_run.predictor, sources, num_best=2, beams=3))


def test_without_a_second_pass_log_probabilities_are_renormalised(tiny_transformer_run, sources):
    task = tiny_transformer_run.predictor
    other = CTranslate2Predictor.of(task)
    for ours, theirs in zip(task.predict(sources), other.predict(sources), strict=True):
        # Padding and the start token have some probability, but are never generated.
        assert ours[0].log_prob <= theirs[0].log_prob < ours[0].log_prob + 0.5
        assert (theirs[0].text, theirs[0].token_log_probs) == (ours[0].text, ())


@pytest.mark.parametrize("positions", ["sinusoidal", "sinusoidal_halves"])
@pytest.mark.parametrize("ties", ["output", "all"])
def test_separate_vocabularies_and_both_kinds_of_positions(positions, ties):
    texts = {"source": ["abcd"], "target": ["abcd" if ties == "all" else "xyzuvw"]}
    tokenizers = {
        side: train_tokenizer(TokenizerConfig(kind="char"), text) for side, text in texts.items()
    }
    fields = {
        side: TextField(tokenizers["source" if ties == "all" else side], has_start=side == "target")
        for side in texts
    }
    sizes = {"dim": 8, "num_layers": 2, "num_heads": 2, "feed_forward_dim": 12}
    model = ModelConfig(
        encoder=TransformerEncoderConfig(positions=positions, feed_forward="gelu", **sizes),
        decoder=TransformerDecoderConfig(positions=positions, feed_forward="gelu", **sizes),
        ties=ties,
    )
    recipe = Recipe(model=model, data=DataConfig(is_joint=ties == "all"))
    task = Predictor.from_scratch(recipe, fields, device=torch.device("cpu"))
    task.model.eval()
    with torch.no_grad():
        for parameter in task.model.parameters():
            parameter.normal_()
    assert_equal(*predict_both(task, ["abc", "d", "dcbaabcd"], beams=1, max_extra=5))


def test_model_is_converted_once_for_equal_weights(tiny_transformer_run, cache, monkeypatch):
    task = tiny_transformer_run.predictor
    folder = convert(task)
    assert folder.parent == cache

    def save(*arguments):
        raise AssertionError("The model is converted again.")

    with monkeypatch.context() as patch:
        patch.setattr(converting, "_save", save)
        assert convert(task) == folder
    weight = task.model.encoder.blocks[0].feed_forward.hidden_map.weight
    before = weight.detach().clone()
    with torch.no_grad():
        weight[0, 0] += 1
    try:
        assert convert(task) != folder
    finally:
        with torch.no_grad():
            weight.copy_(before)
    assert len([path for path in cache.iterdir() if not path.name.startswith(".")]) == 2


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"temperature": 1.0}, "temperature"),
        ({"repetition_penalty": 1.5}, "repetition_penalty"),
        ({"no_repeat_ngram": 2}, "no_repeat_ngram"),
        ({"consensus": 3}, "consensus"),
        ({"min_length": 3}, "min_length"),
        ({"length_penalty_kind": "gnmt"}, "length_penalty_kind"),
        ({"coverage_penalty": 0.2}, "coverage_penalty"),
        ({"stopping": "bound"}, "stopping"),
        ({"stopping": "none"}, "stopping"),
        ({"groups": 5}, "groups"),
        ({"consensus": 3, "consensus_metric": "chrf"}, "consensus"),
        ({"temperature": 1.0, "typical_p": 0.9}, "temperature"),
        ({"precision": "int8"}, "precision"),
        ({"precision": "bf16"}, "precision"),
    ],
)
def test_other_search_settings_are_refused(tiny_transformer_run, changes, name):
    other = CTranslate2Predictor.of(tiny_transformer_run.predictor)
    with pytest.raises(ConfigError, match=rf"^`--engine ctranslate2` needs `search\.{name}` \S+, "):
        other.predict(["a b"], search=replace(other.search, **changes))


def test_prefix_and_too_many_predictions_are_refused(tiny_transformer_run):
    other = CTranslate2Predictor.of(tiny_transformer_run.predictor)
    with pytest.raises(ConfigError, match=r"has no `--prefix`"):
        other.predict(["a b"], prefix="a")
    with pytest.raises(ConfigError, match=r"^`nbest` must be at most the number of beams \(5\)"):
        other.predict(["a b"], num_best=6)


def test_runs_and_types_that_it_lacks_are_refused(tiny_run, tiny_transformer_run, task_run):
    match = r"^CTranslate2 takes runs .+`model\.encoder\.kind` must be 'transformer', but is 'rnn'"
    with pytest.raises(ExportError, match=match):
        CTranslate2Predictor.of(tiny_run.predictor)
    with pytest.raises(ConfigError, match=r"on this device, but not in float8\.$"):
        CTranslate2Predictor.of(tiny_transformer_run.predictor, compute_type="float8")
    with pytest.raises(ConfigError, match="its task is 'classification'"):
        CTranslate2Predictor.of(task_run("classification").predictor)


def test_ensembles_are_refused(tiny_transformer_run, tmp_path):
    other = shutil.copytree(tiny_transformer_run.folder, tmp_path / "other")
    ensemble = load(f"{tiny_transformer_run.folder},{other}", "cpu")
    with pytest.raises(ConfigError, match=r"^`--engine ctranslate2` takes a single model"):
        CTranslate2Predictor.of(ensemble)


def test_missing_package_is_named_with_the_extra(tiny_transformer_run, monkeypatch):
    monkeypatch.setitem(sys.modules, "ctranslate2", None)
    with pytest.raises(ConfigError, match=r"pip install 'regard\[ctranslate2\]'"):
        with_engine(tiny_transformer_run.predictor, "ctranslate2", has_log_probs=False, options={})


def test_lexical_control_is_refused(tiny_transformer_run):
    other = CTranslate2Predictor.of(tiny_transformer_run.predictor)
    with pytest.raises(ConfigError, match="^Lexical control needs the search of this package"):
        other.with_lexical(LexicalOptions(forbid=("a",)))
