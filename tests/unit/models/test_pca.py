import pytest
import torch

from regard.core.errors import ConfigError
from regard.models.pca import Pca


@pytest.fixture(params=[(60, 7), (5, 30)], ids=["many", "wide"])
def vectors(request):
    generator = torch.Generator().manual_seed(0)
    num, width = request.param
    return torch.randn(num, width, generator=generator) @ torch.randn(
        width, width, generator=generator
    )


def test_reconstruction_is_the_best_of_its_rank(vectors):
    pca = Pca.fit(vectors, 3)
    centred = vectors - vectors.mean(0)
    left, values, right = torch.linalg.svd(centred, full_matrices=False)
    nearest = left[:, :3] * values[:3] @ right[:3] + vectors.mean(0)
    assert torch.allclose(pca.decode(pca.encode(vectors)), nearest, atol=1e-4)


def test_variances_are_those_of_the_latents(vectors):
    pca = Pca.fit(vectors, 3)
    codes = pca.encode(vectors)
    assert torch.allclose(codes.var(0), pca.variances, rtol=1e-4)
    assert torch.allclose(codes.mean(0), torch.zeros(3), atol=1e-4)
    # Along the directions nothing varies together.
    assert torch.allclose(codes.T.cov(), codes.T.cov().diag().diag(), atol=1e-2)


def test_all_components_reconstruct_exactly():
    vectors = torch.randn(20, 6, generator=torch.Generator().manual_seed(1))
    pca = Pca.fit(vectors, 6)
    assert torch.allclose(pca.decode(pca.encode(vectors)), vectors, atol=1e-5)


@pytest.mark.parametrize("num_different", [40, 20])
def test_directions_are_orthogonal_even_without_variance(num_different):
    vectors = 255 * torch.rand(num_different, 300, generator=torch.Generator().manual_seed(2))
    vectors = vectors.repeat(40 // num_different, 1)
    pca = Pca.fit(vectors, 40)
    assert torch.allclose(pca.directions @ pca.directions.T, torch.eye(40), atol=1e-5)
    assert torch.allclose(pca.decode(pca.encode(vectors)), vectors, atol=0.01)


def test_signs_are_deterministic(vectors):
    first, second = Pca.fit(vectors, 2), Pca.fit(vectors.flip(0), 2)
    assert torch.allclose(first.directions, second.directions, atol=1e-4)


def test_too_many_components_is_an_error():
    with pytest.raises(ConfigError, match="`num_components` must be from 1 to 4"):
        Pca.fit(torch.zeros(9, 4), 5)
