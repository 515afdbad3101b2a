from regard.metrics.accuracy import accuracy


def test_accuracy_is_the_percentage_of_exact_matches():
    assert accuracy(["a b", "c", "d", "e"], [["a b"], ["c"], ["x"], ["e f"]]).value == 50.0


def test_any_reference_will_do():
    assert accuracy(["b"], [["a", "b"]]).value == 100.0


def test_spare_blanks_do_not_count():
    assert accuracy([" a  b "], [["a b"]]).value == 100.0


def test_case_counts():
    assert accuracy(["A"], [["a"]]).value == 0.0
