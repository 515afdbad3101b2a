import pytest
import torch

from regard.data.datasets.synthetic.toys import reverse
from regard.studies.reproduce.transformers import norms
from regard.studies.reproduce.transformers.norms import BATCH_COLUMN, FEATURES, LAYER_ROW, normalise


def test_norms_have_the_numbers_of_the_lecture():
    assert torch.allclose(normalise("layer")[0], LAYER_ROW, atol=1e-3)
    assert torch.allclose(normalise("batch")[:, 0], BATCH_COLUMN, atol=1e-3)


def test_layer_norm_is_the_z_score_over_features():
    mean, std = FEATURES.mean(1, keepdim=True), FEATURES.std(1, keepdim=True, correction=0)
    assert torch.allclose(normalise("layer"), (FEATURES - mean) / std, atol=1e-5)


def test_rms_norm_divides_by_the_root_mean_square():
    root = FEATURES.square().mean(1, keepdim=True).sqrt()
    assert torch.allclose(normalise("rms"), FEATURES / root, atol=1e-5)


@pytest.mark.parametrize("name", [norms.POST_AT_ONCE, norms.BATCH])
def test_variant_sets_norm_position_and_warm_up(name, monkeypatch):
    monkeypatch.setattr(norms, "SETTINGS", ("train.max_steps=1", "train.log_every=1"))
    variant = norms.VARIANTS[name]
    recipe = norms.train_variant(variant, reverse(20, limits=(3, 4)), seed=1).task.recipe
    for side in (recipe.model.encoder, recipe.model.decoder):
        assert (side.norm, side.is_norm_first) == (variant.norm, variant.is_norm_first)
        assert side.num_layers == norms.NUM_LAYERS
    assert recipe.train.schedule.warmup_steps == variant.warmup_steps
