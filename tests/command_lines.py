"""Generated command lines: commands with odd options, values, files and overrides."""

import gzip
import os
import random
import socket
from pathlib import Path

from regard.core.files import write_json

VALUES = (
    ("", "0", "-1", "3", "1e9", "99999999999999999999", "nan", "inf", "1.5", "true", "None")
    + ("é", "\udcff", "a" * 300, "../..", "/dev/null", "/dev/full", "/proc/x", "-", "--", "=")
    + ("a,b", "[1, 2", "{", '"', "\x1b[31m", "a\nb", "cpu", "cuda", "bleu", "source,target", "*")
)
"""Values of options and overrides."""

SETTINGS = (
    ("search.beams", "search.temperature", "search.max_ratio", "search.length_penalty", "search.x")
    + ("train.max_steps", "train.precision", "seed", "data.batch.max_length", "data.columns")
    + ("model.encoder.kind", "model.encoder.dim", "validation.metric", "init_from", "a.b.c", "x")
)

DATA_SETS = (
    "phrasebook:12",
    "reverse:20,3-5",
    "copy:0",
    "copy:-1",
    "sort:20,5-2",
    "phrasebook:x",
    ":",
) + ("tatoeba:../x", "babi:99", "scenes:nothing", "multi30k", "digits", "nothing", "toys:1e9")

LINES = "".join(f"{'abcde'[n % 5]} {'abcde'[n // 5 % 5]}\t{'edcba'[n % 5]} x\n" for n in range(40))

FILES = {
    "pairs.tsv": LINES.encode(),
    "empty.tsv": b"",
    "lines.txt": b"a b\n\nc d\n",
    "latin.tsv": "ä\tö\n".encode("latin1") * 20,
    "null.tsv": b"a\0b\tc\n" * 20,
    "escapes.tsv": b"a\x1b]0;title\x07 b\tc\x1b[2J d\n" * 20,
    "pairs.csv": b'source,target\n"a,b\n',
    "deep.jsonl": b'{"source": ' + b"[" * 100_000 + b"\n",
    "nested.jsonl": b'{"source": ' + b"[" * 960 + b"]" * 960 + b', "target": "a"}\n',
    "digits.jsonl": b'{"source": "a", "target": "b", "alignment": ' + b"9" * 5_000 + b"}\n",
    "numbers.jsonl": b'{"source": "a", "target": "b", "alignment": [[1e999, 0]]}\n' * 20,
    "surrogate.jsonl": b'{"source": "\\ud800", "target": "a\\u0000b"}\n' * 20,
    "list.json": b"[1, 2]\n",
    "damaged.tsv.gz": gzip.compress(LINES.encode())[:-9],
    "pairs.tsv.gz": gzip.compress(LINES.encode()),
    "image.png": b"\x89PNG\r\n\x1a\n" + b"\0" * 40,
    "tone.wav": b"RIFF\xff\xff\xff\xffWAVEfmt \x10\0\0\0\1\0\xff\xff\xff\xff\xff\x7f" + b"\0" * 40,
    "images.zip": b"PK\x03\x04" + b"\0" * 60,
    "postscript.png": b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\nshowpage\n",
    "recipe.toml": b"task = 'generation'\n[train]\nmax_steps = 'many'\n",
    "latin.toml": b"task = '\xff'\n",
    "\udcff name.tsv": LINES.encode(),
    "n" * 250 + ".tsv": LINES.encode(),
}


def write_files(folder):
    """Write odd files into a folder, and return the names of all of them."""
    for name, content in FILES.items():
        (folder / name).write_bytes(content)
    (folder / "folder").mkdir()
    (folder / "run of nothing").mkdir()
    write_json(folder / "run of nothing" / "config.json", {"task": 3})
    os.mkfifo(folder / "pipe.tsv")
    (folder / "circle.tsv").symlink_to("circle.tsv")
    (folder / "dangling.tsv").symlink_to("nowhere")
    with socket.socket(socket.AF_UNIX) as server:
        here = os.getcwd()
        os.chdir(folder)  # Names of sockets are limited to 108 bytes.
        try:
            server.bind("socket.tsv")
        finally:
            os.chdir(here)
    others = ("folder", "run of nothing", "pipe.tsv", "circle.tsv", "dangling.tsv", "socket.tsv")
    return [*FILES, *others, "pairs.tsv/below", "missing.tsv", "a/b.txt"]


NUMBERS = ("1", "1", "2", "3", "0", "-1", "0.5")
"""Values that fit most options."""

OUTPUTS = ("new.png", "new.npy", "new.tsv", "new.html", "new/folder", "pairs.tsv/below", "folder")
"""Values of `--out`."""


class CommandLines:
    """Command lines by a seed, most of which are nearly right."""

    def __init__(self, commands, *, runs, files):
        """Take the commands by name, run folders, and names of files."""
        self._commands = commands
        self._runs, self._files = runs, files

    def generate(self, seed):
        """Return the words of one command line, and its standard input."""
        chance = random.Random(seed)
        name = chance.choice(list(self._commands))
        words = name.split()
        params = self._commands[name].params
        arguments = [param for param in params if param.param_type_name == "argument"]
        for param in arguments:
            words += self._argument(param, chance)
        options = [param for param in params if param.param_type_name == "option"]
        chosen = chance.sample(options, k=min(len(options), chance.choice((0, 0, 1, 1, 2))))
        for param in {*chosen, *(param for param in options if param.required)}:
            words.append(chance.choice(param.opts))
            if not (param.is_flag or param.count):
                words.append(self._value(param, chance))
        takes_settings = any("key=value" in (param.metavar or "") for param in arguments)
        if chance.random() < (0.5 if takes_settings else 0.02):
            number = chance.choice(("1", "2", "0", "-1", "x", *VALUES))
            words.append(f"{chance.choice(SETTINGS)}={number}")
        if chance.random() < 0.05:
            words.insert(chance.randrange(len(words) + 1), chance.choice(VALUES))
        return words, chance.choice(("", "a b c\n", "a b\n\xff\n", "\n\n", LINES))

    def _argument(self, param, chance):
        metavar = param.metavar or param.name
        if "RUN" in metavar:
            return [self._run(chance) for _ in range(2 if param.nargs == -1 else 1)]
        if metavar.startswith("[") and chance.random() < 0.5:
            return []
        if "RECIPE" in metavar:
            return [chance.choice(("cho2014", "recipe.toml", "latin.toml", self._run(chance)))]
        return [self._source(chance)]

    def _run(self, chance):
        return chance.choice(self._runs if chance.random() < 0.95 else (*self._files, *VALUES))

    def _source(self, chance):
        kind = chance.random()
        if kind < 0.25:
            return "pairs.tsv"
        if kind < 0.5:
            run = Path(chance.choice(self._runs))
            return chance.choice((f"{run.parent}/test.jsonl", f"{run}/test.jsonl", str(run.parent)))
        return chance.choice(self._files if kind < 0.85 else (*DATA_SETS, *VALUES))

    def _value(self, param, chance):
        kind = chance.random()
        if "RUN" in (param.metavar or "") or param.name == "rerank":
            return self._run(chance)
        if param.name == "out" and kind < 0.8:
            return chance.choice(OUTPUTS)
        if param.name == "device":
            return chance.choice(("cpu", "cpu", "cpu:3", "x"))
        if kind < 0.6:
            return chance.choice(NUMBERS)
        return self._source(chance) if kind < 0.8 else chance.choice(VALUES)
