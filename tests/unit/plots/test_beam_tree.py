import pytest

from regard.core.errors import DataError
from regard.plots.beam_tree import MAX_COLUMNS, beam_tree, tree_text
from regard.plots.figure import style, to_svg
from regard.plots.tree import STYLES, Branch

LEAVES = (
    Branch("dog", 0.1, 0.04, "pruned"),
    Branch("cat", 0.9, 0.36, "result", (), "#1"),
)
TREE = (
    Branch("the", 0.6, 0.6, "kept", (Branch("cow", 0.5, 0.3, "kept", (), "#2"),)),
    Branch("a", 0.4, 0.4, "result", LEAVES),
)


def chain(length):
    branch = Branch("</s>", 0.5, 0.1, "result", (), "#1")
    for number in range(length - 1, 0, -1):
        branch = Branch(f"w{number}", 0.5, 0.1, "result", (branch,))
    return (branch,)


def names(axes):
    return {text.get_text(): text.get_position() for text in axes.texts}


def test_the_best_hypothesis_is_the_first_row():
    (axes,) = beam_tree(TREE).axes
    rows = {name: round(y + 0.1) for name, (_, y) in names(axes).items()}
    assert rows["<sos>"] == rows["a"] == rows["cat"] == 0
    assert rows["the"] == rows["dog"] == 1 and rows["cow"] == 2


def test_steps_are_columns():
    (axes,) = beam_tree(TREE).axes
    columns = {name: x for name, (x, _) in names(axes).items()}
    assert [columns[name] for name in ("<sos>", "a", "the", "cat", "cow")] == [0, 1, 1, 2, 2]


def test_lines_have_the_width_of_their_probability_and_the_colour_of_their_status():
    (axes,) = beam_tree(TREE).axes
    widths = [line.get_linewidth() for line in axes.lines]
    expected = [0.4, 0.6, 0.9, 0.1, 0.5]
    assert sorted(range(5), key=widths.__getitem__) == sorted(range(5), key=expected.__getitem__)
    colors = [line.get_color() for line in axes.lines]
    statuses = ["result", "kept", "result", "pruned", "kept"]
    assert colors == [STYLES[status][0] for status in statuses]


def test_lines_do_not_touch_long_tokens():
    with style():
        figure = beam_tree([Branch("Regenschirme", 0.6, 0.6, "result", LEAVES)])
        figure.draw_without_rendering()
    (axes,) = figure.axes
    (token,) = (text for text in axes.texts if text.get_text() == "Regenschirme")
    box = token.get_window_extent().transformed(axes.transData.inverted())
    ends = {round(float(x), 6) for line in axes.lines for x in line.get_xdata()[[0, -1]]}
    assert not [x for x in ends if box.x0 < x < box.x1]


def test_lines_do_not_cross():
    (axes,) = beam_tree(TREE).axes
    for column in (1, 2):
        ends = [
            (line.get_ydata()[0], line.get_ydata()[-1])
            for line in axes.lines
            if column - 1 < line.get_xdata()[0] < column
        ]
        assert ends == sorted(ends) and len({end for _, end in ends}) == len(ends)


def test_ranks_and_probabilities_are_shown():
    (axes,) = beam_tree(TREE).axes
    assert {"0.90 #1", "0.50 #2", "0.10"} <= set(names(axes))


def test_long_sentences_continue_below_with_their_last_column():
    figure = beam_tree(chain(2 * MAX_COLUMNS + 3))
    assert len(figure.axes) == 3
    first, second, third = map(names, figure.axes)
    last = f"w{MAX_COLUMNS}"
    assert last in first and last in second and last not in third
    assert second[last][0] == MAX_COLUMNS and "</s>" in third


def test_plot_is_rendered_without_raw_markup():
    svg = to_svg(beam_tree((Branch("<b>", 0.5, 0.5, "result"),), title="<i>"))
    assert "<svg" in svg and "<b>" not in svg and "<i>" not in svg


def test_terminal_shows_the_best_first_and_chains_in_one_line():
    text = tree_text(TREE)
    assert text.plain.splitlines() == [
        "<sos>",
        "├─ a 0.40",
        "│  ├─ cat 0.90 #1",
        "│  └─ dog 0.10",
        "└─ the 0.60 cow 0.50 #2",
    ]
    bold = {text.plain[span.start : span.end].strip() for span in text.spans}
    assert bold == {"a 0.40", "cat 0.90 #1"}


def test_empty_tree_is_an_error():
    with pytest.raises(DataError, match="at least one branch"):
        beam_tree(())
