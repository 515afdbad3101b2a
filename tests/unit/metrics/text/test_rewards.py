import pytest
import sacrebleu

from regard.metrics.text.rewards import REWARDS, BleuReward, CiderReward
from regard.metrics.vision.captions import cider

ANSWERS = ["a dog runs through the snow", "two men play", "a red boat"]
REFERENCES = [
    ["a brown dog runs in the snow .", "A dog is running through deep snow ."],
    ["Two men play football .", "some people play a game"],
    ["a small red boat on a lake"],
]


def test_mean_cider_reward_equals_cider():
    reward = CiderReward(REFERENCES)
    found = [reward(*pair) for pair in zip(ANSWERS, REFERENCES, strict=True)]
    assert 10 * sum(found) / len(found) == pytest.approx(cider(ANSWERS, REFERENCES).value)


def test_bleu_reward_equals_sacrebleu():
    reward = BleuReward(REFERENCES)
    for answer, references in zip(ANSWERS, REFERENCES, strict=True):
        expected = sacrebleu.sentence_bleu(answer, references).score
        assert 100 * reward(answer, references) == pytest.approx(expected)


@pytest.mark.parametrize("name", REWARDS)
def test_rewards_are_highest_for_references_and_zero_for_no_match(name):
    reward = REWARDS[name](REFERENCES)
    right, references = "a small red boat on a lake", REFERENCES[2]
    assert reward(right, references) == pytest.approx(1.0)
    assert 0 < reward("a red boat", references) < 1
    assert reward("nobody came", references) == pytest.approx(0.0, abs=1e-6)
    assert reward("", references) == 0
