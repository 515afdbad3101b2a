import torch

from regard.models.interfaces import (
    Decoder,
    State,
    by_sentence,
    map_tensors,
    masked_mean,
    reorder,
    repeat_rows,
)


def test_map_tensors_changes_every_nested_tensor():
    nested = {"a": (torch.tensor([1]), [torch.tensor([2])]), "b": torch.tensor([3]), "c": ()}
    doubled = map_tensors(nested, lambda tensor: tensor * 2)
    assert doubled == {
        "a": (torch.tensor([2]), [torch.tensor([4])]),
        "b": torch.tensor([6]),
        "c": (),
    }


def test_reorder_selects_rows_of_hypotheses_only():
    per_source, per_hypothesis = torch.tensor([1, 2]), (torch.tensor([[10], [20], [30], [40]]),)
    state = reorder(State(per_source, per_hypothesis), torch.tensor([1, 1, 2, 0]))
    assert state.per_source is per_source
    assert state.per_hypothesis[0].tolist() == [[20], [20], [30], [10]]


def test_reorder_does_not_modify_the_old_state():
    old = State({}, torch.tensor([1, 2]))
    reorder(old, torch.tensor([1, 0]))
    assert old.per_hypothesis.tolist() == [1, 2]


def test_hypotheses_of_a_sentence_are_adjacent():
    assert repeat_rows((torch.tensor([[1], [2]]),), 3)[0].tolist() == [[1], [1], [1], [2], [2], [2]]


def test_hypotheses_are_grouped_by_their_sentence():
    rows = torch.arange(12).view(6, 2)  # (B·W, T) with two sentences and three beams
    assert by_sentence(rows, 2).tolist() == [[0, 1, 2, 3, 4, 5], [6, 7, 8, 9, 10, 11]]


def test_mean_is_over_the_real_positions_only():
    states = torch.tensor([[[1.0, -5.0], [3.0, -7.0], [99.0, 99.0]]])
    mask = torch.tensor([[True, True, False]])
    assert masked_mean(states, mask).tolist() == [[2.0, -6.0]]


def test_mean_of_no_positions_is_zero():
    assert masked_mean(torch.ones(1, 2, 3), torch.zeros(1, 2, dtype=torch.bool)).tolist() == [
        [0.0, 0.0, 0.0]
    ]


def test_full_target_equals_one_step():
    class Echo(Decoder):
        def start(self, memory, *, beams=1, max_length=None):
            return State({}, torch.zeros(1))

        def step(self, tokens, state):
            return tokens[..., None].float(), state

    targets = torch.tensor([[2, 5, 6]])
    output = Echo()(targets, None)
    assert output.logits.squeeze(-1).tolist() == [[2.0, 5.0, 6.0]]
    assert output.losses == {}
