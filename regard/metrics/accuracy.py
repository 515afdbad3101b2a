"""Exact match: is the whole answer right?"""

from collections.abc import Sequence

from regard.metrics.result import Result, check_references


def accuracy(hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> Result:
    """Measure how many hypotheses equal one of their references, in percent.

    Blanks at the ends and repeated blanks do not count. For pronunciations, 100 minus this is what
    papers call the word error rate.

    Args:
        hypotheses: One answer each.
        references: For each hypothesis its right answers.
    """
    check_references(hypotheses, references)
    num_right = sum(
        hypothesis.split() in (answer.split() for answer in answers)
        for hypothesis, answers in zip(hypotheses, references, strict=True)
    )
    return Result(
        name="accuracy",
        value=100 * num_right / len(hypotheses),
        signature="match:exact|refs:any|case:mixed|blanks:squeezed",
        detail={"right": num_right, "count": len(hypotheses)},
    )
