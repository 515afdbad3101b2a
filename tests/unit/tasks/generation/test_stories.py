"""Sources of several texts, with an encoder that has one position per text."""

import pytest
import torch

from regard.core.errors import ConfigError
from regard.data.example import Example
from regard.models.encoders.sentences import SentencesEncoderConfig
from regard.models.ensemble import Ensemble
from regard.runs.recipes import load_recipe
from regard.tasks.generation.evaluation import measure_alignment
from regard.tasks.generation.task import Predictor
from regard.tasks.warm_start import find_encoder

STORY = ("Mary took the milk.", "John went home.", "Where is Mary?")
EXAMPLES = [
    Example(STORY, "home", alignment=((1, 0),)),
    Example(("John took it.", "Who?"), "John", alignment=((0, 0),)),
    Example(("It is.", "Mary went home.", "John is.", "Where is he?"), "the hall"),
]
TOKENS = (
    "model.encoder.kind=transformer",
    "model.encoder.dim=8",
    "model.encoder.num_heads=2",
)
SMALL = tuple(f"model.decoder.{name}=8" for name in ("dim", "embedding_dim", "attention_dim"))


def build(*overrides):
    torch.manual_seed(0)
    recipe = load_recipe("babi", (*overrides, *SMALL))
    return Predictor.prepare(recipe, EXAMPLES, device=torch.device("cpu"))


@pytest.fixture(scope="module")
def predictor():
    return build("model.encoder.dim=8", "model.encoder.num_heads=2")


def test_attention_is_over_whole_sentences(predictor):
    found = predictor.attend(EXAMPLES)
    assert [one.source for one in found] == [
        ("mary took the milk.", "john went home.", "where is mary?"),
        ("john took it.", "who?"),
        ("it is.", "mary went home.", "john is.", "where is he?"),
    ]
    for one in found:
        assert one.weights.shape[-1] == len(one.source)
        assert torch.allclose(one.weights.sum(-1), torch.ones(()), atol=1e-5)


def test_maps_of_a_batch_equal_those_of_single_examples(predictor):
    for example, together in zip(EXAMPLES, predictor.attend(EXAMPLES), strict=True):
        (alone,) = predictor.attend([example])
        assert torch.allclose(together.weights, alone.weights, atol=1e-5)


def test_map_of_a_line_equals_that_of_its_texts(predictor):
    (texts,) = predictor.attend([Example(STORY, "home")])
    (line,) = predictor.attend([Example("\t".join(STORY), "home")])
    assert line.source == texts.source
    assert torch.equal(line.weights, texts.weights)


def test_attention_of_an_ensemble_is_over_whole_sentences(predictor):
    ensemble = Predictor(
        predictor.recipe,
        Ensemble([predictor.model, predictor.model]),
        predictor.fields,
        device=predictor.device,
    )
    (one,), (two,) = predictor.attend(EXAMPLES[:1]), ensemble.attend(EXAMPLES[:1])
    assert two.source == one.source
    assert torch.allclose(two.mean(), one.mean(), atol=1e-6)


def test_prediction_of_a_line_equals_that_of_its_texts(predictor):
    lines = ["\t".join(example.source) for example in EXAMPLES]
    texts = [example.source for example in EXAMPLES]
    assert predictor.predict(lines) == predictor.predict(texts)


def test_a_single_text_is_predicted_and_an_empty_line_is_not(predictor):
    alone, empty, blank = predictor.predict(["Where is Mary?", "", "\t"])
    assert alone[0].tokens
    assert [found[0].text for found in (empty, blank)] == ["", ""]


def test_alignment_links_to_the_sentence_with_the_largest_weight(predictor):
    aligned = EXAMPLES[:2]
    best = [int(one.mean()[0].argmax()) for one in predictor.attend(aligned)]
    hits = [(index, 0) in e.alignment for index, e in zip(best, aligned, strict=True)]
    result = measure_alignment(predictor, aligned)
    assert result.detail["precision"] == sum(hits) / 2
    correct = [
        Example(e.source, e.target, alignment=((index, 0),))
        for index, e in zip(best, aligned, strict=True)
    ]
    assert measure_alignment(predictor, correct).value == 0.0


def test_weight_of_a_text_is_the_sum_of_its_tokens():
    predictor = build(*TOKENS)
    (found,) = predictor.attend([Example(STORY, "home")])
    lengths = [len(predictor.source.read(text)) for text in STORY]
    assert sum(lengths) == len(found.source)
    best = int(torch.stack([w.sum() for w in found.mean()[0].split(lengths)]).argmax())
    correct = Example(STORY, "home", alignment=((best, 0),))
    assert measure_alignment(predictor, [correct]).value == 0.0


def test_fine_tuning_from_a_sentence_encoder_is_refused(predictor):
    assert isinstance(predictor.recipe.model.encoder, SentencesEncoderConfig)
    message = r"`init_from` must be a run whose encoder has one state per token.*'sentences'"
    with pytest.raises(ConfigError, match=message):
        find_encoder(predictor)


@pytest.mark.parametrize("recipe", ["sst2-transformer", "liu2019-laptop"])
def test_sentence_encoder_is_refused_by_other_tasks(recipe):
    with pytest.raises(ConfigError, match=r"`model\.encoder\.kind` must be .* but is 'sentences'"):
        load_recipe(recipe, ("model.encoder.kind=sentences",))
