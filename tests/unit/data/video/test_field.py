import numpy as np
import pytest
import torch
from PIL import Image

from regard.core.errors import ConfigError, DataError
from regard.data.decoding import keep_readable
from regard.data.example import Example
from regard.data.video.field import VideoConfig, VideoField
from regard.data.video.files import VIDEO_FILES

CONFIG = VideoConfig(size=8, num_frames=3)
REFERENCES = [f"moving/0/{number}" for number in range(4)]


@pytest.fixture(scope="module")
def field():
    return VideoField.fit(CONFIG, REFERENCES)


def save_clip(path):
    images = [Image.new("RGB", (9, 9), colour) for colour in ("red", "blue", "white")]
    path.parent.mkdir(parents=True, exist_ok=True)
    images[0].save(path, save_all=True, append_images=images[1:])


def save_frames(folder):
    folder.mkdir(parents=True)
    for number in (1, 2):
        Image.new("RGB", (9, 9), "green").save(folder / f"{number}.png")


def test_a_video_takes_one_position(field):
    (item,) = field.read_all(REFERENCES[:1])
    assert (len(item), item.shape, item.dtype) == (1, (1, 3, 3, 8, 8), np.uint8)
    assert field.spec.shape == item.shape[1:]
    assert field.shorten(item, 1) is item


def test_batched_videos_equal_single_videos(field):
    values, mask = field.stack(field.read_all(REFERENCES))
    assert values.shape == (4, 3, 3, 8, 8) and mask.tolist() == [[True]] * 4
    finished = field.finish(values, is_training=True)
    for row, reference in enumerate(REFERENCES):
        alone, _ = field.stack(field.read_all([reference]))
        assert torch.equal(field.finish(alone, is_training=False)[0], finished[row])


def test_training_videos_are_standardised(field):
    values, _ = field.stack(field.read_all(REFERENCES))
    finished = field.finish(values, is_training=False).transpose(0, 2).flatten(1)
    assert finished.mean(1).tolist() == pytest.approx([0.0] * 3, abs=1e-4)
    assert finished.std(1).tolist() == pytest.approx([1.0] * 3, abs=1e-2)


def test_a_loaded_field_reads_the_same_items(field, tmp_path):
    field.save(tmp_path, "source")
    opened = VideoField.load(tmp_path)
    values, _ = field.stack(field.read_all(REFERENCES))
    assert opened.config == CONFIG
    assert torch.equal(
        opened.finish(values, is_training=False), field.finish(values, is_training=False)
    )


def test_fitting_without_videos_is_refused():
    with pytest.raises(DataError, match="no video to learn from"):
        VideoField.fit(CONFIG, [])


def test_a_video_has_two_frames_at_least():
    with pytest.raises(ConfigError, match="`num_frames` must be between 2 and 256"):
        VideoConfig(num_frames=1)


def test_unreadable_videos_are_left_out(tmp_path, caplog):
    save_clip(tmp_path / "clip.gif")
    (tmp_path / "empty").mkdir()
    names = [str(tmp_path / "clip.gif"), "moving/0/1", str(tmp_path / "empty")]
    kept = keep_readable([Example(name, "x") for name in names], CONFIG.decoder)
    assert [example.source for example in kept] == names[:2]
    assert "skipped 1 of 3 examples" in caplog.text and "holds no frame" in caplog.text
    with pytest.raises(DataError, match=r"No video can be read\. First: .*holds no frame"):
        keep_readable([Example(names[2], "x")], CONFIG.decoder)


def test_label_folders_are_read(tmp_path):
    save_clip(tmp_path / "wave" / "a.gif")
    save_frames(tmp_path / "jump" / "b")
    found = VIDEO_FILES.read_label_folders(tmp_path)
    assert found == [
        Example(str(tmp_path / "jump" / "b"), "jump"),
        Example(str(tmp_path / "wave" / "a.gif"), "wave"),
    ]


def test_a_folder_without_videos_is_refused(tmp_path):
    with pytest.raises(DataError, match="holds no video in a folder of its own label"):
        VIDEO_FILES.read_label_folders(tmp_path)


def test_paths_of_captions_are_relative_to_the_file(tmp_path, caplog):
    save_clip(tmp_path / "a.gif")
    save_frames(tmp_path / "b")
    lines = ["a.gif\tit waves", "b\tit jumps", "moving/0/1\tit moves", "c.gif\tit is not there"]
    (tmp_path / "captions.tsv").write_text("\n".join(lines), encoding="utf-8")
    found = VIDEO_FILES.read_table(tmp_path / "captions.tsv")
    wanted = [str(tmp_path / "a.gif"), str(tmp_path / "b"), "moving/0/1"]
    assert [example.source for example in found] == wanted
    assert "skipped 1 video in" in caplog.text


def test_captions_without_existing_videos_are_refused(tmp_path):
    (tmp_path / "captions.tsv").write_text("c.gif\tnothing\n", encoding="utf-8")
    with pytest.raises(DataError, match="names no video that exists"):
        VIDEO_FILES.read_table(tmp_path / "captions.tsv")


def test_videos_are_found_by_file_folder_number_and_list(tmp_path):
    save_clip(tmp_path / "some" / "a.gif")
    save_frames(tmp_path / "some" / "b")
    both = [str(tmp_path / "some" / name) for name in ("a.gif", "b")]
    assert VIDEO_FILES.list_references(both[0]) == both[:1]
    assert VIDEO_FILES.list_references(both[1]) == both[1:]
    assert VIDEO_FILES.list_references(str(tmp_path / "some")) == both
    assert VIDEO_FILES.list_references("moving/0/1") == ["moving/0/1"]
    (tmp_path / "list.txt").write_text("some/a.gif\n\nmoving/0/2\n", encoding="utf-8")
    assert VIDEO_FILES.list_references(str(tmp_path / "list.txt")) == [both[0], "moving/0/2"]
    (tmp_path / "none.txt").write_text("\n", encoding="utf-8")
    with pytest.raises(DataError, match="holds no video"):
        VIDEO_FILES.list_references(str(tmp_path / "none.txt"))
