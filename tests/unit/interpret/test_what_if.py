"""Edits of the source, the target and attention weights change the output as recomputed by hand."""

import json
from dataclasses import replace

import pytest
import torch

from regard.attention.recording import record
from regard.core.errors import ConfigError
from regard.data.example import Example
from regard.interpret.editing import WeightEdit, attention_layers, edit_weights
from regard.interpret.passes import force
from regard.interpret.what_if import (
    change_source,
    force_token,
    force_word,
    replace_source_word,
    set_attention_weight,
)
from tests.unit.interpret.conftest import FAMILIES

SOURCE, TARGET = "a c e b", "v y z"
ATTENTIVE = [name for name in FAMILIES if "fixed" not in name and "re" not in name[:2]] + [
    "input feeding"
]


def log_probs(task, source, target):
    (scored,) = task.score([Example(source, target)])
    return pytest.approx(scored.token_log_probs, abs=1e-4)


class TestSource:
    """A changed source."""

    def test_replaced_word_gives_the_prediction_of_the_changed_source(self, tiny_run):
        task = tiny_run.predictor
        found = replace_source_word(task, "a b c", position=1, word="e")
        assert found.edited_source == "a e c"
        assert [found.before.text, found.after.text] == task.translate(["a b c", "a e c"])
        assert found.is_changed

    def test_each_output_has_its_probabilities_without_and_with_the_edit(self, tiny_run):
        task = tiny_run.predictor
        found = change_source(task, "a b c", changed="d b c")
        for output in (found.before, found.after):
            assert output.log_probs_before == log_probs(task, "a b c", output.text)
            assert output.log_probs_after == log_probs(task, "d b c", output.text)

    def test_word_is_deleted_if_the_new_one_is_empty(self, tiny_run):
        found = replace_source_word(tiny_run.predictor, "a b c", position=0, word="")
        assert found.edited_source == "b c"

    def test_label_of_a_changed_text(self, text_classifier):
        found = replace_source_word(text_classifier, "the big dog", position=1, word="small")
        assert found.before.tokens == (found.before.text,)
        (scored,) = text_classifier.score([Example("the small dog", found.before.text)])
        assert found.before.log_probs_after == pytest.approx([scored.log_prob], abs=1e-5)

    def test_position_beyond_the_source_is_refused(self, tiny_run):
        with pytest.raises(ConfigError, match="from 0 to 2, since there are 3 words of the source"):
            replace_source_word(tiny_run.predictor, "a b c", position=3, word="e")

    def test_values_can_be_written_as_json(self, tiny_run):
        found = change_source(tiny_run.predictor, "a b c", changed="d b c")
        values = json.loads(json.dumps(found.to_dict()))
        assert values["kind"] == "source" and values["is_changed"] is True
        assert values["after"]["text"] == found.after.text


class TestTarget:
    """A forced word, after which the search continues."""

    def test_output_continues_after_the_forced_word(self, tiny_run):
        task = tiny_run.predictor
        before = task.translate("a b c").split()
        found = force_word(task, "a b c", position=1, word="e")
        words = found.after.text.split()
        assert found.before.text.split() == before
        assert words[:2] == [before[0], "e"]
        (expected,) = task.predict(["a b c"], prefix=f"{before[0]} e")
        assert found.after.text == expected[0].text
        assert found.after.log_probs_after == log_probs(task, "a b c", found.after.text)

    def test_word_after_the_last_one_can_be_forced(self, tiny_run):
        words = tiny_run.predictor.translate("a b c").split()
        found = force_word(tiny_run.predictor, "a b c", position=len(words), word="e")
        assert found.after.text.split()[: len(words) + 1] == [*words, "e"]

    def test_token_can_be_forced(self, tiny_run):
        task = tiny_run.predictor
        token = task.target.tokenizer.tokens(task.target.tokenizer.encode("e"))[0]
        found = force_token(task, "a b c", position=0, token=token)
        assert found.after.tokens[0] == token
        assert found.after.text.split()[0] == "e"

    def test_unknown_token_is_refused(self, tiny_run):
        with pytest.raises(ConfigError, match="'nonsense' is not. Take one of the alternatives"):
            force_token(tiny_run.predictor, "a b c", position=0, token="nonsense")

    def test_language_model_continues_after_the_forced_token(self, task_run):
        found = force_token(task_run("language_model").predictor, "the d", position=1, token="x")
        assert found.after.tokens[:2] == (found.before.tokens[0], "x")

    def test_label_cannot_be_forced(self, text_classifier):
        with pytest.raises(ConfigError, match="the task of this run is 'classification'"):
            force_word(text_classifier, "the dog", position=0, word="no")


class TestAttention:
    """Attention weights set by hand."""

    @pytest.fixture(params=ATTENTIVE)
    def family(self, request, untrained_run):
        return untrained_run(request.param)

    def test_weights_are_set_and_the_others_are_scaled(self, family):
        edit = WeightEdit(target_position=2, source_position=1, weight=0.7)
        forced = force(family, SOURCE, TARGET)
        with record(family.model.decoder) as maps:
            forced.log_probs()
        before = maps.stack()[0]
        with edit_weights(family.model.decoder, edit, num_source=5):
            with record(family.model.decoder) as maps:
                forced.log_probs()
        # Without the weights by which a pointer copies.
        num_layers = len(attention_layers(family.model.decoder))
        after = maps.stack()[0, :num_layers]  # (N, H, T, S)
        first, last = before[:1, :, 2], after[:1, :, 2]
        assert after[:, :, 2, 1] == pytest.approx(0.7)
        assert before[:1, :, :2] == pytest.approx(after[:1, :, :2], abs=1e-6)
        kept = [0, 2, 3, 4]
        ratios = (last / first)[..., kept]
        assert ratios == pytest.approx(ratios[..., :1].expand_as(ratios), rel=1e-3)

    def test_same_weight_changes_nothing(self, family):
        forced = force(family, SOURCE, TARGET)
        with record(family.model.decoder) as maps:
            before = forced.log_probs()
        weights = maps.stack()[0]
        edit = WeightEdit(1, 3, float(weights[0, 0, 1, 3]), layer=0, head=0)
        with edit_weights(family.model.decoder, edit, num_source=5):
            assert forced.log_probs() == pytest.approx(before, abs=1e-5)

    def test_only_the_edited_step_and_later_ones_change(self, family):
        found = set_attention_weight(
            family, SOURCE, edit=WeightEdit(1, 0, 1.0), target=TARGET
        ).before
        assert found.log_probs_before[:1] == pytest.approx(found.log_probs_after[:1], abs=1e-6)
        assert found.log_probs_before[1] != pytest.approx(found.log_probs_after[1], abs=1e-7)

    def test_search_computes_the_probabilities_of_forced_decoding(self, family):
        edit = WeightEdit(1, 2, 0.9)
        found = set_attention_weight(family, SOURCE, edit=edit, target=TARGET)
        (before,) = family.target.tokenizer.tokens(family.target.read(TARGET)[1:2])
        assert found.after.tokens[0] == before
        # Step by step, as search does.
        model, forced = family.model, force(family, SOURCE, TARGET)
        memory = model.encode(forced.source.ids[None], torch.ones(1, 5).bool())
        tokens = torch.tensor([[family.target.tokenizer.sos, *forced.ids[:-1]]])
        values = []
        with torch.inference_mode(), edit_weights(model.decoder, edit, num_source=5):
            state = model.start(memory)
            for step, label in enumerate(forced.ids):
                logits, state = model.step(tokens[:, step : step + 1], state)
                values.append(float(logits[0, -1].log_softmax(-1)[label]))
        assert found.before.log_probs_after == pytest.approx(values, abs=1e-5)

    def test_context_is_that_of_the_only_attended_state(self, untrained_run):
        task = untrained_run("rnn")
        attention, contexts = task.model.decoder.attention, []
        forced = force(task, SOURCE, TARGET)
        with edit_weights(task.model.decoder, WeightEdit(0, 2, 1.0), num_source=5):
            hook = attention.register_forward_hook(lambda *call: contexts.append(call[2].context))
            forced.log_probs()
            hook.remove()
        memory = task.model.encode(forced.source.ids[None], torch.ones(1, 5).bool())
        assert contexts[0][0, 0] == pytest.approx(memory.states[0, 2].detach(), abs=1e-6)

    def test_trained_model_follows_the_weights(self, tiny_run):
        task = tiny_run.predictor
        first = task.translate("a b c").split()[0]
        found = set_attention_weight(task, "a b c", edit=WeightEdit(0, 0, 1.0))
        assert first == "c" and found.after.text.split()[0] == "a"

    def test_hooks_are_removed(self, untrained_run):
        task = untrained_run("transformer")
        before = task.score([Example(SOURCE, TARGET)])
        set_attention_weight(task, SOURCE, edit=WeightEdit(0, 0, 1.0), target=TARGET)
        assert task.score([Example(SOURCE, TARGET)]) == before

    def test_model_without_attention_is_refused(self, untrained_run):
        with pytest.raises(ConfigError, match="has no attention to its source"):
            set_attention_weight(untrained_run("reversed"), SOURCE, edit=WeightEdit(0, 0, 1.0))

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"target_position": 9}, "`target_position` must be from 0 to 3"),
            ({"source_position": 5}, "`source_position` must be from 0 to 4"),
            ({"layer": 2}, "`layer` must be from 0 to 1, but is 2"),
            ({"head": 2}, "`head` must be from 0 to 1, but is 2"),
        ],
    )
    def test_positions_beyond_the_map_are_refused(self, untrained_run, change, message):
        edit = replace(WeightEdit(0, 0, 0.5), **change)
        with pytest.raises(ConfigError, match=message):
            set_attention_weight(untrained_run("transformer"), SOURCE, edit=edit, target=TARGET)

    def test_weight_beyond_one_is_refused(self):
        with pytest.raises(ConfigError, match="`weight` must be from 0 to 1, but is 1.5"):
            WeightEdit(0, 0, 1.5)


@pytest.mark.parametrize("weight", [0.0, 0.25, 1.0])
def test_edited_rows_keep_their_sum(weight):
    rows = torch.tensor([[0.5, 0.3, 0.2], [1.0, 0.0, 0.0]])
    edited = WeightEdit(0, 0, weight).apply(rows, 3)
    assert edited[:, 0] == pytest.approx(weight)
    assert edited.sum(1) == pytest.approx(1)
    assert edited[0, 1] / edited[0, 2] == pytest.approx(1.5) or weight == 1
    assert edited[1, 1] == edited[1, 2]
