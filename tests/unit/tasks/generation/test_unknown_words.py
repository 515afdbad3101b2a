from dataclasses import replace

import pytest

from regard.core.errors import ConfigError
from regard.data.example import Example
from regard.runs.train import train
from regard.tasks.generation.lexical import LexicalOptions
from regard.tasks.generation.unknown_words import replace_unknown

SOURCES = ["a b c d", "e d c", "b a e", "c e"]
SETTINGS = (
    "data.source.kind=word",
    "data.target.kind=word",
    "data.target.vocab_size=7",
    # Otherwise, the attention weights of such a small model do not align words.
    "alignment.weight=1",
)


@pytest.fixture(scope="module")
def predictor(reverse_files, tmp_path_factory):
    """Model of words whose target vocabulary has three of five letters."""
    out = tmp_path_factory.mktemp("runs") / "words"
    return train(reverse_files.request(out, *SETTINGS)).predictor


def test_unknown_words_are_the_source_words_with_the_largest_weight(predictor):
    plain = predictor.predict(SOURCES)
    assert any("⁇" in best[0].text for best in plain)
    found = predictor.with_lexical(LexicalOptions(replace_unknown=True)).predict(SOURCES)
    num_right = num_unknown = 0
    for source, [before], [after] in zip(SOURCES, plain, found, strict=True):
        assert after.tokens == before.tokens
        [shown] = predictor.attend([Example(source, before.text)])
        best = shown.mean()[:, : len(source.split())].argmax(1).tolist()
        expected = [
            source.split()[best[index]] if token == "⁇" else token
            for index, token in enumerate(before.text.split())
        ]
        assert after.text.split() == expected
        num_unknown += before.text.split().count("⁇")
        num_right += sum(
            left == right
            for left, right, token in zip(
                expected, source.split()[::-1], before.text.split(), strict=False
            )
            if token == "⁇"
        )
    # Targets are reversed sources: the model attends to the letter that it cannot generate.
    assert num_right == num_unknown > 0


def test_unknown_words_are_translated_by_the_glossary(predictor):
    unknown = set("abcde") - set(predictor.target.tokenizer.decode(range(4, 7)).split())
    glossary = {letter: letter.upper() * 2 for letter in unknown}
    options = LexicalOptions(glossary=glossary, replace_unknown=True)
    text = predictor.with_lexical(options).translate("a b c d e")
    assert "⁇" not in text
    replaced = [word for word in text.split() if len(word) == 2]
    assert replaced
    assert set(replaced) <= {letter.upper() * 2 for letter in unknown}
    with pytest.raises(ConfigError, match="`glossary` must have targets of tokens"):
        predictor.with_lexical(LexicalOptions(glossary=glossary))


def test_text_with_another_number_of_signs_is_unchanged(predictor):
    [[best]] = predictor.predict(["a b c d"])
    changed = replace(best, text="⁇ ⁇ y", tokens=("▁a", "<unk>", "▁d", "<eos>"))
    assert replace_unknown(predictor, ["a b c d"], [[changed]]) == [[changed]]


def test_models_without_attention_are_refused(tiny_run_without_attention):
    with pytest.raises(ConfigError, match="needs attention weights, but this model has none"):
        tiny_run_without_attention.predictor.with_lexical(LexicalOptions(replace_unknown=True))


def test_several_predictions_of_a_source_are_replaced(predictor):
    task = predictor.with_lexical(LexicalOptions(replace_unknown=True))
    found = task.predict(SOURCES, num_best=3)
    assert all("⁇" not in one.text for best in found for one in best)
    assert [len(best) for best in found] == [3] * len(SOURCES)
