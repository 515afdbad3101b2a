import logging

import pytest
import torch

from regard.data.example import Example
from regard.runs.recipes import load_recipe
from regard.tasks.generation.task import Predictor

TRAIN = [Example("the cat sees a dog .", "die katze sieht einen hund .")] * 4


@pytest.fixture
def warnings(caplog):
    def run(valid, *overrides):
        caplog.clear()
        recipe = load_recipe("cho2014-laptop", overrides)
        task = Predictor.prepare(recipe, TRAIN, device=torch.device("cpu"))
        task.validation(valid)
        return [one.getMessage() for one in caplog.records if one.levelno == logging.WARNING]

    return run


def test_unknown_target_tokens_name_the_setting(warnings):
    (message,) = warnings([Example("the cat sees a dog .", "die katze sieht einen wal .")])
    assert message.startswith("16.7 % of the target tokens")
    assert "`data.target.kind=bpe`" in message


def test_unknown_source_tokens_name_the_setting(warnings):
    (message,) = warnings([Example("the cat sees a whale .", "die katze sieht einen hund .")])
    assert "`data.source.kind=bpe`" in message


def test_characters_name_bytes(warnings):
    valid = [Example("the cat sees a dog .", "die katze sieht einen Q .")]
    (message,) = warnings(valid, "data.target.kind=char")
    assert "`data.target.kind=byte`" in message


def test_known_tokens_give_no_warning(warnings):
    assert warnings(TRAIN) == []


def test_a_joint_vocabulary_has_the_settings_of_the_source(warnings):
    valid = [Example("the cat sees a dog .", "die katze sieht einen wal .")]
    (message,) = warnings(valid, "data.is_joint=true")
    assert "`data.source.kind=bpe`" in message
