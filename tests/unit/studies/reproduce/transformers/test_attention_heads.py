import pytest
import torch

from regard.data.example import Example
from regard.studies.reproduce.transformers.attention_heads import (
    CROSS,
    ENCODER,
    MASKED,
    OFFSETS,
    compare_by_hand,
    head_distance,
    point_heads,
    profile_heads,
    record_maps,
    remove_heads,
    weights_by_offset,
)
from regard.studies.reproduce.transformers.training import (
    SMALL_TRANSFORMER,
    read_recipe,
    train_small,
)

PAIRS = [
    Example("the cat sleeps", "die Katze schläft", alignment=((0, 0), (1, 1), (2, 2))),
    Example("a dog runs", "ein Hund rennt", alignment=((0, 0), (1, 1), (2, 2))),
]


@pytest.fixture(scope="module")
def task():
    settings = ("train.max_steps=2", "train.log_every=1")
    return train_small(read_recipe(SMALL_TRANSFORMER, settings, seed=1), PAIRS).task


def test_maps_have_the_shapes_of_source_and_target(task):
    maps = record_maps(task, PAIRS[0])
    # Three words and an end token; the decoder reads a start token and three words.
    assert {kind: tuple(weights.shape) for kind, weights in maps.items()} == {
        ENCODER: (2, 4, 4, 4),
        MASKED: (2, 4, 4, 4),
        CROSS: (2, 4, 4, 4),
    }
    assert maps[MASKED].triu(1).max() == 0
    assert torch.allclose(maps[CROSS].sum(-1), torch.ones(2, 4, 4))


def test_concatenated_heads_equal_the_layer(task):
    assert compare_by_hand(task, PAIRS[0]) < 1e-5


def test_removed_heads_are_restored(task):
    before = {name: value.clone() for name, value in task.model.state_dict().items()}
    losses = remove_heads(task, PAIRS)
    assert len(losses) == 1 + 3 * 2 * 4
    assert len({*losses.values()}) > 20
    assert all(torch.equal(value, before[name]) for name, value in task.model.state_dict().items())


def test_pointing_is_a_percentage_for_each_cross_attention_head(task):
    pointing, chance = point_heads(task, PAIRS)
    assert len(pointing) == 8
    assert all(0 <= value <= 100 for value in pointing.values())
    assert 20 < chance < 40


def test_distance_of_opposite_heads_is_one():
    profiles = torch.tensor([[[1.0, 0.0], [0.0, 1.0]]])
    assert head_distance(profiles) == 1
    assert head_distance(profiles[:, [0, 0]]) == 0


def test_weights_are_summed_by_relative_position():
    following = torch.eye(6).roll(1, dims=1)  # the last query attends to the first key
    profile = weights_by_offset(following[None, None])[0, 0]
    assert dict(zip(OFFSETS, profile.tolist(), strict=True)) == {
        -3: 1, -2: 0, -1: 0, 0: 0, 1: 5, 2: 0, 3: 0
    }  # fmt: skip


def test_profiles_are_distributions_over_all_sentences(task):
    profiles = profile_heads(task, PAIRS)
    assert {kind: tuple(one.shape) for kind, one in profiles.items()} == dict.fromkeys(
        (ENCODER, MASKED, CROSS), (2, 4, len(OFFSETS))
    )
    assert all(torch.allclose(one.sum(-1), torch.ones(2, 4)) for one in profiles.values())
    single = [weights_by_offset(record_maps(task, pair)[CROSS]) / 4 for pair in PAIRS]
    assert torch.allclose(profiles[CROSS], sum(single) / 2)
