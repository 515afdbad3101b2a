import hashlib
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from regard.core.errors import DataError
from regard.data.datasets.download import cache_folder, fetch

BODY = b"pairs\n" * 1000


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/missing.gz":
            self.send_error(404)
            return
        self.send_response(200)
        extra = 10 if self.path == "/cut.gz" else 0
        if self.path != "/endless.gz":
            self.send_header("Content-Length", str(len(BODY) + extra))
        self.end_headers()
        self.wfile.write(BODY)

    def log_message(self, *arguments):
        pass


@pytest.fixture(scope="module")
def server():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def nowhere():
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    return f"http://127.0.0.1:{port}"


def test_the_first_use_downloads(server, tmp_path):
    assert fetch(f"{server}/a.gz", cache=tmp_path).read_bytes() == BODY


def test_a_file_of_unknown_size_is_downloaded(server, tmp_path):
    assert fetch(f"{server}/endless.gz", cache=tmp_path).read_bytes() == BODY


def test_the_checksum_is_written_down(server, tmp_path):
    fetch(f"{server}/a.gz", cache=tmp_path)
    expected = hashlib.sha256(BODY).hexdigest()
    assert (tmp_path / "a.gz.sha256").read_text() == expected + "\n"


def test_the_second_use_needs_no_network(server, nowhere, tmp_path):
    first = fetch(f"{server}/a.gz", cache=tmp_path)
    assert fetch(f"{nowhere}/a.gz", cache=tmp_path) == first


def test_a_file_put_there_by_hand_is_used(nowhere, tmp_path):
    (tmp_path / "a.gz").write_bytes(BODY)
    fetch(f"{nowhere}/a.gz", cache=tmp_path)
    assert (tmp_path / "a.gz.sha256").exists()


def test_a_name_can_be_chosen(server, tmp_path):
    assert fetch(f"{server}/a.gz", cache=tmp_path, name="b.gz") == tmp_path / "b.gz"


def test_the_cache_folder_is_the_default(server, tmp_path, monkeypatch):
    monkeypatch.setenv("REGARD_CACHE", str(tmp_path / "new"))
    assert fetch(f"{server}/a.gz") == tmp_path / "new" / "a.gz"


def test_without_a_setting_the_cache_is_at_home(tmp_path, monkeypatch):
    monkeypatch.delenv("REGARD_CACHE", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert cache_folder() == tmp_path / ".cache" / "regard"


def test_a_changed_file_is_refused(server, tmp_path):
    path = fetch(f"{server}/a.gz", cache=tmp_path)
    path.write_bytes(b"other")
    expected, found = hashlib.sha256(BODY).hexdigest(), hashlib.sha256(b"other").hexdigest()
    message = rf"a\.gz is not the file .* {expected}, but is {found}\. Delete it to download"
    with pytest.raises(DataError, match=message):
        fetch(f"{server}/a.gz", cache=tmp_path)


def test_a_deleted_file_is_downloaded_again(server, tmp_path):
    path = fetch(f"{server}/a.gz", cache=tmp_path)
    path.unlink()
    assert fetch(f"{server}/a.gz", cache=tmp_path).read_bytes() == BODY


def test_a_missing_page_names_the_answer(server, tmp_path):
    message = (
        r"/missing\.gz could not be downloaded: the server responded with 404 Not Found\. Check"
    )
    with pytest.raises(DataError, match=message):
        fetch(f"{server}/missing.gz", cache=tmp_path)


def test_no_connection_is_an_error(nowhere, tmp_path):
    message = r"/a\.gz could not be downloaded: .*refused.* Check the network and try again"
    with pytest.raises(DataError, match=message):
        fetch(f"{nowhere}/a.gz", cache=tmp_path)


def test_a_url_without_a_scheme_is_an_error(tmp_path):
    with pytest.raises(DataError, match="could not be downloaded: unknown url type"):
        fetch("somewhere/a.gz", cache=tmp_path)


def test_a_transfer_cut_short_is_an_error(server, tmp_path):
    message = "the transfer broke off after 6,000 of 6,010 bytes"
    with pytest.raises(DataError, match=message):
        fetch(f"{server}/cut.gz", cache=tmp_path)


@pytest.mark.parametrize("page", ["missing.gz", "cut.gz"])
def test_a_failed_download_leaves_nothing_behind(server, tmp_path, page):
    with pytest.raises(DataError):
        fetch(f"{server}/{page}", cache=tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_cache_that_cannot_be_written_is_an_error(server, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match=r"could not be written: .*Set REGARD_CACHE to another"):
        fetch(f"{server}/a.gz", cache=tmp_path / "file")
