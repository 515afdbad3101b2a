import zipfile

import pytest

from regard.core.errors import DataError
from regard.data.audio.files import AUDIO_FILES
from regard.data.example import Example
from regard.data.modality import detect_modality


@pytest.fixture
def sounds(tmp_path):
    for name in ("cat/a.wav", "cat/b.flac", "dog/new/c.WAV", "d.wav", "cat/notes.txt", ".x/e.wav"):
        path = tmp_path / "pets" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"RIFF....WAVE")
    return tmp_path / "pets"


def test_folders_are_labels(sounds):
    assert AUDIO_FILES.read_label_folders(sounds) == [
        Example(f"{sounds}/cat/a.wav", "cat"),
        Example(f"{sounds}/cat/b.flac", "cat"),
        Example(f"{sounds}/dog/new/c.WAV", "dog"),
    ]
    with pytest.raises(DataError, match=r"holds no recording in a folder of its own label"):
        AUDIO_FILES.read_label_folders(sounds / "cat")


@pytest.mark.parametrize("heading", ["", "recording\ttranscript\n", "Path\tText\n"])
def test_paths_start_at_the_folder_of_the_file(sounds, write, caplog, heading):
    rows = "cat/a.wav\tmiaow\nd.wav#t=1,2.5\twoof\nnone.wav\t?\ntones/0/3\tlow\n"
    assert AUDIO_FILES.read_table(write("pets/t.tsv", heading + rows)) == [
        Example(f"{sounds}/cat/a.wav", "miaow"),
        Example(f"{sounds}/d.wav#t=1,2.5", "woof"),
        Example("tones/0/3", "low"),
    ]
    assert "skipped 1 recording in" in caplog.text and "none.wav)" in caplog.text


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("pets/t.tsv", "x.wav\tno\n", r"t.tsv names no recording that exists. First: .*x.wav"),
        ("pets/d.wav", "", r"d.wav is a recording, but recordings to learn from stand in a file"),
        ("pets/d.zip", "", r"d.zip is an archive, but"),
    ],
)
def test_what_is_no_file_of_transcripts_is_told(sounds, write, name, content, message):
    with pytest.raises(DataError, match=message):
        AUDIO_FILES.read_table(write(name, content))


def test_a_folder_is_no_file_of_transcripts(sounds):
    with pytest.raises(DataError, match="is a folder, but transcripts stand in a file"):
        AUDIO_FILES.read_table(sounds)


def test_two_recordings_a_line_are_refused(sounds, write):
    path = write("pets/t.tsv", "cat/a.wav\td.wav\tno\n")
    with pytest.raises(DataError, match="must name one recording for each transcript"):
        AUDIO_FILES.read_table(path, columns=("source", "source", "target"))


def test_what_is_asked_is_found(sounds, write):
    for one in (f"{sounds}/d.wav", f"{sounds}/d.wav#t=0,1", "tones/0/3"):
        assert AUDIO_FILES.list_references(one) == [one]
    plain = (sounds / "d.wav").rename(sounds / "d")
    assert AUDIO_FILES.list_references(str(plain)) == [str(plain)]
    assert AUDIO_FILES.list_references(f"{sounds}/cat") == [
        f"{sounds}/cat/a.wav",
        f"{sounds}/cat/b.flac",
    ]
    with zipfile.ZipFile(sounds / "all.zip", "w") as archive:
        for name in ("z.wav", "a/b.ogg", "read.me"):
            archive.writestr(name, "")
    assert AUDIO_FILES.list_references(f"{sounds}/all.zip") == [
        f"{sounds}/all.zip/a/b.ogg",
        f"{sounds}/all.zip/z.wav",
    ]
    listed = write("pets/list.txt", "cat/a.wav\n\ntone/0/1\n")
    assert AUDIO_FILES.list_references(str(listed)) == [f"{sounds}/cat/a.wav", "tone/0/1"]


def test_what_holds_no_recording_is_told(tmp_path):
    with pytest.raises(DataError, match="holds no recording"):
        AUDIO_FILES.list_references(str(tmp_path))
    with pytest.raises(DataError, match="none.wav does not exist"):
        AUDIO_FILES.list_references(str(tmp_path / "none.wav"))


def names_audio(examples):
    return detect_modality(examples).name == "audio"


def test_names_tell_recordings_from_text():
    assert names_audio([Example("path"), Example("a.wav"), Example("b.WAV#t=1,2")])
    assert names_audio([Example("fsdd/0/train/3")])
    assert not names_audio([Example("a sentence."), Example("another")])
