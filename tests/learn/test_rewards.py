"""A model learns from rewards of its own samples, without seeing references."""

import pytest

from regard.runs.train import train

pytestmark = pytest.mark.learn


@pytest.mark.quick
def test_rewards_alone_improve_predictions(reverse_files, tmp_path, value):
    first = train(reverse_files.request(tmp_path / "first", "train.max_epochs=3"))
    overrides = (f"init_from={first.folder}", "reward.metric=bleu", "validation.metric=bleu")
    rewarded = train(
        reverse_files.request(
            tmp_path / "rewarded", *overrides, "train.optimizer.learning_rate=0.01"
        )
    )
    # 18.4 and 43.3 with seed 1, 15.6 and 38.2 with seed 2. The BLEU of so few short targets is 0 if
    # no four tokens in a row are correct.
    assert value(rewarded, "chrf") >= value(first, "chrf") + 10
