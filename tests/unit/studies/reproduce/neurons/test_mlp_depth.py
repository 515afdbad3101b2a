import torch

from regard.studies.reproduce.neurons.fitting import accuracy, count_parameters, fit
from regard.studies.reproduce.neurons.mlp_depth import MODELS, NUM_POINTS, build, sample_spirals


def test_spirals_are_opposite_to_each_other_and_equally_frequent():
    points, labels = sample_spirals(1)
    assert points.shape == (NUM_POINTS, 2)
    assert labels.sum() == NUM_POINTS / 2
    assert points.norm(dim=1).max() < 1.2


def test_same_seed_gives_the_same_points_and_weights():
    assert torch.equal(sample_spirals(3)[0], sample_spirals(3)[0])
    first, second = (build((4,), "tanh", seed=3) for _ in range(2))
    assert all(map(torch.equal, first.parameters(), second.parameters()))


def test_one_wide_layer_has_about_as_many_parameters_as_two_others():
    counts = {
        name: count_parameters(build(dims, activation, seed=0))
        for name, (dims, activation) in MODELS.items()
    }
    assert counts["1 layer"] == 2 * 2 + 2
    assert abs(counts["3 layers"] - counts["2 layers, wide"]) < 10


def test_fitting_learns_a_linear_problem_without_changing_the_global_random_state():
    before = torch.get_rng_state()
    points = torch.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    labels = torch.tensor([0, 0, 1, 1])
    model = build((), "tanh", seed=0)
    losses = fit(model, lambda _: (points, labels), num_steps=100, rate=0.1, seed=0)
    assert losses[-1] < losses[0] and accuracy(model, points, labels) == 100
    assert torch.equal(torch.get_rng_state(), before)
