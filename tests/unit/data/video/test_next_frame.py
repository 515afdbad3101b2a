"""Videos without their last frame, and the last frame."""

import numpy as np

from regard.data.image.resize import Frame
from regard.data.video.field import VideoConfig, VideoField
from regard.data.video.next_frame import FirstFrames

CONFIG = VideoConfig(size=12, num_frames=3)
NAMES = ["moving/0/1", "moving/0/2", "moving/0/1"]


def test_first_frames_and_last_frame_make_the_video():
    field = FirstFrames.fit(CONFIG, NAMES)
    whole = VideoField(VideoConfig(size=12, num_frames=4), field.mean, field.std)
    first, last = field.read_all(NAMES), field.read_last(NAMES, CONFIG.frame)
    for some, one, video in zip(first, last, whole.read_all(NAMES), strict=True):
        assert some.shape == (1, 3, 3, 12, 12) and one.shape == (1, 3, 12, 12)
        assert np.array_equal(np.concatenate([some[0], one]), video[0])


def test_last_frame_can_have_another_size():
    field = FirstFrames.fit(CONFIG, NAMES)
    (last,) = field.read_last(NAMES[:1], Frame(20, 1))
    assert last.shape == (1, 1, 20, 20)


def test_saved_field_is_loaded_unchanged(tmp_path):
    field = FirstFrames.fit(CONFIG, NAMES)
    field.save(tmp_path, "source")
    again = FirstFrames.load(tmp_path)
    assert isinstance(again, FirstFrames)
    assert again.mean == field.mean and again.spec.shape == (3, 3, 12, 12)
