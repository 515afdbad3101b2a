from dataclasses import replace

import pytest
import torch
from torch.nn.functional import cross_entropy

from regard.core.errors import ConfigError
from regard.data.audio.field import AudioConfig
from regard.data.example import Example
from regard.data.text.tokenizers import TokenizerConfig
from regard.models.build import ModelConfig
from regard.models.decoders import BahdanauDecoderConfig
from regard.models.encoders.pyramidal_lstm import PyramidalLstmEncoderConfig
from regard.models.heads.ctc import CtcHeadConfig, labelling_loss
from regard.runs.ensemble import build_ensemble
from regard.search.forced import target_log_probs
from regard.search.settings import SearchConfig
from regard.tasks.attention_plots import CTC, spectrogram_of
from regard.tasks.generation.ctc import is_best_path_search
from regard.tasks.generation.recipe import DataConfig, Recipe
from regard.tasks.generation.task import Predictor
from regard.training.settings import TrainConfig

EXAMPLES = [
    Example("tones/0/1", "low high low"),
    Example("tones/0/2", "buzz"),
    Example("tones/0/3", "high high buzz low hiss"),
]
LIMITS = {"max_ratio": 0.0, "max_extra": 8}


def make_recipe(weight=0.3, **search):
    return Recipe(
        data=DataConfig(source=AudioConfig(num_mels=8), target=TokenizerConfig(kind="word")),
        model=ModelConfig(
            encoder=PyramidalLstmEncoderConfig(dim=6, num_layers=3),
            decoder=BahdanauDecoderConfig(embedding_dim=5, dim=8, attention_dim=4),
            ctc=CtcHeadConfig(weight=weight),
        ),
        train=TrainConfig(precision="fp32"),
        search=SearchConfig(**{**LIMITS, **search}),
    )


def build(weight=0.3, **search):
    task = Predictor.prepare(make_recipe(weight, **search), EXAMPLES, device=torch.device("cpu"))
    # Larger weights, so that the untrained model generates various tokens.
    with torch.no_grad():
        for parameter in task.model.parameters():
            parameter.mul_(2.0)
    return task


@pytest.fixture(scope="module")
def joint():
    return build(ctc_weight=0.4)


@pytest.fixture(scope="module")
def alone():
    return build(weight=1.0, ctc_weight=1.0)


@pytest.mark.parametrize("weight", [0.0, 0.3, 1.0])
def test_loss_is_the_weighted_sum_of_decoder_and_ctc(weight):
    task = build(weight, ctc_weight=1.0)
    (batch,) = task.batches(EXAMPLES)
    with torch.inference_mode():
        loss = task.loss(batch)
        output = task.model(task.inputs(batch), batch.source_mask, batch.target[:, :-1])
    labels = batch.target[:, 1:].masked_fill(~batch.target_mask[:, 1:], -100)
    decoder = cross_entropy(output.logits.transpose(1, 2), labels, reduction="sum")
    lengths = batch.target_mask.sum(1) - 2
    words = [len(EXAMPLES[row].target.split()) for row in batch.rows]
    assert lengths.tolist() == words
    ctc = labelling_loss(output.emissions, batch.target[:, 1:-1], lengths).sum()
    assert float(loss.total) == pytest.approx(float((1 - weight) * decoder + weight * ctc))
    assert float(loss.nll) == pytest.approx(float(loss.total))
    assert int(loss.count) == sum(words) + 3


def test_joint_search_returns_log_probabilities_of_the_decoder(joint):
    sources = [example.source for example in EXAMPLES]
    (batch,) = joint.batches(EXAMPLES)
    found = joint.predict([sources[row] for row in batch.rows])
    for row, (best,) in zip(batch.rows, found, strict=True):
        ids = [joint.target.tokenizer.find(token) for token in best.tokens]
        targets = torch.tensor([[joint.target.tokenizer.sos, *ids]])
        (alone,) = joint.batches([EXAMPLES[row]])
        with torch.inference_mode():
            log_probs = target_log_probs(
                joint.model, joint.inputs(alone), alone.source_mask, targets=targets
            )
        assert best.token_log_probs == pytest.approx(log_probs[0].tolist(), abs=1e-4)


def test_ctc_weight_changes_the_predictions(joint):
    sources = [f"tones/0/{number}" for number in range(12)]
    texts = {
        weight: joint.translate(sources, search=replace(joint.recipe.search, ctc_weight=weight))
        for weight in (0.0, 0.9, 1.0)
    }
    assert texts[0.0] != texts[0.9] != texts[1.0]


def test_batched_equals_alone(joint):
    sources = [f"tones/0/{number}" for number in range(6)]
    assert joint.translate(sources) == [joint.translate([source])[0] for source in sources]


def test_without_a_decoder_ctc_scores_targets(alone):
    for example, scored in zip(EXAMPLES, alone.score(EXAMPLES), strict=True):
        (batch,) = alone.batches([example])
        with torch.inference_mode():
            emissions = alone.model.ctc(alone.encode_batch(batch))
            loss = labelling_loss(emissions, batch.target[:, 1:-1], batch.target_mask.sum(1) - 2)
        assert scored.log_prob == pytest.approx(-float(loss), abs=1e-3)


def test_greedy_ctc_is_the_best_path(alone):
    sources = [example.source for example in EXAMPLES]
    greedy = replace(alone.recipe.search, beams=1)
    assert is_best_path_search(greedy, ())
    for source, (best,) in zip(sources, alone.predict(sources, search=greedy), strict=True):
        (batch,) = alone.batches([Example(source)])
        with torch.inference_mode():
            log_probs = alone.model.ctc(alone.encode_batch(batch)).log_probs[0]
        log_probs = log_probs.clone()
        log_probs[:, [alone.target.tokenizer.pad, alone.target.tokenizer.sos]] = -torch.inf
        log_probs[:, alone.target.tokenizer.eos] = -torch.inf
        path = log_probs.argmax(-1).tolist()
        kept = [token for token, before in zip(path, [-1, *path], strict=False) if token != before]
        words = [token for token in kept if token != alone.target.size]
        assert best.text == alone.target.write([*words, alone.target.tokenizer.eos])
        (scored,) = alone.score([Example(source, best.text)])
        if scored.tokens == best.tokens:
            assert best.log_prob == pytest.approx(scored.log_prob, abs=1e-3)


@pytest.mark.parametrize(
    "change", [{"beams": 2}, {"ctc_weight": 0.5}, {"temperature": 1.0}, {"min_length": 2}]
)
def test_other_searches_are_not_best_path(change):
    assert not is_best_path_search(replace(SearchConfig(beams=1, ctc_weight=1.0), **change), ())
    assert not is_best_path_search(SearchConfig(beams=1, ctc_weight=1.0), (5,))


def test_maps_have_the_recording_attention_and_ctc_alignment(joint):
    (found, *_) = joint.attend(EXAMPLES)
    recording = found.recording
    num_positions = -(-len(recording.frames) // 4)
    assert recording.frames_per_position == 4
    assert found.weights.shape[2:] == recording.aligned.shape == (4, num_positions)
    assert found.source[:3] == ("0.00 s", "0.04 s", "0.08 s")
    assert recording.aligned[:3].sum(1).min() >= 1
    assert recording.aligned[3].sum() == 0
    first, second, third = recording.aligned[:3].argmax(1).tolist()
    assert first < second < third
    plotted = spectrogram_of(found)
    assert plotted.words == ("low", "high", "low")
    assert list(plotted.weights) == ["attention", CTC]
    assert plotted.seconds == pytest.approx(len(recording.frames) / 100)
    assert plotted.step == pytest.approx(0.04)


def test_target_too_long_for_its_recording_has_no_alignment(joint):
    (found,) = joint.attend([Example("tones/0/2", " ".join(["buzz"] * 200))])
    assert found.recording.aligned.sum() == 0


def test_without_a_decoder_the_map_is_the_ctc_alignment(alone):
    (found, *_) = alone.attend(EXAMPLES)
    assert found.kind == CTC
    assert torch.equal(found.mean(), found.recording.aligned)
    assert list(spectrogram_of(found).weights) == [CTC]


def test_ctc_in_search_needs_a_head():
    recipe = make_recipe()
    with pytest.raises(
        ConfigError,
        match=r"`search.ctc_weight` above 0 .* is 0\.5 where `model.ctc.kind` is 'none'",
    ):
        Recipe(search=SearchConfig(ctc_weight=0.5))
    with pytest.raises(
        ConfigError,
        match=r"^`search.ctc_weight` must be 1 where `model.ctc.weight` is 1, .* is 0\.$",
    ):
        replace(recipe, model=replace(recipe.model, ctc=CtcHeadConfig(weight=1.0)))


def test_predict_checks_the_ctc_weight(alone):
    with pytest.raises(ConfigError, match=r"must be 1 where `model.ctc.weight` is 1"):
        alone.predict(["tones/0/1"], search=SearchConfig(ctc_weight=0.5))


def test_ensemble_uses_decoders_and_refuses_ctc_alone(joint, alone, tmp_path):
    folders = [tmp_path / name for name in ("a", "b")]
    for folder in folders:
        folder.mkdir()
        joint.save(folder)
    both = build_ensemble(dict.fromkeys(folders, joint))
    plain = replace(joint.recipe.search, ctc_weight=0.0)
    assert both.translate(["tones/0/1"]) == joint.translate(["tones/0/1"], search=plain)
    with pytest.raises(ConfigError, match=r"^An ensemble needs runs with a decoder, but "):
        build_ensemble({folders[0]: joint, folders[1]: alone})
