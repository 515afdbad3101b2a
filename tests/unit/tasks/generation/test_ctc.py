from dataclasses import replace

import pytest
import torch
from torch.nn.functional import cross_entropy

from regard.core.errors import ConfigError
from regard.data.audio.field import AudioConfig
from regard.data.example import Example
from regard.data.text.tokenizers import TokenizerConfig
from regard.interpret.visualize import spectrogram_of
from regard.models.build import ModelConfig
from regard.models.decoders import BahdanauDecoderConfig
from regard.models.encoders.pyramidal_lstm import PyramidalLstmEncoderConfig
from regard.models.heads.ctc import CtcHeadConfig, labelling_loss
from regard.runs.ensemble import build_ensemble
from regard.search.forced import force
from regard.search.settings import SearchConfig
from regard.tasks.generation.attention import CTC
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
    # Larger weights, so that the untrained say something.
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
def test_the_loss_is_weighed(weight):
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


def test_what_both_found_has_the_decoders_log_probability(joint):
    sources = [example.source for example in EXAMPLES]
    (batch,) = joint.batches(EXAMPLES)
    found = joint.predict([sources[row] for row in batch.rows])
    for row, (best,) in zip(batch.rows, found, strict=True):
        ids = [joint.target.tokenizer.find(piece) for piece in best.tokens]
        targets = torch.tensor([[joint.target.tokenizer.sos, *ids]])
        (alone,) = joint.batches([EXAMPLES[row]])
        with torch.inference_mode():
            said = force(joint.model, joint.inputs(alone), alone.source_mask, targets=targets)
        assert best.token_log_probs == pytest.approx(said[0].tolist(), abs=1e-4)


def test_the_weight_changes_what_is_found(joint):
    sources = [f"tones/0/{number}" for number in range(12)]
    texts = {
        weight: joint.translate(sources, search=replace(joint.recipe.search, ctc_weight=weight))
        for weight in (0.0, 0.9, 1.0)
    }
    assert texts[0.0] != texts[0.9] != texts[1.0]


def test_batched_answers_equal_those_alone(joint):
    sources = [f"tones/0/{number}" for number in range(6)]
    assert joint.translate(sources) == [joint.translate([source])[0] for source in sources]


def test_alone_ctc_scores_with_its_own_log_probability(alone):
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
            chosen = alone.model.ctc(alone.encode_batch(batch)).log_probs[0]
        chosen = chosen.clone()
        chosen[:, [alone.target.tokenizer.pad, alone.target.tokenizer.sos]] = -torch.inf
        chosen[:, alone.target.tokenizer.eos] = -torch.inf
        path = chosen.argmax(-1).tolist()
        kept = [token for token, before in zip(path, [-1, *path], strict=False) if token != before]
        words = [token for token in kept if token != alone.target.size]
        assert best.text == alone.target.write([*words, alone.target.tokenizer.eos])
        (scored,) = alone.score([Example(source, best.text)])
        if scored.tokens == best.tokens:
            assert best.log_prob == pytest.approx(scored.log_prob, abs=1e-3)


@pytest.mark.parametrize(
    "change", [{"beams": 2}, {"ctc_weight": 0.5}, {"temperature": 1.0}, {"min_length": 2}]
)
def test_whatever_else_is_asked_needs_a_search(change):
    assert not is_best_path_search(replace(SearchConfig(beams=1, ctc_weight=1.0), **change), ())
    assert not is_best_path_search(SearchConfig(beams=1, ctc_weight=1.0), (5,))


def test_maps_hold_the_recording_and_both_alignments(joint):
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
    heard = spectrogram_of(found)
    assert heard.words == ("low", "high", "low")
    assert list(heard.weights) == ["attention", CTC]
    assert heard.seconds == pytest.approx(len(recording.frames) / 100)
    assert heard.step == pytest.approx(0.04)


def test_a_target_too_long_to_be_heard_is_heard_nowhere(joint):
    (found,) = joint.attend([Example("tones/0/2", " ".join(["buzz"] * 200))])
    assert found.recording.aligned.sum() == 0


def test_without_a_decoder_the_map_is_the_alignment(alone):
    (found, *_) = alone.attend(EXAMPLES)
    assert found.kind == CTC
    assert torch.equal(found.mean(), found.recording.aligned)
    assert list(spectrogram_of(found).weights) == [CTC]


def test_ctc_in_search_needs_a_head():
    recipe = make_recipe()
    with pytest.raises(
        ConfigError,
        match=r"^`search.ctc_weight` above 0 needs a model with a CTC head, but is "
        r"0\.5 where `model.ctc.kind` is 'none'\. Set it to 0\.$",
    ):
        Recipe(search=SearchConfig(ctc_weight=0.5))
    with pytest.raises(
        ConfigError,
        match=r"^`search.ctc_weight` must be 1 where `model.ctc.weight` is 1, .* is 0\.$",
    ):
        replace(recipe, model=replace(recipe.model, ctc=CtcHeadConfig(weight=1.0)))


def test_ctc_in_search_is_checked_when_it_is_asked_for(alone):
    with pytest.raises(ConfigError, match=r"must be 1 where `model.ctc.weight` is 1"):
        alone.predict(["tones/0/1"], search=SearchConfig(ctc_weight=0.5))


def test_an_ensemble_writes_with_decoders(joint, alone, tmp_path):
    folders = [tmp_path / name for name in ("a", "b")]
    for folder in folders:
        folder.mkdir()
        joint.save(folder)
    both = build_ensemble(dict.fromkeys(folders, joint))
    plain = replace(joint.recipe.search, ctc_weight=0.0)
    assert both.translate(["tones/0/1"]) == joint.translate(["tones/0/1"], search=plain)
    with pytest.raises(ConfigError, match=r"^An ensemble needs runs with a decoder, but "):
        build_ensemble({folders[0]: joint, folders[1]: alone})
