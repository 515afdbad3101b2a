import math

import pytest
import torch

from regard.attention.positions import (
    POSITIONS,
    AlibiPositions,
    BucketPositions,
    GridPositions,
    LearnedPositions,
    RotaryPositions,
    ShawPositions,
    SinusoidalPositions,
    alibi_slopes,
    sinusoids,
)
from regard.core.errors import ConfigError


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


@pytest.mark.parametrize("dim", [6, 512])
def test_sinusoids_are_the_closed_form(dim):
    table = sinusoids(torch.arange(10), dim)
    assert table.shape == (10, dim)
    for position in range(10):
        for i in range(dim // 2):
            angle = position / 10_000 ** (2 * i / dim)
            assert table[position, 2 * i].item() == pytest.approx(math.sin(angle), abs=1e-5)
            assert table[position, 2 * i + 1].item() == pytest.approx(math.cos(angle), abs=1e-5)


def test_sinusoids_of_position_zero_are_zero_and_one():
    assert sinusoids(torch.arange(1), 6).tolist() == [[0, 1, 0, 1, 0, 1]]


def test_sinusoids_of_an_odd_width_omit_the_last_cosine():
    assert torch.equal(sinusoids(torch.arange(4), 5), sinusoids(torch.arange(4), 6)[:, :5])


def test_halved_sinusoids_are_sines_and_then_cosines():
    table = POSITIONS["sinusoidal_halves"](dim=6, num_heads=2).embed(torch.arange(7, 9))
    whole = sinusoids(torch.arange(7, 9), 6)
    assert torch.equal(table, whole[:, [0, 2, 4, 1, 3, 5]])


def test_sinusoidal_positions_have_no_parameters_and_no_limit():
    positions = SinusoidalPositions(dim=6, num_heads=2, max_length=3)
    positions.check_length(10_000)
    assert not list(positions.parameters())
    assert torch.equal(positions.embed(torch.arange(7, 9)), sinusoids(torch.arange(9), 6)[7:])


@pytest.mark.parametrize("dim", [8, 7])
def test_grid_positions_are_those_of_the_row_and_of_the_column(dim):
    positions = GridPositions(dim=dim, num_heads=1, num_columns=3, num_before=1)
    table, half = positions.embed(torch.arange(13)), dim // 2
    assert table.shape == (13, dim)
    assert (table[0] == 0).all()
    for row in range(4):
        for column in range(3):
            embedded = table[1 + 3 * row + column]
            assert torch.equal(embedded[:half], sinusoids(torch.tensor([row]), half)[0])
            assert torch.equal(embedded[half:], sinusoids(torch.tensor([column]), dim - half)[0])


def test_learned_positions_are_rows_of_a_table():
    positions = LearnedPositions(dim=6, num_heads=2, max_length=5)
    found = positions.embed(torch.tensor([4, 0]))
    assert torch.equal(found, positions.embedding.weight[[4, 0]])


def test_text_longer_than_the_learned_positions_is_refused():
    positions = LearnedPositions(dim=6, num_heads=2, max_length=5)
    positions.check_length(5)
    with pytest.raises(
        ConfigError,
        match=r"^`max_length` must be at least the length of the text \(6 tokens\) with learned "
        r"positions, but is 5\. Shorten the text, or train with a larger one\.$",
    ):
        positions.check_length(6)


@pytest.mark.parametrize("name", [name for name in POSITIONS if name != "learned"])
def test_other_positions_have_no_limit(name):
    positions = POSITIONS[name](dim=6, num_heads=2, max_length=5)
    assert positions.check_length(10_000) is None


def rotate_as_complex_numbers(vectors, positions):
    """Multiply (x_i + i x_{i + E/2}) by e^{i position θ}, θ = 10000^(-2i/E)."""
    half = vectors.shape[-1] // 2
    rates = torch.tensor([10_000 ** (-2 * i / (2 * half)) for i in range(half)])
    numbers = torch.complex(vectors[..., :half], vectors[..., half:])
    rotated = numbers * torch.polar(torch.ones(()), positions[:, None] * rates)
    return torch.cat([rotated.real, rotated.imag], dim=-1)


def rotary(dim=6):
    return RotaryPositions(dim=2 * dim, num_heads=2)


def test_rotation_is_a_complex_multiplication():
    vectors, positions = torch.randn(2, 3, 5, 6), torch.arange(4, 9)
    expected = rotate_as_complex_numbers(vectors, positions)
    assert torch.allclose(rotary().rotate(vectors, positions), expected, atol=1e-5)


def test_rotation_preserves_the_norm():
    vectors = torch.randn(2, 3, 5, 6)
    rotated = rotary().rotate(vectors, torch.arange(100, 105))
    assert torch.allclose(rotated.norm(dim=-1), vectors.norm(dim=-1), atol=1e-5)


def test_rotated_dot_product_depends_on_the_distance_only():
    query, key = torch.randn(1, 1, 1, 6), torch.randn(1, 1, 1, 6)

    def product(query_position, key_position):
        rotated = rotary().rotate(query, torch.tensor([query_position]))
        return (rotated * rotary().rotate(key, torch.tensor([key_position]))).sum().item()

    assert product(7, 3) == pytest.approx(product(4, 0), abs=1e-5)
    assert product(57, 53) == pytest.approx(product(4, 0), abs=1e-5)
    assert product(3, 7) != pytest.approx(product(7, 3), abs=1e-2)


def test_position_zero_is_not_rotated():
    vectors = torch.randn(1, 1, 1, 6)
    assert torch.equal(rotary().rotate(vectors, torch.zeros(1)), vectors)


def test_last_column_of_an_odd_width_is_not_rotated():
    vectors = torch.randn(1, 1, 4, 5)
    rotated = rotary(5).rotate(vectors, torch.arange(4))
    assert torch.equal(rotated[..., 4], vectors[..., 4])
    assert torch.allclose(rotated[..., :4], rotary(4).rotate(vectors[..., :4], torch.arange(4)))


@pytest.mark.parametrize(
    ("num_heads", "slopes"),
    [
        (1, [2**-8]),
        (4, [2**-2, 2**-4, 2**-6, 2**-8]),
        (8, [1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 64, 1 / 128, 1 / 256]),
        # Four heads of their own, and every second of the eight in between.
        (6, [2**-2, 2**-4, 2**-6, 2**-8, 2**-1, 2**-3]),
    ],
)
def test_alibi_slopes_are_those_of_the_paper(num_heads, slopes):
    assert alibi_slopes(num_heads) == pytest.approx(slopes)


def test_alibi_penalty_is_slope_times_distance():
    positions = AlibiPositions(dim=8, num_heads=4)
    bias = positions.bias(torch.randn(2, 4, 2, 2), torch.arange(3, 5), torch.arange(5))
    assert bias.shape == (1, 4, 2, 5)
    for head, slope in enumerate([2**-2, 2**-4, 2**-6, 2**-8]):
        expected = [[-slope * abs(3 + i - j) for j in range(5)] for i in range(2)]
        assert torch.allclose(bias[0, head], torch.tensor(expected))


# Distance from the query back to the key, and its bucket: one each up to 7 (15 for a decoder),
# then eight (sixteen) that widen up to 128.
BOTH_SIDES = {
    0: 0, 1: 1, 7: 7, 8: 8, 11: 8, 12: 9, 15: 9, 16: 10, 22: 10, 23: 11, 31: 11, 32: 12, 45: 12,
    46: 13, 63: 13, 64: 14, 90: 14, 91: 15, 127: 15, 128: 15, 1000: 15,
}  # fmt: skip
CAUSAL_BUCKETS = {
    0: 0, 1: 1, 15: 15, 16: 16, 18: 16, 19: 17, 32: 21, 112: 30, 113: 31, 127: 31, 128: 31,
    1000: 31,
}  # fmt: skip


def buckets(distances, *, is_causal):
    positions = BucketPositions(dim=8, num_heads=2, is_causal=is_causal)
    return positions.bucket(torch.tensor(distances)).tolist()


def test_buckets_before_the_query():
    distances = [-distance for distance in BOTH_SIDES]
    assert buckets(distances, is_causal=False) == list(BOTH_SIDES.values())


def test_buckets_after_the_query_are_the_second_half():
    distances = [distance for distance in BOTH_SIDES if distance]
    expected = [16 + bucket for distance, bucket in BOTH_SIDES.items() if distance]
    assert buckets(distances, is_causal=False) == expected


def test_causal_buckets_cover_earlier_positions_only():
    distances = [-distance for distance in CAUSAL_BUCKETS]
    assert buckets(distances, is_causal=True) == list(CAUSAL_BUCKETS.values())


def test_later_positions_share_the_first_causal_bucket():
    assert buckets([1, 5, 200], is_causal=True) == [0, 0, 0]


@pytest.mark.parametrize("is_causal", [False, True], ids=["both-sides", "causal"])
def test_buckets_equal_those_of_hugging_face(is_causal):
    t5 = pytest.importorskip(
        "transformers.models.t5.modeling_t5", reason="transformers is not installed"
    )
    distances = torch.arange(-300, 301)
    theirs = t5.T5Attention._relative_position_bucket(distances, bidirectional=not is_causal)
    assert buckets(distances.tolist(), is_causal=is_causal) == theirs.tolist()


def test_t5_bias_is_one_scalar_per_head_and_bucket():
    positions = BucketPositions(dim=8, num_heads=2)
    bias = positions.bias(torch.randn(3, 2, 2, 4), torch.arange(2, 4), torch.arange(4))
    assert bias.shape == (1, 2, 2, 4)
    for head in range(2):
        for i in range(2):
            for j in range(4):
                distance = j - (2 + i)
                bucket = -distance if distance <= 0 else 16 + distance
                assert bias[0, head, i, j] == positions.embedding.weight[bucket, head]


@pytest.mark.parametrize("first", [0, 20])
def test_shaw_bias_is_the_query_times_the_vector_of_the_distance(first):
    positions = ShawPositions(dim=6, num_heads=2)
    num_keys = first + 3
    queries = torch.randn(2, 2, 3, 3)
    bias = positions.bias(queries, torch.arange(first, num_keys), torch.arange(num_keys))
    assert bias.shape == (2, 2, 3, num_keys)
    for b in range(2):
        for head in range(2):
            for i in range(3):
                for j in range(num_keys):
                    half_width = min(max(j - (first + i), -16), 16)
                    vector = positions.embedding.weight[16 + half_width]
                    expected = (queries[b, head, i] @ vector / math.sqrt(3)).item()
                    assert bias[b, head, i, j].item() == pytest.approx(expected, abs=1e-5)


# The part that each row overrides; the others say nothing.
PARTS = {
    "none": (),
    "sinusoidal": ("embed",),
    "sinusoidal_halves": ("embed",),
    "learned": ("embed",),
    "rotary": ("rotate",),
    "shaw": ("bias",),
    "t5": ("bias",),
    "alibi": ("bias",),
}


@pytest.mark.parametrize("name", POSITIONS)
def test_every_encoding_uses_one_method_only(name):
    positions = POSITIONS[name](dim=8, num_heads=2, max_length=5)
    vectors, indices = torch.randn(1, 2, 5, 4), torch.arange(5)
    spoken = {
        "embed": positions.embed(indices) is not None,
        "rotate": not torch.equal(positions.rotate(vectors, indices), vectors),
        "bias": positions.bias(vectors, indices, indices) is not None,
    }
    assert {part for part, is_spoken in spoken.items() if is_spoken} == set(PARTS[name])
