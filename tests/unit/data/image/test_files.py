import io
import zipfile

import pytest
from PIL import Image

from regard.core.errors import DataError
from regard.data.example import Example
from regard.data.image.files import IMAGE_FILES
from regard.data.splits import merge_references


@pytest.fixture
def images(tmp_path):
    """Images in two folders and outside of them, and other files."""
    for name in ("cat/b.png", "cat/a.jpg", "dog/new/c.PNG", "d.png"):
        path = tmp_path / "pets" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("L", (2, 2)).save(path)
    for name in ("cat/notes.txt", "cat/.hidden.png", ".git/e.png"):
        path = tmp_path / "pets" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("no image")
    return tmp_path / "pets"


class TestFolder:
    def test_folders_are_labels(self, images, caplog):
        assert IMAGE_FILES.read_label_folders(images) == [
            Example(f"{images}/cat/a.jpg", "cat"),
            Example(f"{images}/cat/b.png", "cat"),
            Example(f"{images}/dog/new/c.PNG", "dog"),
        ]
        assert "skipped 1 image in" in caplog.text and "(first: d.png)" in caplog.text

    def test_folder_without_labels_is_refused(self, images):
        (images / "dog" / "empty").mkdir()
        with pytest.raises(DataError, match=r"holds no image in a folder of its own label"):
            IMAGE_FILES.read_label_folders(images / "cat")

    def test_file_in_place_of_a_folder_is_refused(self, images):
        with pytest.raises(DataError, match=r"d.png is not a folder"):
            IMAGE_FILES.read_label_folders(images / "d.png")


CAPTIONS = [("cat/a.jpg", "a cat"), ("cat/b.png", "another"), ("cat/a.jpg", "the same cat")]


class TestCaptions:
    @pytest.mark.parametrize(
        ("name", "content"),
        [
            ("c.tsv", "".join(f"{image}\t{text}\n" for image, text in CAPTIONS)),
            ("c.tsv.gz", "image\tcaption\n" + "".join(f"{i}\t{text}\n" for i, text in CAPTIONS)),
            ("c.csv", "image,caption\n" + "".join(f"{i},{text}\n" for i, text in CAPTIONS)),
            ("c.jsonl", "".join(f'{{"image": "{i}", "caption": "{t}"}}\n' for i, t in CAPTIONS)),
        ],
    )
    def test_every_format_gives_an_example_for_each_caption(self, images, write, name, content):
        found = IMAGE_FILES.read_table(write(f"pets/{name}", content))
        assert found == [Example(f"{images}/{image}", text) for image, text in CAPTIONS]

    def test_list_of_captions_gives_one_example_each(self, images, write):
        path = write("pets/c.jsonl", '{"image": "d.png", "caption": ["a dog", "a pet"]}\n')
        found = IMAGE_FILES.read_table(path)
        assert found == [Example(f"{images}/d.png", text) for text in ("a dog", "a pet")]
        assert merge_references(found) == [
            Example(f"{images}/d.png", "a dog", references=("a pet",))
        ]

    def test_missing_images_are_counted_and_the_first_is_named(self, images, write, caplog):
        path = write("pets/c.tsv", "x.png\tno\nd.png\tyes\nx.png\tno\ny.png\tno\n")
        assert IMAGE_FILES.read_table(path) == [Example(f"{images}/d.png", "yes")]
        assert "skipped 2 images in" in caplog.text and "x.png)" in caplog.text

    @pytest.mark.parametrize("content", ["x.png\tno\n", "image\tcaption\n"])
    def test_no_image_at_all_is_an_error(self, images, write, content):
        with pytest.raises(DataError, match=r"c.tsv names no image that exists"):
            IMAGE_FILES.read_table(write("pets/c.tsv", content))

    def test_images_may_be_in_an_archive(self, images, write):
        data = io.BytesIO()
        with zipfile.ZipFile(data, "w") as archive:
            archive.write(images / "d.png", "in/d.png")
        write("pets/all.zip", data.getvalue())
        path = write("pets/c.tsv", "all.zip/in/d.png\tyes\nall.zip/in/e.png\tno\n")
        assert IMAGE_FILES.read_table(path) == [Example(f"{images}/all.zip/in/d.png", "yes")]

    def test_numbered_images_may_have_captions(self, images, write):
        path = write("pets/c.tsv", "digits/5\ta five\n")
        assert IMAGE_FILES.read_table(path) == [Example("digits/5", "a five")]


class TestFind:
    def test_reference_of_an_image_is_its_path(self, images):
        assert IMAGE_FILES.list_references(f"{images}/d.png") == [f"{images}/d.png"]

    def test_reference_of_an_image_without_suffix_is_its_path(self, images):
        path = (images / "d.png").rename(images / "d")
        assert IMAGE_FILES.list_references(str(path)) == [str(path)]

    def test_reference_of_a_numbered_image_is_unchanged(self):
        assert IMAGE_FILES.list_references("fashion-mnist/test/3") == ["fashion-mnist/test/3"]

    def test_the_images_of_a_table_with_captions_are_listed(self, images):
        (images / "list.tsv").write_text("cat/a.jpg\tA cat.\nd.png\tA pet.\n")
        expected = [f"{images}/cat/a.jpg", f"{images}/d.png"]
        assert IMAGE_FILES.list_references(f"{images}/list.tsv") == expected

    def test_a_folder_gives_its_images_in_order(self, images):
        assert IMAGE_FILES.list_references(f"{images}/cat") == [
            f"{images}/cat/a.jpg",
            f"{images}/cat/b.png",
        ]

    def test_an_archive_gives_its_images(self, images):
        with zipfile.ZipFile(images / "all.zip", "w") as archive:
            for name in ("z.png", "a/b.jpg", "read.me"):
                archive.write(images / "d.png", name)
        root = f"{images}/all.zip"
        assert IMAGE_FILES.list_references(root) == [
            f"{root}/a/b.jpg",
            f"{root}/z.png",
        ]
        assert IMAGE_FILES.list_references(f"{root}/z.png") == [f"{root}/z.png"]

    def test_a_list_has_paths_relative_to_its_folder(self, images, write):
        path = write("pets/list.txt", f"cat/b.png\n\n{images}/d.png\ndigits/5\n")
        found = IMAGE_FILES.list_references(str(path))
        assert found == [f"{images}/cat/b.png", f"{images}/d.png", "digits/5"]

    def test_a_missing_path_is_named(self, tmp_path):
        with pytest.raises(DataError, match=r"none.png does not exist"):
            IMAGE_FILES.list_references(str(tmp_path / "none.png"))

    @pytest.mark.parametrize("name", ["empty", "empty.txt"])
    def test_a_path_without_images_is_named(self, tmp_path, name):
        path = tmp_path / name
        path.write_text("\n") if path.suffix else path.mkdir()
        with pytest.raises(DataError, match=r"empty.* holds no image"):
            IMAGE_FILES.list_references(str(path))


def test_captions_are_read_from_the_named_columns(images):
    (images / "captions.tsv").write_text("x\td.png\ta dot\n")
    columns = ("-", "source", "target")
    found = IMAGE_FILES.read_table(images / "captions.tsv", columns=columns)
    assert found == [Example(f"{images}/d.png", "a dot")]
    with pytest.raises(DataError, match=r"must name one image for each caption, but a source is"):
        IMAGE_FILES.read_table(images / "captions.tsv", columns=("source", "source", "target"))


def test_label_without_images_is_left_out_with_a_warning(images, caplog):
    (images / "bird").mkdir()
    assert {example.target for example in IMAGE_FILES.read_label_folders(images)} == {"cat", "dog"}
    assert "left out 1 label in" in caplog.text and "(first: bird)" in caplog.text


def test_the_first_column_of_a_table_is_a_list(images, write):
    path = write("pets/t.tsv", "cat/a.jpg\tcat\ncat/b.png\tcat\n")
    assert IMAGE_FILES.list_references(str(path)) == [f"{images}/cat/a.jpg", f"{images}/cat/b.png"]


def test_animated_images_are_counted_in_a_warning(tmp_path, caplog):
    frames = [Image.new("L", (8, 8), color) for color in (0, 90)]
    for label in ("left", "right"):
        (tmp_path / label).mkdir()
        frames[0].save(tmp_path / label / "b.gif")
    assert len(IMAGE_FILES.read_label_folders(tmp_path)) == 2
    assert not caplog.records
    frames[0].save(tmp_path / "left/a.gif", save_all=True, append_images=frames[1:])
    assert len(IMAGE_FILES.read_label_folders(tmp_path)) == 3
    (record,) = caplog.records
    assert "1 of the first 3" in record.getMessage() and "left/a.gif" in record.getMessage()
    assert "`--recipe moving-directions-laptop`" in record.getMessage()
