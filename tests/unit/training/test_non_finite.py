import math
from dataclasses import replace

import pytest

from regard.core.errors import RegardError
from regard.training.losses import Loss
from tests.training_bench import SHORT, Bench


def broken_from(number, factor):
    def loss(bench, batch):
        good = Bench.loss(bench, batch)
        return replace(good, total=good.total * factor) if bench.num_losses >= number else good

    return loss


@pytest.mark.parametrize(("factor", "name"), [(math.nan, "NaN"), (math.inf, "infinite")])
def test_non_finite_loss_is_reported_with_advice(tmp_path, factor, name):
    bench = Bench(tmp_path, SHORT)
    bench.trainer._gradients._loss = lambda batch: broken_from(5, factor)(bench, batch)
    message = (
        rf"The loss became {name} between steps 4 and 5. Lower `train.optimizer.learning_rate` "
        r"\(now 0.02\), .* or set `train.clip_norm` \(now 1\).* unchanged."
    )
    with pytest.raises(RegardError, match=message):
        bench.run()


def test_non_finite_gradient_is_reported_before_the_loss(tmp_path):
    bench = Bench(tmp_path, replace(SHORT, log_every=1))

    def loss(batch):
        good = Bench.loss(bench, batch)
        hooked = good.total.clone()
        hooked.register_hook(lambda gradient: gradient * math.nan)
        return Loss(hooked, good.nll, good.count)

    bench.trainer._gradients._loss = loss
    with pytest.raises(RegardError, match="The gradient norm became NaN between steps 1 and 1"):
        bench.run()


def test_non_finite_loss_keeps_the_last_good_state(tmp_path):
    bench = Bench(tmp_path, replace(SHORT, log_every=100))
    bench.trainer._gradients._loss = lambda batch: broken_from(8, math.nan)(bench, batch)
    with pytest.raises(RegardError, match="NaN"):
        bench.run()
    assert all(tensor.isfinite().all() for tensor in bench.present_weights().values())
    assert [row["step"] for row in bench.rows("valid")] == [5]
