import os
import subprocess
import sys
import zipfile
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from regard.core import workers
from regard.core.errors import DataError
from regard.data import decoding
from regard.data.cache import ArrayCache
from regard.data.decoding import keep_readable
from regard.data.example import Example
from regard.data.image import decoding as rendering
from regard.data.image import resize as framing
from regard.data.image.builtin import NUMBERED_IMAGES
from regard.data.image.decoding import image_decoder
from regard.data.image.field import ImageConfig, ImageField
from regard.data.image.io import open_image
from regard.data.image.resize import Frame, read_image, to_pixels

FRAME = Frame(4, 1)


@pytest.fixture(autouse=True)
def _clear_rendered():
    rendering._render.cache_clear()


@pytest.fixture
def files(tmp_path, monkeypatch):
    """Ten images, and a cache that is used from five images on."""
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(decoding, "NUM_CACHED", 5)
    paths = [str(tmp_path / f"{number}.png") for number in range(10)]
    for number, path in enumerate(paths):
        Image.fromarray(np.arange(30, dtype=np.uint8).reshape(5, 6) + number).save(path)
    return paths


@pytest.fixture
def count(monkeypatch):
    """Counter of the files read from now on."""
    read = []

    def counted(reference, *, frame):
        read.append(reference)
        return read_image(reference, frame=frame)

    monkeypatch.setattr(rendering, "read_image", counted)
    return read


def decode(references, frame):
    return decoding.decode(references, image_decoder(frame))


def read_many(references, frame):
    return decoding.read_many(references, image_decoder(frame))


def alone(path, frame=FRAME):
    return to_pixels(open_image(path), frame)


def test_few_files_are_not_cached(files, tmp_path):
    found = decode(files[:4], FRAME)
    assert all((found.arrays[path][0] == alone(path)).all() for path in files[:4])
    assert not (tmp_path / "cache").exists()


def test_many_files_are_read_once_and_mapped_from_disk(files, count):
    first, second = decode(files, FRAME), decode(reversed(files * 2), FRAME)
    assert sorted(count) == files
    for path in files:
        assert first.arrays[path].shape == (1, 1, 4, 4)
        assert (first.arrays[path][0] == alone(path)).all()
        assert (second.arrays[path] == first.arrays[path]).all()
    array = second.arrays[files[0]].base
    assert isinstance(array.base, np.memmap) or isinstance(array, np.memmap)
    assert all(np.shares_memory(array, image) for image in second.arrays.values())


def test_a_subset_is_cached_and_only_new_files_are_read(files, count, tmp_path):
    decode(files[:8], FRAME)
    assert sorted(decode(files[1:7], FRAME).arrays) == files[1:7]
    assert sorted(count) == files[:8]
    found = decode(files, FRAME)
    assert sorted(count) == files
    assert all((found.arrays[path][0] == alone(path)).all() for path in files)


def test_many_new_files_make_another_array(files, count, tmp_path):
    decode(files[:5], FRAME)
    for _ in range(2):
        found = decode(files, FRAME)
    assert sorted(count) == files
    assert all((found.arrays[path][0] == alone(path)).all() for path in files)
    assert len([*(tmp_path / "cache").rglob("*.npy")]) == 2


@pytest.mark.parametrize(
    "frame", [Frame(5, 1), Frame(4, 3), Frame(4, 1, "pad"), Frame(4, 1, max_pixels=1000)]
)
def test_other_settings_are_read_again(files, count, frame):
    decode(files, FRAME)
    found = decode(files, frame)
    assert len(count) == 20
    assert (found.arrays[files[0]][0] == alone(files[0], frame)).all()


def test_changed_file_is_read_again(files):
    before = decode(files, FRAME).arrays[files[3]].copy()
    Image.new("L", (4, 4), 255).save(files[3])
    after = decode(files, FRAME).arrays[files[3]]
    assert (after == 255).all() and (before != 255).all()


def test_good_files_of_a_bad_set_are_not_read_twice(files, count, tmp_path):
    (tmp_path / "bad.png").write_bytes(b"bad")
    bad = [str(tmp_path / "bad.png"), str(tmp_path / "none.png")]
    first = decode([*files, *bad], FRAME)
    assert sorted(first.failures) == sorted(bad) and sorted(first.arrays) == files
    assert decode([*files, *bad], FRAME).failures == first.failures
    good = decode(files, FRAME)
    assert len(count) == 12 and not good.failures
    assert all((good.arrays[path][0] == alone(path)).all() for path in files)


def test_repaired_file_is_read_again(files, tmp_path):
    data = (tmp_path / "5.png").read_bytes()
    (tmp_path / "5.png").write_bytes(b"bad")
    assert list(decode(files, FRAME).failures) == [files[5]]
    (tmp_path / "5.png").write_bytes(data)
    found = decode(files, FRAME)
    assert not found.failures and (found.arrays[files[5]][0] == alone(files[5])).all()


def test_only_bad_files_give_only_failures(files, tmp_path):
    bad = [str(tmp_path / f"none{number}.png") for number in range(6)]
    for _ in range(2):
        found = decode(bad, FRAME)
        assert not found.arrays and sorted(found.failures) == bad


@pytest.mark.parametrize("damage", [b"", b"no array", None])
def test_damaged_cache_is_written_again(files, tmp_path, damage):
    decode(files, FRAME)
    (path,) = (tmp_path / "cache" / "images").rglob("*.npy")
    path.write_bytes(path.read_bytes()[:-40] if damage is None else damage)
    found = decode(files, FRAME)
    assert all((found.arrays[name][0] == alone(name)).all() for name in files)


def test_interrupted_reading_leaves_no_incomplete_array(files, tmp_path, monkeypatch):
    def broken(references, decoder):
        yield np.zeros((1, 1, 4, 4), np.uint8)
        raise KeyboardInterrupt

    monkeypatch.setattr(decoding, "read_many", broken)
    with pytest.raises(KeyboardInterrupt):
        decode(files, FRAME)
    assert not [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]


def test_cache_that_cannot_be_written_is_named(files, monkeypatch, write):
    monkeypatch.setenv("REGARD_CACHE", str(write("file", "no folder")))
    with pytest.raises(DataError, match="could not be written: .* Set REGARD_CACHE to another"):
        decode(files, FRAME)


def test_files_that_change_while_they_are_read_are_an_error(files, monkeypatch):
    def touching(references, decoder):
        yield from decoding.read_files(references, decoder.read)
        os.utime(references[0], (1, 1))

    monkeypatch.setattr(decoding, "read_many", touching)
    with pytest.raises(DataError, match="Images have changed while they were read"):
        decode(files, FRAME)


class TestWorkers:
    @pytest.fixture
    def many(self, tmp_path, monkeypatch):
        monkeypatch.setattr(decoding, "NUM_PER_WORKER", 3)
        monkeypatch.setattr(decoding, "CHUNK", 2)
        monkeypatch.setattr(workers, "num_cores", lambda: 2)
        with zipfile.ZipFile(tmp_path / "images.zip", "w") as archive:
            for number in range(7):
                path = tmp_path / f"{number}.png"
                Image.fromarray(np.full((5, 6), number, np.uint8)).save(path)
                archive.write(path, path.name)
        members = [f"{tmp_path / 'images.zip'}/{number}.png" for number in range(7)]
        return [*members, str(tmp_path / "none.png"), str(tmp_path / "0.png")]

    def test_workers_decode_the_same_arrays_in_the_same_order(self, many, monkeypatch):
        expected = decoding.read_files(many, partial(read_image, frame=FRAME))
        # The main process cannot read images from here on.
        monkeypatch.setattr(framing, "open_image", None)
        found = [*read_many(many, FRAME)]
        assert len(found) == len(expected) == 9
        for ours, theirs in zip(found, expected, strict=True):
            assert ours == theirs if isinstance(ours, str) else (ours == theirs).all()

    def test_workers_render_the_same_images(self, monkeypatch):
        monkeypatch.setattr(rendering, "NUM_PER_WORKER", 3)
        monkeypatch.setattr(rendering, "CHUNK", 2)
        monkeypatch.setattr(workers, "num_cores", lambda: 2)
        names = [f"scenes/4/{number}" for number in range(7)]
        expected = [alone(name, FRAME) for name in names]
        # The main process cannot render images from here on.
        monkeypatch.setitem(NUMBERED_IMAGES, "scenes", None)
        found = decode(names, FRAME).arrays
        assert list(found) == names
        assert all((found[name][0] == one).all() for name, one in zip(names, expected, strict=True))

    def test_the_main_process_continues_if_workers_fail(self, many, monkeypatch, caplog):
        def die(*_):
            raise workers.BrokenProcessPool

        monkeypatch.setattr(workers.ProcessPoolExecutor, "submit", die)
        found = [*read_many(many, FRAME)]
        assert "worker processes have ended early" in caplog.text
        assert [image.max() for image in found[:7]] == [*range(7)]


@pytest.mark.parametrize("side", [6, 8, 11])
@pytest.mark.parametrize(("shape", "channels"), [((8, 8, 1), 3), ((8, 8, 3), 3), ((8, 8, 3), 1)])
def test_numbered_images_at_once_equal_one_by_one(monkeypatch, shape, channels, side):
    pixels = np.random.default_rng(0).integers(0, 256, (9, *shape), dtype=np.uint8)
    monkeypatch.setitem(NUMBERED_IMAGES, "noise", lambda numbers: pixels[[int(n) for n in numbers]])
    references = [f"noise/{number}" for number in (3, 0, 8, 3)]
    frame = Frame(side, channels)
    found = decode(references, frame)
    assert list(found.arrays) == ["noise/3", "noise/0", "noise/8"]
    for reference in references:
        assert (found.arrays[reference][0] == alone(reference, frame)).all()


@pytest.mark.parametrize("fit", ["crop", "pad", "squash"])
def test_numbered_images_that_are_not_square_are_fitted(monkeypatch, fit):
    pixels = np.random.default_rng(0).integers(0, 256, (2, 6, 9, 3), dtype=np.uint8)
    monkeypatch.setitem(NUMBERED_IMAGES, "noise", lambda numbers: pixels[[int(n) for n in numbers]])
    frame = Frame(5, 3, fit)
    found = decode(["noise/1"], frame)
    assert (found.arrays["noise/1"][0] == alone("noise/1", frame)).all()


def test_numbered_images_are_rendered_once_for_statistics_and_training(monkeypatch):
    drawn = []

    def draw(numbers):
        drawn.extend(numbers)
        return np.zeros((len(numbers), 4, 4, 1), np.uint8)

    monkeypatch.setitem(NUMBERED_IMAGES, "black", draw)
    references = [f"black/{number}" for number in range(5)]
    field = ImageField.fit(ImageConfig(size=4, channels=1), references)
    field.read_all(references)
    assert drawn == [*"01234"]
    assert keep_readable([Example("black/99")], field.config.decoder) == [Example("black/99")]
    assert drawn == [*"01234"]


def test_files_and_numbered_images_may_be_mixed(files, monkeypatch):
    monkeypatch.setitem(NUMBERED_IMAGES, "grey", lambda n: np.full((len(n), 4, 4, 1), 9, np.uint8))
    found = decode([files[0], "grey/7", files[1]], FRAME)
    assert set(found.arrays) == {files[0], "grey/7", files[1]}
    assert (found.arrays["grey/7"] == 9).all()


def test_worker_processes_start_without_torch():
    code = "import sys, regard.data.image.decoding; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_an_installed_package_invalidates_cached_errors(files, monkeypatch):
    decoder = image_decoder(FRAME)
    folders = []
    for found in (None, "found"):
        monkeypatch.setattr("regard.data.formats.find_spec", lambda name, found=found: found)
        folders.append(ArrayCache(Path("cache"), decoder)._folder)
    assert folders[0] != folders[1]
