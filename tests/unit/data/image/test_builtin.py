import gzip
import json

import numpy as np
import pytest
from PIL import Image

from regard.core.errors import DataError
from regard.data.datasets import loading
from regard.data.image import builtin
from regard.data.image.builtin import load_images, read_collection, split_reference
from regard.data.image.io import open_image


def idx(values):
    axes = b"".join(size.to_bytes(4, "big") for size in values.shape)
    return bytes((0, 0, 8, values.ndim)) + axes + values.astype(np.uint8).tobytes()


def write_idx(folder, *, is_packed=True):
    """Write four training and three test images of 28 × 28, numbered in their corner."""
    folder.mkdir()
    for side, num in (("train", 4), ("t10k", 3)):
        images = np.zeros((num, 28, 28))
        images[:, 0, 0] = 10 + np.arange(num)
        for name, values in (
            (f"{side}-images-idx3-ubyte", images),
            (f"{side}-labels-idx1-ubyte", 9 - np.arange(num)),
        ):
            data = idx(values)
            path = folder / (f"{name}.gz" if is_packed else name)
            path.write_bytes(gzip.compress(data) if is_packed else data)


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("REGARD_DATA", str(tmp_path))
    monkeypatch.setattr(builtin, "FASHION_FOLDER", tmp_path / "debian")
    return tmp_path


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        ("fashion-mnist/train/17", ("fashion-mnist", "train/17")),
        ("digits/5", ("digits", "5")),
        ("./digits/5", None),
        ("digits/5.png", None),
        ("digits", None),
        ("photos/17", None),
    ],
)
def test_numbered_images_are_distinguished_from_files(reference, expected):
    assert split_reference(reference) == expected


@pytest.mark.parametrize("is_packed", [True, False])
def test_mnist_is_read_compressed_or_not(root, is_packed):
    write_idx(root / "mnist", is_packed=is_packed)
    found = read_collection("mnist", "train")
    assert found.pixels.shape == (4, 28, 28, 1)
    assert found.pixels[:, 0, 0, 0].tolist() == [10, 11, 12, 13]
    assert found.labels == ("9", "8", "7", "6")
    assert read_collection("mnist", "test").labels == ("9", "8", "7")


@pytest.mark.parametrize("folder", ["fashion-mnist", "debian"])
def test_fashion_mnist_is_found_in_either_folder_and_has_named_labels(root, folder):
    write_idx(root / folder)
    assert read_collection("fashion-mnist", "test").labels == ("ankle boot", "bag", "sneaker")


def test_images_are_loaded_in_the_given_order_from_both_parts(root):
    write_idx(root / "mnist")
    found = load_images("mnist", ["train/3", "test/1", "train/0", "train/3"])
    assert found[:, 0, 0, 0].tolist() == [13, 11, 10, 13]


def test_numbered_image_is_opened(root):
    write_idx(root / "mnist")
    image = open_image("mnist/train/2")
    assert (image.size, image.mode, image.getpixel((0, 0))) == ((28, 28), "L", 12)


def test_number_beyond_the_last_is_named(root):
    write_idx(root / "mnist")
    with pytest.raises(DataError, match="no image 4 in 'mnist': they are numbered from 0 to 3"):
        open_image("mnist/train/4")


def test_unknown_part_is_named(root):
    write_idx(root / "mnist")
    with pytest.raises(DataError, match=r"'mnist/train/0', 'mnist/test/0' .* 'mnist/tset/…'"):
        open_image("mnist/tset/4")


@pytest.mark.parametrize(
    ("name", "claim"),
    [
        ("fashion-mnist/train/0", "`apt-get install dataset-fashion-mnist`"),
        ("mnist/train/0", "'mnist' .*`REGARD_DATA` .* mnist/train-images"),
        ("cifar10/train/0", "cifar10/test_batch.bin or cifar10/test_batch.png"),
    ],
)
def test_missing_data_set_names_the_needed_files(root, name, claim):
    with pytest.raises(DataError, match=claim):
        open_image(name)


@pytest.mark.parametrize("damage", [lambda data: data[:-1], lambda data: b"\1" + data[1:]])
def test_damaged_idx_is_named(root, damage):
    write_idx(root / "mnist", is_packed=False)
    path = root / "mnist" / "train-images-idx3-ubyte"
    path.write_bytes(damage(path.read_bytes()))
    with pytest.raises(DataError, match="train-images-idx3-ubyte is not a whole idx file"):
        read_collection("mnist", "train")


def test_labels_and_images_must_be_equally_many(root):
    write_idx(root / "mnist", is_packed=False)
    (root / "mnist" / "train-labels-idx1-ubyte").write_bytes(idx(np.zeros(3)))
    with pytest.raises(DataError, match="holds 4 images and 3 labels up to 0"):
        read_collection("mnist", "train")


class TestCifar10:
    """Both forms of the data set, two images in each of its six batches."""

    @pytest.fixture
    def photos(self):
        return np.random.default_rng(0).integers(0, 256, (12, 32, 32, 3), dtype=np.uint8)

    @pytest.fixture
    def binary(self, root, photos):
        (root / "cifar10").mkdir()
        for number, name in enumerate((*(f"data_batch_{n}" for n in range(1, 6)), "test_batch")):
            rows = [
                bytes([row % 10]) + photos[row].transpose(2, 0, 1).tobytes()
                for row in (2 * number, 2 * number + 1)
            ]
            (root / "cifar10" / f"{name}.bin").write_bytes(b"".join(rows))

    @pytest.fixture
    def sprites(self, root, photos):
        (root / "cifar10").mkdir()
        for number, name in enumerate((*(f"data_batch_{n}" for n in range(1, 6)), "test_batch")):
            rows = photos[2 * number : 2 * number + 2].reshape(2, 1024, 3)
            Image.fromarray(rows).save(root / "cifar10" / f"{name}.png")
        (root / "cifar10" / "train_lables.json").write_text(json.dumps([*range(10)]))
        (root / "cifar10" / "test_lables.json").write_text("[0, 1]")

    @pytest.mark.parametrize("form", ["binary", "sprites"])
    def test_both_forms_give_the_same_photos(self, request, photos, form):
        request.getfixturevalue(form)
        train, test = (read_collection("cifar10", side) for side in ("train", "test"))
        assert (train.pixels == photos[:10]).all() and (test.pixels == photos[10:]).all()
        assert train.labels[:3] == ("airplane", "automobile", "bird")
        assert test.labels == ("airplane", "automobile")

    def test_batch_of_another_length_is_named(self, root, binary):
        (root / "cifar10" / "test_batch.bin").write_bytes(b"x" * 100)
        with pytest.raises(DataError, match="rows of 3,073 bytes, but has 100 bytes"):
            read_collection("cifar10", "test")

    @pytest.mark.parametrize("content", [b"bad", None])
    def test_damaged_sprite_is_named(self, root, sprites, content):
        path = root / "cifar10" / "test_batch.png"
        path.write_bytes(path.read_bytes()[:500] if content is None else content)
        with pytest.raises(DataError, match=r"test_batch.png cannot be read"):
            read_collection("cifar10", "test")


class TestDigits:
    @pytest.fixture(autouse=True)
    def _fresh(self):
        builtin._read_digits.cache_clear()
        yield
        builtin._read_digits.cache_clear()

    def test_greys_are_scaled_to_8_bits(self, tmp_path, monkeypatch):
        folder = tmp_path / "sklearn" / "datasets" / "data"
        folder.mkdir(parents=True)
        (tmp_path / "sklearn" / "__init__.py").write_text("raise ImportError('not needed')")
        rows = [[16, 8, 0, *[0] * 61, 7], [0] * 65]
        text = "".join(",".join(map(str, row)) + "\n" for row in rows)
        (folder / "digits.csv.gz").write_bytes(gzip.compress(text.encode()))
        monkeypatch.syspath_prepend(tmp_path)
        found = read_collection("digits", "")
        assert found.pixels.shape == (2, 8, 8, 1)
        assert found.pixels[0, 0, :3, 0].tolist() == [255, 128, 0]
        assert found.labels == ("7", "0")

    def test_missing_package_is_named(self, monkeypatch):
        monkeypatch.setattr(loading, "find_spec", lambda name: None)
        with pytest.raises(DataError, match=r"'digits' needs a package. Install it: `pip install"):
            open_image("digits/0")

    def test_real_digits_are_those_of_the_library(self):
        datasets = pytest.importorskip("sklearn.datasets", reason="scikit-learn is not installed")
        bunch = datasets.load_digits()
        found = read_collection("digits", "")
        assert (found.pixels[..., 0] == (bunch.images * (255 / 16)).round()).all()
        assert found.labels == tuple(map(str, bunch.target))


def test_real_clothes_have_their_official_numbers():
    folders = (builtin.local_folder("fashion-mnist"), builtin.FASHION_FOLDER)
    if not any((folder / "train-images-idx3-ubyte.gz").is_file() for folder in folders):
        pytest.skip("Fashion-MNIST is not installed")
    train, test = (read_collection("fashion-mnist", side) for side in ("train", "test"))
    assert train.pixels.shape == (60_000, 28, 28, 1) and test.pixels.shape == (10_000, 28, 28, 1)
    assert train.labels.count("coat") == 6_000 and test.labels.count("coat") == 1_000
    assert test.labels[:3] == ("ankle boot", "pullover", "trouser")
    # The mean that everybody standardises with.
    assert abs(train.pixels.mean() / 255 - 0.2860) < 1e-4
