import pytest
import torch

from regard.core.errors import ConfigError
from regard.core.specs import TextSpec
from regard.data.example import Example
from regard.models.build import build_model
from regard.runs.auto_recipe import SMALL_DATA, choose_recipe
from regard.runs.auto_tokens import WORD_LIMIT
from regard.runs.recipes import load_recipe

CPU, CUDA = torch.device("cpu"), torch.device("cuda")
FEW_WORDS = "the cat sees the dog"


def many_words(num):
    """Two-word lines with `num` distinct words in all."""
    return [f"word{2 * number} word{2 * number + 1}" for number in range(num // 2)]


def choose_for(texts, device=CPU):
    return choose_recipe([Example(text, FEW_WORDS) for text in texts], device)


def choose_words(num, device=CPU):
    return choose_recipe([Example("hello", "hallo")] * num, device)


def test_single_words_get_character_tokens():
    choice = choose_for(["hello", "world", "good morning"])
    assert choice.settings["data.source.kind"] == "char"
    assert "source tokens: char (most lines are a single word)" in choice.reasons


def test_few_distinct_words_get_word_tokens():
    choice = choose_for(["a dog", "a cat"] * 2)
    assert choice.settings["data.source.kind"] == "word"
    assert "source tokens: word (only 3 distinct words)" in choice.reasons


def test_word_tokens_up_to_the_word_limit():
    assert choose_for(2 * many_words(WORD_LIMIT)).settings["data.source.kind"] == "word"


def test_many_distinct_words_get_subword_tokens():
    choice = choose_for(2 * many_words(WORD_LIMIT + 2))
    assert choice.settings["data.source.kind"] == "bpe"
    assert "source tokens: bpe (2,002 distinct words, 0 of them once)" in choice.reasons


def test_words_that_occur_once_get_subword_tokens():
    choice = choose_for([*["a dog"] * 96, *many_words(8)])
    assert "source tokens: bpe (10 distinct words, 8 of them once)" in choice.reasons


@pytest.mark.parametrize(("num_lines", "size"), [(9_999, 4_000), (10_000, 8_000)])
def test_more_data_gets_a_larger_vocabulary(num_lines, size):
    choice = choose_for(many_words(2 * num_lines))
    assert choice.settings["data.source.vocab_size"] == size


def test_source_and_target_tokens_are_chosen_separately():
    settings = choose_for(["hello", "world"]).settings
    kinds = [settings[f"data.{side}.kind"] for side in ("source", "target")]
    assert kinds == ["char", "word"]
    assert settings["data.is_joint"] is False


@pytest.mark.parametrize(
    ("device", "recipe", "reason"),
    [(CPU, "modern-laptop", "no GPU"), (CUDA, "modern-small", "on a GPU")],
)
def test_sentences_get_a_transformer_of_the_size_that_the_device_trains(device, recipe, reason):
    choice = choose_for(["a dog"] * SMALL_DATA, device)
    assert choice.recipe == recipe
    assert choice.reasons[0] == reason


def test_few_sentences_get_the_small_transformer_on_every_device():
    choices = [choose_for(["a dog"] * (SMALL_DATA - 1), device) for device in (CPU, CUDA)]
    assert [choice.recipe for choice in choices] == ["modern-laptop"] * 2


@pytest.mark.parametrize(
    ("device", "recipe"), [(CPU, "bahdanau2015-laptop"), (CUDA, "bahdanau2015")]
)
def test_words_get_a_recurrent_recipe_of_the_size_that_the_device_trains(device, recipe):
    assert choose_words(2, device).recipe == recipe


def test_few_words_are_trained_for_a_fixed_number_of_steps():
    choice = choose_words(SMALL_DATA - 1)
    recipe = load_recipe(choice.recipe, defaults=choice.settings)
    assert (recipe.train.max_steps, recipe.train.max_epochs) == (2_000, 0)
    assert "2,000 steps of 32 pairs (only 9,999 pairs)" in choice.reasons


def test_larger_data_is_trained_as_the_recipe_states():
    for choice in (choose_words(SMALL_DATA), choose_for(["a dog"] * 25_000)):
        recipe = load_recipe(choice.recipe, defaults=choice.settings)
        assert recipe.train == load_recipe(choice.recipe).train


@pytest.mark.parametrize(("num_pairs", "rate"), [(9_999, 0.2), (24_999, 0.1), (25_000, 0.0)])
def test_fewer_sentences_get_more_dropout(num_pairs, rate):
    choice = choose_for(["a dog"] * num_pairs)
    model = load_recipe(choice.recipe, defaults=choice.settings).model
    assert (model.encoder.dropout, model.decoder.dropout) == (rate, rate)


def test_outlook_names_the_recipe_for_a_gpu_and_the_setting_for_more_time():
    outlook = choose_for(["a dog"] * SMALL_DATA).outlook
    assert "modern-small" in outlook
    assert "train.max_steps" in outlook


def test_every_choice_ends_after_a_fixed_number_of_steps():
    for choice in (choose_for(["a dog"]), choose_words(2), choose_for(["a dog"], CUDA)):
        train = load_recipe(choice.recipe, defaults=choice.settings).train
        assert train.max_steps > 0


@pytest.mark.parametrize(
    ("overrides", "is_joint"), [((), True), (("data.target.vocab_size=500",), False)]
)
def test_subwords_of_both_sides_share_a_vocabulary_unless_the_target_has_its_own(
    overrides, is_joint
):
    texts = many_words(WORD_LIMIT + 2)
    examples = [Example(text, text) for text in texts]
    settings = choose_recipe(examples, CPU, overrides=overrides).settings
    assert settings["data.is_joint"] is is_joint
    assert settings["model.ties"] == ("all" if is_joint else "output")


@pytest.mark.parametrize("device", [CPU, CUDA])
def test_chosen_recipe_fits_two_vocabularies_of_different_size(device):
    choice = choose_for(["hello", "world"], device)
    recipe = load_recipe(choice.recipe, defaults=choice.settings)
    with torch.device("meta"):
        model = build_model(recipe.model, source=TextSpec(20), target_vocab_size=30)
    assert model.decoder.output.out_features == 30


@pytest.mark.parametrize(
    ("metric", "reason"),
    [
        (None, "metric: bleu (higher is better)"),
        ("wer", "metric: wer (lower is better)"),
        ("accuracy@5", "metric: accuracy@5 (higher is better)"),
    ],
)
def test_reasons_name_the_metric_and_its_direction(metric, reason):
    choice = choose_recipe([Example("a dog", FEW_WORDS)], CPU, metric=metric)
    assert choice.reasons[3] == reason


@pytest.mark.parametrize(
    ("device", "labels", "captions"),
    [(CPU, "he2016-laptop", "xu2015-laptop"), (CUDA, "he2016", "xu2015")],
)
def test_images_with_labels_or_captions_get_an_image_recipe(device, labels, captions):
    names = [f"photos/{number}.jpg" for number in range(20)]
    pets = [Example(name, ("cat", "dog")[number % 2]) for number, name in enumerate(names)]
    choice = choose_recipe(pets, device)
    assert choice.recipe == labels
    assert "sources are images and targets labels (2 distinct ones)" in choice.reasons
    assert load_recipe(choice.recipe, defaults=choice.settings).train.max_steps == 2_000
    captioned = [Example(name, f"a cat and {number} dogs") for number, name in enumerate(names)]
    choice = choose_recipe(captioned, device)
    assert choice.recipe == captions
    assert "sources are images and targets captions" in choice.reasons
    assert load_recipe(choice.recipe, defaults=choice.settings).validation.metric == "cider"


def test_images_are_detected_despite_a_header_but_not_within_sentences():
    captioned = [
        Example("image", "caption"),
        *[Example(f"{n}.png", f"photo {n}") for n in range(9)],
    ]
    assert choose_recipe(captioned, CPU).recipe == "xu2015-laptop"
    assert choose_for(["open 1.png", "see photo.jpg here", "a", "b"]).recipe != "xu2015-laptop"


@pytest.mark.parametrize(("device", "end"), [(CPU, "-laptop"), (CUDA, "")])
def test_videos_get_a_video_recipe(device, end):
    labelled = [Example(f"moving/0/{number}", "left") for number in range(9)]
    assert choose_recipe(labelled, device).recipe == f"moving-directions{end}"
    captioned = [Example(f"{number}.mp4", f"number {number} moves left") for number in range(9)]
    assert choose_recipe(captioned, device).recipe == f"moving{end}"


def test_texts_with_images_need_a_named_recipe():
    with pytest.raises(ConfigError, match="--recipe scenes-questions-laptop"):
        choose_recipe([Example(("what", "shapes/0/1"), "star")], CPU)
