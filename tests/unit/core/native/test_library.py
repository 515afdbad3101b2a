import ctypes
import os
import shutil

import pytest

from regard.core.native import library
from regard.core.native.library import load_library

needs_compiler = pytest.mark.skipif(
    not any(map(shutil.which, library.COMPILERS)), reason="there is no C++ compiler"
)


@pytest.fixture(autouse=True)
def not_loaded(monkeypatch, tmp_path):
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv(library.VARIABLE, raising=False)
    monkeypatch.delenv("CXX", raising=False)
    load_library.cache_clear()
    yield
    load_library.cache_clear()


@pytest.fixture
def tiny(monkeypatch, tmp_path):
    """A library that is compiled quickly."""
    source = tmp_path / "kernels.cpp"
    source.write_text(
        'extern "C" __attribute__((visibility("default"))) int answer() { return 42; }'
    )
    monkeypatch.setattr(library, "SOURCE", source)
    return source


@needs_compiler
def test_library_is_compiled_once(tiny, monkeypatch):
    assert load_library().answer() == 42
    load_library.cache_clear()

    def fail(*arguments):
        raise AssertionError("compiled again")

    monkeypatch.setattr(library, "_build", fail)
    assert isinstance(load_library(), ctypes.CDLL)


@needs_compiler
def test_another_source_is_another_library(tiny):
    assert load_library().answer() == 42
    load_library.cache_clear()
    tiny.write_text(tiny.read_text().replace("42", "43"))
    assert load_library().answer() == 43


@needs_compiler
def test_damaged_library_is_compiled_again(tiny, tmp_path):
    load_library()
    load_library.cache_clear()
    (file,) = (tmp_path / "cache" / "kernels").glob(f"*/{library.LIBRARY}")
    # A new file: the old one is mapped into this process.
    file.unlink()
    file.write_bytes(b"no library")
    assert load_library().answer() == 42


@needs_compiler
def test_faulty_source_leaves_search_to_torch(tiny, caplog):
    tiny.write_text("this is no C++")
    with caplog.at_level("INFO", logger="regard"):
        assert load_library() is None
    assert "There are no kernels" in caplog.text


@needs_compiler
def test_failed_build_is_not_tried_again(tiny, monkeypatch):
    tiny.write_text("this is no C++")
    assert load_library() is None
    load_library.cache_clear()

    def fail(*arguments):
        raise AssertionError("compiled again")

    monkeypatch.setattr(library, "_build", fail)
    assert load_library() is None


@needs_compiler
def test_library_that_others_can_replace_is_not_loaded(tiny, tmp_path, caplog):
    load_library()
    load_library.cache_clear()
    (tmp_path / "cache" / "kernels").chmod(0o777)
    with caplog.at_level("INFO", logger="regard"):
        assert load_library() is None
    assert "must belong to this user" in caplog.text


@needs_compiler
def test_library_is_loaded_where_groups_may_write_by_default(tiny):
    before = os.umask(0o002)
    try:
        assert load_library().answer() == 42
    finally:
        os.umask(before)


@needs_compiler
def test_compiler_may_have_arguments(tiny, monkeypatch):
    compiler = next(filter(None, map(shutil.which, library.COMPILERS)))
    monkeypatch.setenv("CXX", f"{compiler} -pipe")
    assert load_library().answer() == 42


@needs_compiler
def test_messages_of_a_compiler_may_have_any_encoding(tiny, monkeypatch, tmp_path):
    script = tmp_path / "compiler"
    script.write_text("#!/bin/sh\nprintf 'r\\351gl\\351' >&2\nexit 1\n")
    script.chmod(0o755)
    monkeypatch.setenv("CXX", str(script))
    assert load_library() is None


def test_missing_compiler_leaves_search_to_torch(monkeypatch, caplog):
    monkeypatch.setattr(shutil, "which", lambda name: None)
    with caplog.at_level("INFO", logger="regard"):
        assert load_library() is None
    assert "no C++ compiler" in caplog.text


@needs_compiler
def test_compiler_that_does_not_exist_is_replaced(tiny, monkeypatch):
    monkeypatch.setenv("CXX", "/no/such/compiler")
    assert load_library().answer() == 42


def test_cache_that_cannot_be_written_leaves_search_to_torch(tiny, monkeypatch, tmp_path):
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "file"))
    assert load_library() is None


def test_variable_disables_the_kernels(monkeypatch):
    monkeypatch.setenv(library.VARIABLE, "0")
    assert load_library() is None
