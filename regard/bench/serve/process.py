"""A server in a process of its own, on a free port of this machine."""

import re
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from types import TracebackType
from typing import IO

from regard.core.errors import ConfigError

_URL = re.compile(r"(http://\S+:\d+)\.")


class ServerProcess:
    """Server of runs, for the time of a block.

    Args:
        arguments: Arguments of `regard serve`.
    """

    def __init__(self, arguments: Sequence[str]) -> None:
        self._command = [sys.executable, "-m", "regard", "serve", *arguments, "--port", "0"]
        self.log: list[str] = []
        """Lines of its log so far."""

    def __enter__(self) -> "ServerProcess":
        self.process = subprocess.Popen(self._command, stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        self.url = self._wait_for_url(self.process.stderr)
        self._reader = threading.Thread(target=self.log.extend, args=(self.process.stderr,))
        self._reader.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.process.kill()
        self.process.wait()
        self._reader.join()
        assert self.process.stderr is not None
        self.process.stderr.close()

    def stop(self) -> int:
        """Send SIGTERM, and return the exit code of the process."""
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait()
        self._reader.join()
        return code

    def _wait_for_url(self, log: IO[str]) -> str:
        for line in log:
            self.log.append(line)
            if found := _URL.search(line):
                return found[1]
        self.process.wait()
        log.close()
        last = self.log[-1].strip().removeprefix("regard: ") if self.log else "no message"
        raise ConfigError(f"The server has not started: {last}")
