"""Untrained runs of every family of models, for explanations of their outputs."""

from dataclasses import replace
from functools import cache

import pytest
import torch

from regard.data.example import Example
from regard.models.build import ModelConfig
from regard.runs.recipes import load_recipe
from regard.tasks.classification.task import ClassificationTask
from regard.tasks.generation.task import Predictor
from tests.fixtures.parts import TINY_DECODERS, TINY_POINTERS, TINY_TOKEN_ENCODERS

EXAMPLES = [Example("a b c d e f", "v w x y z"), Example("b d", "x v w")]

FAMILIES = {
    "rnn": ("lstm-both", "bahdanau-lstm"),
    "reversed": ("gru-one", "sutskever-gru"),
    "input feeding": ("gru-both", "luong-gru"),
    "fixed context": ("vanilla-both", "cho-vanilla"),
    "convolution": ("convolution", "convolution"),
    "transformer": ("transformer", "transformer"),
    "bert": ("bert", "transformer"),
    "decoder-only": ("embedding", "prefix"),
    "recurrent decoder-only": ("embedding", "recurrent_prefix-gru"),
    "pointer": "transformer-transformer-coverage",
}
"""Encoder and decoder of a family, or the name of a model that copies."""


@pytest.fixture(scope="session")
def untrained_run():
    """Function that builds a tiny run of a family of encoder–decoders."""

    @cache
    def build(family):
        parts = FAMILIES[family]
        recipe = load_recipe("bahdanau2015-laptop")
        if isinstance(parts, str):
            recipe = replace(recipe, data=replace(recipe.data, is_joint=True))
            model = TINY_POINTERS[parts]
        else:
            encoder, decoder = parts
            model = ModelConfig(
                encoder=TINY_TOKEN_ENCODERS[encoder], decoder=TINY_DECODERS[decoder]
            )
            if family == "reversed":
                model = replace(model, encoder=replace(model.encoder, is_reversed=True))
        recipe = replace(recipe, model=model)
        with torch.random.fork_rng(devices=[]):
            task = Predictor.prepare(recipe, EXAMPLES, device=torch.device("cpu"))
        # Initial weights give nearly equal logits; larger weights make mistakes visible.
        with torch.no_grad():
            for parameter in task.model.parameters():
                parameter.mul_(1.5)
        return task

    return build


@pytest.fixture(scope="session")
def text_classifier():
    """An untrained classifier of texts."""
    recipe = load_recipe("sst2-lstm")
    examples = [Example("the big dog sees a cat", "yes"), Example("a small tree", "no")]
    with torch.random.fork_rng(devices=[]):
        task = ClassificationTask.prepare(recipe, examples, device=torch.device("cpu"))
    with torch.no_grad():
        for parameter in task.model.parameters():
            parameter.mul_(1.5)
    return task
