"""Commands on representations: embed, neighbours and probe."""

import json

import numpy as np
import pytest
from safetensors import safe_open

from regard.interpret.embed import embed
from regard.runs.request import Request
from regard.runs.train import train

LINES = ["a b c", "", "e d", "b a c d"]


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "lines.txt"
    path.write_text("\n".join(LINES) + "\n", encoding="utf-8")
    return path


class TestEmbed:
    def test_one_vector_per_line(self, regard, tiny_run, file, tmp_path):
        result = regard("embed", tiny_run.folder, file, "--out", tmp_path / "x.npy")
        assert result.lines == [f"4 vectors of width 48: {tmp_path / 'x.npy'}"]
        expected = embed(tiny_run.predictor, LINES)
        np.testing.assert_allclose(np.load(tmp_path / "x.npy"), expected, atol=1e-6)
        assert "1 of 4 lines are empty" in result.err

    def test_safetensors_file_holds_the_provenance(self, regard, tiny_run, file, tmp_path):
        out = tmp_path / "x.safetensors"
        regard("embed", tiny_run.folder, file, "--out", out, "--layer", 1, "--pooling", "first")
        with safe_open(out, "numpy") as opened:
            vectors, metadata = opened.get_tensor("vectors"), opened.metadata()
        expected = embed(tiny_run.predictor, LINES, layer=1, pooling="first")
        np.testing.assert_allclose(vectors, expected, atol=1e-6)
        assert (metadata["layer"], metadata["pooling"]) == ("1", "first")
        assert metadata["run"] == str(tiny_run.folder) and metadata["data"] == str(file)

    def test_vectors_of_a_built_in_data_set_are_of_its_test_part(self, regard, tiny_run, tmp_path):
        out = tmp_path / "x.npy"
        assert regard("embed", tiny_run.folder, "copy:20", "--out", out).code == 0
        assert np.load(out).shape == (500, 48)

    def test_standard_input_is_read(self, regard, tiny_run, tmp_path):
        out = tmp_path / "x.npy"
        regard("embed", tiny_run.folder, "-", "--out", out, stdin="a b c\n")
        np.testing.assert_allclose(np.load(out), embed(tiny_run.predictor, ["a b c"]), atol=1e-6)

    def test_wrong_suffix_is_refused_before_the_run_is_read(self, refused, tmp_path):
        message = refused("embed", tmp_path / "no-run", "-", "--out", "x.csv")
        assert message == "`--out` must end in .npy or .safetensors, but is 'x.csv'."

    def test_unwritable_path_is_refused(self, refused, tiny_run, tmp_path):
        (tmp_path / "file").touch()
        out = tmp_path / "file" / "x.npy"
        message = refused("embed", tiny_run.folder, "-", "--out", out, stdin="a\n")
        assert message.startswith(f"{out} cannot be written")

    def test_unknown_layer_is_refused(self, refused, tiny_run, tmp_path):
        arguments = ("--out", tmp_path / "x.npy", "--layer", 7)
        message = refused("embed", tiny_run.folder, "-", *arguments, stdin="a\n")
        assert message == "`layer` must be between 0 and 1, but is 7."
        assert not (tmp_path / "x.npy").exists()

    def test_missing_file_is_refused(self, refused, tiny_run, tmp_path):
        message = refused("embed", tiny_run.folder, "nowhere.txt", "--out", tmp_path / "x.npy")
        assert "nowhere.txt" in message


class TestNeighbours:
    def test_neighbours_of_a_query_are_printed_with_their_cosine(self, regard, tiny_run, file):
        result = regard("neighbours", tiny_run.folder, file, "--query", "e d", "-k", 2)
        rows = [line.split("\t") for line in result.lines]
        assert rows[0] == ["1.0000", "e d"] and len(rows) == 2
        assert float(rows[1][0]) < 1

    def test_every_line_is_a_query_by_default(self, regard, tiny_run, file):
        result = regard("neighbours", tiny_run.folder, file, "-k", 1)
        rows = [line.split("\t") for line in result.lines]
        assert [row[0] for row in rows] == ["a b c", "e d", "b a c d"]
        assert all(row[0] != row[2] for row in rows)

    def test_queries_come_from_standard_input(self, regard, tiny_run, file):
        arguments = ("--query", "-", "-k", 1)
        result = regard("neighbours", tiny_run.folder, file, *arguments, stdin="e d\nb a c d\n")
        rows = [line.split("\t") for line in result.lines]
        assert [(row[0], row[2]) for row in rows] == [("e d", "e d"), ("b a c d", "b a c d")]

    def test_zero_neighbours_are_refused(self, refused, tiny_run, file):
        message = refused("neighbours", tiny_run.folder, file, "-k", 0)
        assert message == "`-k` must be at least 1, but is 0."

    def test_empty_query_is_refused(self, refused, tiny_run, file):
        message = refused("neighbours", tiny_run.folder, file, "--query", " ")
        assert "there are 0 queries and 3 distinct lines" in message


class TestProbe:
    def test_every_layer_is_compared_with_an_untrained_encoder(self, regard, tiny_run):
        result = regard("probe", tiny_run.folder)
        assert result.code == 0
        assert "word order %" in result.lines[0] and result.lines[0].count("control") == 3
        assert result.lines[1].split()[0] == "embeddings"
        assert result.lines[2].startswith(" layer 1")
        assert result.lines[-1].startswith("Probes were trained on 15 texts and tested on 15")

    def test_json_holds_every_number(self, regard, tiny_run, tmp_path):
        path = tmp_path / "texts.txt"
        path.write_text("".join(f"{a} {b}\n" for a in "abcde" for b in "abcde"), encoding="utf-8")
        vectors = json.loads(regard("probe", tiny_run.folder, path, "--json").out)
        assert len(vectors["layers"]) == len(vectors["control"]) == 2
        assert vectors["layers"][0]["word order %"] is None
        assert vectors["num_learned"] == 13

    def test_points_and_curves_are_plotted_on_a_page(self, regard, refused, tiny_run, tmp_path):
        path = tmp_path / "layers.html"
        plain = regard("probe", tiny_run.folder)
        result = regard("probe", tiny_run.folder, "--out", path)
        assert (result.code, result.lines) == (0, [*plain.lines, str(path)])
        page = path.read_text(encoding="utf-8")
        assert "Sentence embeddings" in page and "Linear probes by layer" in page
        assert page.count("<svg") == 2 and "tested on 15 others" in page
        message = refused("probe", tiny_run.folder, "--out", "layers.gif")
        assert message == "`--out` must end in .html, but is 'layers.gif'."

    def test_too_few_texts_are_refused(self, refused, tiny_run, file):
        assert "there are 3. Name more data." in refused("probe", tiny_run.folder, file)

    def test_pairs_of_texts_are_probed_on_the_test_set_of_the_run(
        self, regard, tiny_settings, tmp_path
    ):
        paths = []
        for side, middle in (("train", "f"), ("valid", "g"), ("test", "h")):
            lines = [
                f"{a} {b} {middle} {b} {a}\t{b} {a} d {b}\t{a} {b}\n"
                for a in "abcde"
                for b in "abcde"
            ]
            paths.append(tmp_path / f"{side}.tsv")
            paths[-1].write_text("".join(lines), encoding="utf-8")
        data, valid, test = ((str(path),) for path in paths)
        arguments = ('data.columns=["source", "source", "target"]', "train.max_steps=1")
        request = Request(
            data=data,
            valid=valid,
            test=test,
            recipe="bahdanau2015-laptop",
            settings=(*tiny_settings, "train.max_epochs=0", *arguments),
            out=tmp_path / "run",
            device="cpu",
        )
        train(request)
        result = regard("probe", tmp_path / "run")
        assert result.code == 0, result
        assert result.lines[-1].startswith("Probes were trained on 13 texts and tested on 12")
