import pytest

from regard.core.errors import DataError
from regard.data.audio.files import AUDIO_FILES
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


class TestFormats:
    @pytest.fixture(autouse=True)
    def without_soundfile(self, monkeypatch):
        monkeypatch.setattr("regard.data.formats.find_spec", lambda name: None)

    def test_many_files_that_need_a_package_are_an_error(self):
        names = [*(f"{n}.wav" for n in range(12)), *(f"{n}.mp3#t=0,1" for n in range(24))]
        with pytest.raises(DataError, match=r"^24 of 36 recordings .*`--on-error skip`") as caught:
            AUDIO_FILES.check_formats(names)
        assert "First: 0.mp3 " in str(caught.value)
        assert "pip install 'regard[audio]'" in str(caught.value)

    def test_few_or_all_such_files_are_left_to_decoding(self):
        AUDIO_FILES.check_formats([*(f"{n}.wav" for n in range(8)), "a.mp3", "a.mp3", "b.flac"])
        AUDIO_FILES.check_formats(["a.mp3", "b.flac"])
        AUDIO_FILES.check_formats([])

    def test_the_content_of_a_file_counts(self, tmp_path):
        paths = [tmp_path / name for name in ("a.mp3", "b.mp3", "c.wav")]
        for path in paths:
            path.write_bytes(b"RIFF\x24\0\0\0WAVEfmt ")
        AUDIO_FILES.check_formats(list(map(str, paths)))
