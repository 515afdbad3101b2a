import pytest

from regard.core.errors import DataError
from regard.data.image.files import IMAGE_FILES
from regard.data.video.files import VIDEO_FILES


def test_nothing_is_logged_if_all_can_be_read(caplog):
    IMAGE_FILES.report_skipped([], num_kept=0, num_given=0)
    assert not caplog.records


def test_skipped_examples_are_counted_and_the_first_reason_is_logged(caplog):
    reasons = {"a.png": "a.png is empty.", "b.png": "b.png is text."}.values()
    IMAGE_FILES.report_skipped(reasons, num_kept=1_000, num_given=2_500)
    (record,) = caplog.records
    assert record.getMessage() == (
        "skipped 1,500 of 2,500 examples whose image cannot be read (first: a.png is empty.)"
    )


def test_no_readable_example_is_an_error():
    with pytest.raises(DataError, match=r"^No video can be read. First: a.mp4 is cut off.$"):
        VIDEO_FILES.report_skipped(["a.mp4 is cut off.", "b.mp4 is text."], num_kept=0, num_given=2)
