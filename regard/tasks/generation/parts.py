"""What an encoder–decoder is made of before it learns: fields, and what a run passes on to it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor

from regard.core.errors import ConfigError
from regard.data.example import Example
from regard.data.image.field import ImageConfig
from regard.data.modality import SourceField, fit_source
from regard.data.text.field import TextField, both_sides, texts_of
from regard.data.text.tokenizers import TokenizerConfig
from regard.data.text.vocabulary import train_tokenizer
from regard.models.seq2seq import EncoderDecoder
from regard.tasks.base import Task
from regard.tasks.recipe import DataConfig, Recipe
from regard.tasks.warm_start import find_image_encoder, see_as


@dataclass(frozen=True)
class Parts:
    """What a predictor is built of."""

    recipe: Recipe
    source: SourceField
    target: TextField
    weights: Mapping[str, Tensor]
    """Weights to begin with, by their names; those that are not here begin afresh."""


def learn_parts(recipe: Recipe, examples: Sequence[Example]) -> Parts:
    """Learn vocabularies, or what else fields need, from training pairs."""
    return Parts(recipe, **_learn_fields(recipe.data, examples), weights={})


def learn_joint_parts(
    recipe: Recipe, config: TokenizerConfig, examples: Sequence[Example]
) -> Parts:
    """Learn one vocabulary for both sides from the sources alone."""
    joint = train_tokenizer(config, [example.source for example in examples])
    return Parts(recipe, **both_sides(joint), weights={})


def take_parts(recipe: Recipe, init_from: Task[Any], examples: Sequence[Example]) -> Parts:
    """Take over what a run has: all of an encoder–decoder, or the eyes of a classifier."""
    config = recipe.data.source
    if not isinstance(init_from.model, EncoderDecoder):
        if isinstance(config, ImageConfig):
            return _take_eyes(recipe, init_from, examples)
        raise ConfigError(
            "`init_from` must be a run of an encoder–decoder, but is one for the task "
            f"'{init_from.recipe.task}'."
        )
    source: SourceField = init_from.source  # type: ignore[attr-defined]
    if isinstance(config, ImageConfig):
        find_image_encoder(init_from)
        source = see_as(init_from, config)
    # The vocabularies come along, and whether there are two of them.
    data = replace(recipe.data, is_joint=init_from.recipe.data.is_joint)
    recipe = replace(recipe, model=init_from.recipe.model, data=data)
    target: TextField = init_from.target  # type: ignore[attr-defined]
    return Parts(recipe, source, target, init_from.model.state_dict())


def _take_eyes(recipe: Recipe, init_from: Task[Any], examples: Sequence[Example]) -> Parts:
    """Take over only what sees: the encoder of a classifier of images."""
    assert isinstance(recipe.data.source, ImageConfig)
    settings, encoder = find_image_encoder(init_from)
    source = see_as(init_from, recipe.data.source)
    recipe = replace(recipe, model=replace(recipe.model, encoder=settings))
    weights = {f"encoder.{name}": value for name, value in encoder.state_dict().items()}
    return Parts(recipe, source, _learn_target(recipe.data, examples), weights)


def _learn_fields(config: DataConfig, examples: Sequence[Example]) -> dict[str, Any]:
    """Return the fields of both sides by their names."""
    sources = [example.source for example in examples]
    if config.is_joint:
        assert isinstance(config.source, TokenizerConfig)
        texts = [text for source in sources for text in texts_of(source)]
        targets = [example.target for example in examples]
        return {**both_sides(train_tokenizer(config.source, [*texts, *targets]))}
    source = fit_source(config.source, sources)
    return {"source": source, "target": _learn_target(config, examples)}


def _learn_target(config: DataConfig, examples: Sequence[Example]) -> TextField:
    tokenizer = train_tokenizer(config.target, [example.target for example in examples])
    return TextField(tokenizer, has_start=True)
