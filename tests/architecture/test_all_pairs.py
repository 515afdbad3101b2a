import itertools
import subprocess
import sys
from pathlib import Path

import pytest

from regard.models.decoders import DECODERS
from regard.models.encoders import ENCODERS
from tests.all_pairs import Choice, Matrix, find_pairs, select_rows, variants
from tests.fixtures.variants import (
    ATTENTION,
    DECODER_VARIANTS,
    ENCODER_VARIANTS,
    MODELS,
    TRANSFORMERS,
)

ROOT = Path(__file__).parents[2]
SIX_BY_FOUR = {name: range(4) for name in "abcdef"}


def pairs_of(rows):
    return set().union(*map(find_pairs, rows))


def test_selected_rows_contain_every_pair_of_choices():
    matrix = Matrix("all", **SIX_BY_FOUR)
    expected = {
        ((first, str(one)), (second, str(two)))
        for first, second in itertools.combinations("abcdef", 2)
        for one, two in itertools.product(range(4), repeat=2)
    }
    assert {pair for pair in pairs_of(matrix.selected) if len(pair) == 2} == expected


def test_few_rows_are_selected():
    matrix = Matrix("all", **SIX_BY_FOUR)
    assert len(matrix.rows) == 4**6
    assert len(matrix.selected) < 30  # at least 4 x 4 are needed


def test_selection_is_deterministic():
    first, second = Matrix("all", **SIX_BY_FOUR), Matrix("all", **SIX_BY_FOUR)
    assert first.selected == second.selected


def test_single_dimension_is_run_in_full():
    assert Matrix("one", a=(1, 2, 3)).selected == [{"a": "1"}, {"a": "2"}, {"a": "3"}]


def test_only_valid_rows_are_selected_and_all_valid_pairs_are_covered():
    matrix = Matrix("valid", a=range(5), b=range(5), c=range(3), is_valid=lambda a, b, c: a != b)
    assert all(row["a"] != row["b"] for row in matrix.selected)
    assert pairs_of(matrix.selected) == pairs_of(matrix.rows)
    assert len(matrix.selected) < len(matrix.rows)


def test_row_with_the_most_new_pairs_comes_first():
    rows = [{"a": "1"}, {"a": "1", "b": "1"}, {"a": "2"}]
    assert select_rows(rows) == [1, 2]


def test_settings_of_a_choice_are_dimensions_of_their_own():
    shapes = {
        f"{kind}-{size}": Choice((kind, size), {"kind": kind, "size": size})
        for kind in ("cube", "cone")
        for size in ("small", "large")
    }
    matrix = Matrix("choices", shape=shapes, color=("red", "blue"))
    assert matrix.describe({"shape": "cube-small", "color": "red"}) == {
        "shape.kind": "cube",
        "shape.size": "small",
        "color": "red",
    }
    assert len(matrix.rows) == 8
    assert len(matrix.selected) == 4
    assert pairs_of(map(matrix.describe, matrix.selected)) == pairs_of(
        map(matrix.describe, matrix.rows)
    )


def test_cases_have_readable_names_and_the_values_of_their_row():
    matrix = Matrix("cases", cell=("gru", "lstm"), is_reversed={"": False, "reversed": True})
    assert matrix.cases(("cell", "is_reversed"), is_full=True) == {
        "gru": ("gru", False),
        "gru-reversed": ("gru", True),
        "lstm": ("lstm", False),
        "lstm-reversed": ("lstm", True),
    }


def test_case_of_a_dimension_that_a_test_does_not_take_is_run_once():
    matrix = Matrix("cases", cell=("gru", "lstm"), num_layers=(1, 2))
    assert matrix.cases(("cell",), is_full=True) == {"gru": ("gru",), "lstm": ("lstm",)}


def test_built_case_is_the_only_argument():
    matrix = Matrix("built", build=dict, cell=("gru",), num_layers=(1, 2))
    assert list(matrix.cases(("config",), is_full=False).values()) == [
        ({"cell": "gru", "num_layers": 1},),
        ({"cell": "gru", "num_layers": 2},),
    ]


def test_settings_without_choices_have_one_variant():
    assert list(variants(dict, kind="embedding", sizes={"dim": 3})) == ["embedding"]


def test_variants_are_named_by_kind_and_settings():
    found = variants(dict, kind="rnn", cell=("gru",), is_reversed=(False, True), sizes={"dim": 3})
    assert {label: choice.value for label, choice in found.items()} == {
        "rnn-gru": {"cell": "gru", "is_reversed": False, "dim": 3},
        "rnn-gru-reversed": {"cell": "gru", "is_reversed": True, "dim": 3},
    }


def test_every_encoder_and_decoder_has_variants():
    assert {type(choice.value) for choice in ENCODER_VARIANTS.values()} == set(ENCODERS)
    assert {type(choice.value) for choice in DECODER_VARIANTS.values()} == set(DECODERS)


def test_every_encoder_is_tested_with_every_decoder():
    labels = list(map(MODELS.describe, MODELS.selected))
    kinds = {(row["encoder.kind"], row["decoder.kind"]) for row in labels}
    assert len(kinds) == len(ENCODERS) * len(DECODERS)


def test_every_attention_decoder_is_tested():
    kinds = {ATTENTION.describe(row)["decoder.kind"] for row in ATTENTION.selected}
    assert kinds == {"bahdanau", "luong"}


@pytest.mark.parametrize("matrix", [MODELS, TRANSFORMERS, ATTENTION], ids=lambda each: each.name)
def test_all_pairs_of_a_matrix_of_models_are_tested(matrix):
    selected, full = map(matrix.describe, matrix.selected), map(matrix.describe, matrix.rows)
    assert pairs_of(selected) == pairs_of(full)
    assert len(matrix.selected) < len(matrix.rows) / 10


def test_the_page_lists_the_matrices_as_they_are():
    command = [sys.executable, str(ROOT / "tests" / "architecture" / "matrix_report.py")]
    report = subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    page = (ROOT / "docs" / "testing.md").read_text(encoding="utf-8")
    assert report in page, "Run `python tests/architecture/matrix_report.py --write`."
