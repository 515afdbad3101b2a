import numpy as np
import pytest
import torch

from regard.interpret.attention_tiles import look_through
from regard.plots.inputs import fit
from regard.plots.overlay import overlay
from regard.tasks.prediction import AttentionMap

IMAGE = np.random.default_rng(0).integers(0, 256, (30, 40, 3), dtype=np.uint8)


@pytest.fixture
def found():
    torch.manual_seed(0)
    source = tuple(f"cell {number}" for number in range(12))
    weights = torch.rand(2, 4, 2, 12)
    return {"source": source, "target": ("▁dog", "<eos>"), "weights": weights}


def test_each_piece_is_shown_by_the_mean_of_layers_and_heads(found):
    image, *pieces = look_through(AttentionMap(**found, grid=(3, 4), image=IMAGE))
    assert (image.image == fit(IMAGE)).all()
    assert [tile.caption for tile in pieces] == ["dog", "<eos>"]
    for number, tile in enumerate(pieces):
        mean = sum(found["weights"][n, h, number] for n in range(2) for h in range(4)) / 8
        grid = [[float(mean[4 * row + column]) for column in range(4)] for row in range(3)]
        assert abs(tile.image.astype(int) - overlay(IMAGE, grid)).max() <= 1


def test_without_attention_the_image_stands_alone(found):
    found["weights"] = torch.zeros(0, 1, 2, 12)
    (tile,) = look_through(AttentionMap(**found, grid=(3, 4), image=IMAGE))
    assert (tile.image == fit(IMAGE)).all()


def test_without_grid_the_image_stands_alone(found):
    assert len(look_through(AttentionMap(**found, image=IMAGE))) == 1


def test_texts_have_no_tiles(found):
    assert look_through(AttentionMap(**found)) == []
