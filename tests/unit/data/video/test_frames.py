import numpy as np
import pytest
from PIL import Image

from regard.core.errors import DataError
from regard.data.datasets.synthetic.moving import render_motion, sample_motion
from regard.data.image.resize import Frame
from regard.data.video import frames
from regard.data.video.files import VIDEO_FILES
from regard.data.video.frames import choose_frames, list_frames, read_video

FRAME = Frame(16)


def shade(level):
    return Image.new("RGB", (20, 20), (level, level, level))


@pytest.fixture
def folder(tmp_path):
    """Twelve frames, each ten brighter than the one before; their names do not sort by number."""
    for number in range(12):
        shade(10 * number).save(tmp_path / f"clip2_{number}.png")
    (tmp_path / "notes.txt").write_text("nothing to see", encoding="utf-8")
    return tmp_path


def levels(video):
    return video[:, 0, 8, 8].tolist()


def test_frames_are_sorted_by_number(folder):
    assert [path.name for path in list_frames(folder)] == [f"clip2_{n}.png" for n in range(12)]
    video = read_video(str(folder), 12, FRAME)
    assert video.shape == (12, 3, 16, 16)
    assert levels(video) == [10 * number for number in range(12)]


def test_frames_are_evenly_spaced(folder):
    assert levels(read_video(str(folder), 3, FRAME)) == [0, 60, 110]
    assert choose_frames(5, 5) == [0, 1, 2, 3, 4]
    assert choose_frames(9, 3) == [0, 4, 8]


def test_frames_of_a_short_video_are_repeated(tmp_path):
    for number in (1, 2):
        shade(100 * number).save(tmp_path / f"{number}.png")
    assert levels(read_video(str(tmp_path), 4, FRAME)) == [100, 100, 200, 200]


@pytest.mark.parametrize("suffix", ["gif", "webp", "png"])
def test_an_animation_equals_its_frames(tmp_path, suffix):
    images = [shade(level) for level in (0, 90, 250)]
    path = tmp_path / f"clip.{suffix}"
    settings = {"lossless": True} if suffix == "webp" else {}
    images[0].save(path, save_all=True, append_images=images[1:], duration=40, **settings)
    assert levels(read_video(str(path), 3, FRAME)) == pytest.approx([0, 90, 250], abs=2)


def test_a_numbered_video_is_rendered():
    assert VIDEO_FILES.split_numbered("moving/0/3") == ("moving", "0/3")
    assert VIDEO_FILES.split_numbered("./moving/0/3") is None
    drawn = render_motion(sample_motion(0, 3), num_frames=4, size=16)
    assert np.array_equal(read_video("moving/0/3", 4, FRAME), drawn.transpose(0, 3, 1, 2))
    assert read_video("moving/0/3", 4, Frame(16, channels=1)).shape == (4, 1, 16, 16)


def test_a_missing_frame_is_named(folder):
    (folder / "clip2_7.png").unlink()
    with pytest.raises(DataError, match=r"has no frame 7: clip2_8\.png follows clip2_6\.png"):
        read_video(str(folder), 4, FRAME)


def test_a_duplicate_frame_number_is_named(folder):
    shade(0).save(folder / "clip2_07.png")
    with pytest.raises(DataError, match="two frames of the number 7"):
        read_video(str(folder), 4, FRAME)


def test_a_frame_without_a_number_is_named(folder):
    shade(0).save(folder / "last.png")
    with pytest.raises(DataError, match=r"last\.png has no number"):
        read_video(str(folder), 4, FRAME)


def test_an_empty_folder_is_refused(tmp_path):
    with pytest.raises(DataError, match="holds no frame"):
        read_video(str(tmp_path), 4, FRAME)


@pytest.mark.parametrize("name", ["one.gif", "one.png"])
def test_a_single_frame_is_refused(tmp_path, name):
    shade(9).save(tmp_path / name)
    path = tmp_path / name if name.endswith("gif") else tmp_path
    path = path if path.suffix else tmp_path
    if name == "one.png":
        (tmp_path / name).rename(tmp_path / "frame_1.png")
    with pytest.raises(DataError, match="has one frame, but a video needs at least two"):
        read_video(str(path), 4, FRAME)


def test_a_missing_video_is_named():
    with pytest.raises(DataError, match=r"nowhere\.gif does not exist"):
        read_video("/nowhere.gif", 4, FRAME)


def test_a_file_that_is_not_an_image_is_named(tmp_path):
    (tmp_path / "clip.gif").write_text("GIF87a, but text", encoding="utf-8")
    with pytest.raises(DataError, match=r"clip\.gif"):
        read_video(str(tmp_path / "clip.gif"), 4, FRAME)


def test_a_damaged_frame_is_named(folder):
    (folder / "clip2_0.png").write_bytes(b"no image")
    with pytest.raises(DataError, match=r"clip2_0\.png is not an image"):
        read_video(str(folder), 4, FRAME)


def test_a_video_that_is_too_long_is_refused(folder, monkeypatch):
    monkeypatch.setattr(frames, "MAX_FRAMES", 10)
    with pytest.raises(DataError, match="has 12 frames, but a video has 10 at most"):
        read_video(str(folder), 4, FRAME)
