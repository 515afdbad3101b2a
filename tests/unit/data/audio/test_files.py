import zipfile

import pytest

from regard.core.errors import DataError
from regard.data.audio.files import AUDIO_FILES
from regard.data.example import Example
from regard.data.modality import detect_modality


@pytest.fixture
def recordings(tmp_path):
    for name in ("cat/a.wav", "cat/b.flac", "dog/new/c.WAV", "d.wav", "cat/notes.txt", ".x/e.wav"):
        path = tmp_path / "pets" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"RIFF....WAVE")
    return tmp_path / "pets"


def test_folders_are_labels(recordings):
    assert AUDIO_FILES.read_label_folders(recordings) == [
        Example(f"{recordings}/cat/a.wav", "cat"),
        Example(f"{recordings}/cat/b.flac", "cat"),
        Example(f"{recordings}/dog/new/c.WAV", "dog"),
    ]
    with pytest.raises(DataError, match=r"holds no recording in a folder of its own label"):
        AUDIO_FILES.read_label_folders(recordings / "cat")


@pytest.mark.parametrize("heading", ["", "recording\ttranscript\n", "Path\tText\n"])
def test_paths_are_relative_to_the_file(recordings, write, caplog, heading):
    rows = "cat/a.wav\tmiaow\nd.wav#t=1,2.5\twoof\nnone.wav\t?\ntones/0/3\tlow\n"
    assert AUDIO_FILES.read_table(write("pets/t.tsv", heading + rows)) == [
        Example(f"{recordings}/cat/a.wav", "miaow"),
        Example(f"{recordings}/d.wav#t=1,2.5", "woof"),
        Example("tones/0/3", "low"),
    ]
    assert "skipped 1 recording in" in caplog.text and "none.wav)" in caplog.text


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("pets/t.tsv", "x.wav\tno\n", r"t.tsv names no recording that exists. First: .*x.wav"),
        ("pets/d.wav", "", r"d.wav is a recording, but recordings to learn from belong in a file"),
        ("pets/d.zip", "", r"d.zip is an archive, but"),
    ],
)
def test_a_file_without_transcripts_is_refused(recordings, write, name, content, message):
    with pytest.raises(DataError, match=message):
        AUDIO_FILES.read_table(write(name, content))


def test_a_folder_in_place_of_a_table_is_refused(recordings):
    with pytest.raises(DataError, match="is a folder, but transcripts belong in a file"):
        AUDIO_FILES.read_table(recordings)


def test_two_recordings_a_line_are_refused(recordings, write):
    path = write("pets/t.tsv", "cat/a.wav\td.wav\tno\n")
    with pytest.raises(DataError, match="must name one recording for each transcript"):
        AUDIO_FILES.read_table(path, columns=("source", "source", "target"))


def test_references_of_items_folders_archives_and_lists_are_found(recordings, write):
    for one in (f"{recordings}/d.wav", f"{recordings}/d.wav#t=0,1", "tones/0/3"):
        assert AUDIO_FILES.list_references(one) == [one]
    plain = (recordings / "d.wav").rename(recordings / "d")
    assert AUDIO_FILES.list_references(str(plain)) == [str(plain)]
    assert AUDIO_FILES.list_references(f"{recordings}/cat") == [
        f"{recordings}/cat/a.wav",
        f"{recordings}/cat/b.flac",
    ]
    with zipfile.ZipFile(recordings / "all.zip", "w") as archive:
        for name in ("z.wav", "a/b.ogg", "read.me"):
            archive.writestr(name, "")
    assert AUDIO_FILES.list_references(f"{recordings}/all.zip") == [
        f"{recordings}/all.zip/a/b.ogg",
        f"{recordings}/all.zip/z.wav",
    ]
    listed = write("pets/list.txt", "cat/a.wav\n\ntone/0/1\n")
    assert AUDIO_FILES.list_references(str(listed)) == [f"{recordings}/cat/a.wav", "tone/0/1"]


def test_a_folder_without_recordings_is_refused(tmp_path):
    with pytest.raises(DataError, match="holds no recording"):
        AUDIO_FILES.list_references(str(tmp_path))
    with pytest.raises(DataError, match="none.wav does not exist"):
        AUDIO_FILES.list_references(str(tmp_path / "none.wav"))


def names_audio(examples):
    return detect_modality(examples).name == "audio"


def test_names_distinguish_recordings_from_text():
    assert names_audio([Example("path"), Example("a.wav"), Example("b.WAV#t=1,2")])
    assert names_audio([Example("fsdd/0/train/3")])
    assert not names_audio([Example("a sentence."), Example("another")])
