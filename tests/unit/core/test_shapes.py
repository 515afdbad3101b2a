import pytest
import torch

from regard.core.shapes import LETTERS, check


def test_tensor_with_the_right_axes_passes():
    check("keys", torch.zeros(2, 3, 4), "B K D")


def test_wrong_number_of_axes_is_explained():
    with pytest.raises(ValueError) as error:
        check("keys", torch.zeros(2, 3), "B K D")
    assert str(error.value) == (
        "`keys` must have the axes (B, K, D: batch, keys, model width), but has the shape (2, 3)."
    )


def test_every_letter_is_one_character_with_a_meaning():
    assert all(len(letter) == 1 and letter.isupper() for letter in LETTERS)
    assert len(set(LETTERS.values())) == len(LETTERS)
