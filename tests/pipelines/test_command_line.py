"""The pipelines as their users call them: what they say, and what they refuse."""

import json
import re
import shutil
import subprocess
import sys
from xml.etree import ElementTree

import pytest

from pipelines.command_line import main
from pipelines.components.spans import find_span
from pipelines.engine.artifact_store import ArtifactStore
from pipelines.engine.run_pipeline import run_pipeline
from pipelines.page.write_execution_page import write_execution_page
from tests.pipelines.corpora import tiny_task
from tests.pipelines.toys import toy_pipeline

DATA_HALF = ("--until", "Transform")
LET_PASS = ("--example_validator.allow", "max_duplicates", "--example_validator.allow",
            "max_in_train")  # fmt: skip


@pytest.fixture
def run_main(tmp_path, capsys):
    """Runs a pipeline's command on a tiny recipe: its exit status, output and messages."""

    def run(*words, task="language-model", data=True, passes=LET_PASS):
        config = tiny_task(task, tmp_path / task)
        (tmp_path / f"{task}.toml").write_text(config.to_toml())
        given = ["--data", config.data.path] if data else []
        capsys.readouterr()
        line = [tmp_path / f"{task}.toml", *given, "--folder", tmp_path / "store", *passes, *words]
        return main(task, "small-tied", [str(word) for word in line]), *capsys.readouterr()

    return run


def test_a_table_a_page_and_messages(run_main, tmp_path):
    status, out, said = run_main(*DATA_HALF)
    assert status == 0
    table, report = out.rsplit("report: ", 1)
    names = ["ExampleGen", "StatisticsGen", "SchemaGen", "ExampleValidator", "Transform"]
    assert [line.split()[:2] for line in table.splitlines()[1:]] == [[n, "made"] for n in names]
    lines = [line for line in said.splitlines() if line.startswith("[")]
    assert [line.split(":")[0] for line in lines] == [
        f"[{number}/5] {name}" for number, name in enumerate(names, start=1)
    ]
    page = (tmp_path / report.strip()).read_text()
    for name in [*names, "Statistics", "Anomalies", "language-model.toml"]:
        assert name in page, name
    status, out, _ = run_main(*DATA_HALF)
    assert status == 0 and out.count(" kept ") == 5


def test_an_anomaly_is_on_the_page_and_the_terminal(run_main, tmp_path):
    status, out, said = run_main(*DATA_HALF, passes=())
    assert status == 1 and "Traceback" not in said
    assert "pipelines: error: ExampleValidator: the examples do not match the schema" in said
    assert "--example_validator.allow max_duplicates" in said
    assert re.search(r"ExampleValidator +stopped", out) and re.search(r"Transform +waiting", out)
    page = next((tmp_path / "store" / "executions").glob("*/report.html")).read_text()
    assert "of the lines repeat an earlier line" in page


WRONG = {
    "--until Train": "unknown component 'Train'; known: ExampleGen",
    "--force Train": "unknown component 'Train'",
    "--example_gen.shards 3": "unknown option --example_gen.shards",
    "--example_gen.shard_megabytes 0": "shard_megabytes must be at least 1. Received: 0",
    "--statistics_gen.tokenizer bpe": "statistics_gen.tokenizer cannot be 'bpe'",
    "--example_validator.allow max_driff": "did you mean 'max_drift'",
    "--epochs 3": "did you mean --training.epochs?",
    "--backbone.unit 3": "did you mean 'backbone.units'?",
    "--span 3": "--span requires {SPAN} in --data",
    "--folder=": "--folder must be a non-empty path",
    "--span x": "argument --span: invalid int value",
    "--colour red": "unrecognized arguments: --colour red",
    "--schema none.json": "SchemaGen: none.json: No such text file",
}


@pytest.mark.parametrize("words", WRONG)
def test_what_is_wrong_is_one_message(words, run_main):
    status, _, said = run_main(*words.split())
    message = said.partition("pipelines: error: ")[2]
    assert status in (1, 2) and WRONG[words] in message, said
    assert "Traceback" not in said


def test_a_recipe_of_another_task_is_refused(tmp_path, capsys):
    assert main("translation", "small-translation-tied", ["small-tied", "--data", "a"]) == 2
    assert "run python -m pipelines.language_model" in capsys.readouterr().err
    assert main("translation", "small-translation-tied", []) == 2
    assert "--data" in capsys.readouterr().err


BAD = {
    "no such path": (lambda folder: shutil.rmtree(folder), "No such text file"),
    "not UTF-8": (
        lambda folder: (folder / "train.txt").write_bytes(b"good\nb\xe4d\n"),
        "train.txt: Expected UTF-8 text: byte 0xe4 in line 2",
    ),
    "binary": (
        lambda folder: (folder / "test.txt").write_bytes(b"good\n\0\n"),
        "test.txt: Expected UTF-8 text, found a binary (or UTF-16) file: NUL byte in line 2",
    ),
    "empty": (
        lambda folder: (folder / "valid.txt").write_bytes(b""),
        "valid.txt: The text file is empty",
    ),
    "damaged": (
        lambda folder: (folder / "train.txt").write_bytes(b"\x1f\x8b\x08damaged"),
        "train.txt: The gzip file is damaged or incomplete",
    ),
}


@pytest.mark.parametrize("kind", BAD)
def test_bad_data_is_named_with_component_file_and_line(kind, run_main, tmp_path):
    config = tiny_task("language-model", tmp_path / "data")
    spoil, message = BAD[kind]
    spoil(tmp_path / "data")
    status, _, said = run_main("--data", config.data.path, *DATA_HALF, data=False)
    assert status == 1 and f"{message}" in said and "pipelines: error: ExampleGen: " in said
    assert "the same command resumes at ExampleGen" in said and "Traceback" not in said


def test_bad_pairs_are_named_with_component_file_and_line(run_main, tmp_path):
    folder = tmp_path / "pairs"
    tiny_task("translation", folder)
    text = (folder / "train.en").read_text()
    (folder / "train.en").write_text(text + "one more\n")
    words = ("--data", folder, *DATA_HALF)
    status, _, said = run_main(*words, task="translation", data=False)
    assert status == 1 and "ExampleGen: " in said and "line 102 of" in said and "train.en" in said


def test_bad_words_name_transform(run_main):
    status, _, said = run_main(*DATA_HALF, "--data.vocabulary", "none.txt")
    assert status == 1 and "Transform: none.txt: No such text file" in said


def test_spans_are_found(tmp_path):
    for name in ("day-0007", "day-12", "day-x", "other-99"):
        (tmp_path / name / "text").mkdir(parents=True)
    data = f"{tmp_path}/day-{{SPAN}}/text"
    assert find_span(data) == (f"{tmp_path}/day-12/text", 12)
    assert find_span(data, 7) == (f"{tmp_path}/day-0007/text", 7)
    assert find_span("plain/path") == ("plain/path", None)
    for bad, span, message in (
        (data, 8, "found no span 8 of .*spans 7 to 12"),
        (f"{tmp_path}/month-{{SPAN}}", None, "there is no span in"),
        (f"{tmp_path}/no/{{SPAN}}", None, "must be in an existing folder"),
        ("a{SPAN}{SPAN}", None, "must have {SPAN} once"),
    ):
        with pytest.raises(ValueError, match=message):
            find_span(bad, span)


@pytest.mark.slow
def test_a_new_span_is_new_data(run_main, tmp_path):
    for number in (1, 2):
        tiny_task("language-model", tmp_path / f"day-{number}")
    text = (tmp_path / "day-2" / "train.txt").read_text()
    (tmp_path / "day-2" / "train.txt").write_text(text + "the new bird sees a dog .\n")
    words = ("--data", f"{tmp_path}/day-{{SPAN}}", *DATA_HALF)
    for span, options in ((1, ("--span", "1")), (2, ())):
        status, out, said = run_main(*words, *options, data=False)
        assert status == 0 and f"span {span}" in out, said
    examples = ArtifactStore(tmp_path / "store").all("examples")
    assert [each.facts["span"] for each in examples] == [1, 2]


def test_the_page_tells_what_went_wrong_and_links_to_what_is_there(tmp_path):
    store = ArtifactStore(tmp_path / "store")
    pages = []

    def on_end(execution, artifacts):
        pages.append(write_execution_page(execution, store, pipeline, artifacts))

    pipeline = toy_pipeline("<cat> & שלום", right="fail")
    with pytest.raises(RuntimeError, match="line 3 is bad"):
        run_pipeline(pipeline, store, command="a 'b'", on_end=on_end)
    page = pages[0].read_text()
    assert "A component failed" in page and "Right: text.txt: line 3 is bad" in page
    for state in ("made", "failed", "waiting"):
        assert f"<td>{state}</td>" in page
    links = re.findall(r'href="([^"]+)"', page)
    assert links and all((pages[0].parent / link).exists() for link in links)
    assert "http" not in " ".join(links) and "<script" not in page
    svg = re.search(r"<svg[^>]*graph.*?</svg>", page, re.S)[0]
    ElementTree.fromstring(svg)  # well-formed
    record = json.loads((pages[0].parent / "execution.json").read_text())
    assert record["command"] == "a 'b'"


@pytest.mark.parametrize("name", ["../elsewhere", "/tmp/x", "..", ""])
def test_a_served_model_stays_in_its_folder(name, run_main, tmp_path):
    status, _, said = run_main("--serve-as", name)
    assert status == 2 and "--serve-as" in said and "must be the name of a folder" in said
    assert not (tmp_path / "store").exists()


def test_help_comes_without_messages_of_tensorflow():
    words = [sys.executable, "-m", "pipelines.language_model", "--help"]
    result = subprocess.run(words, capture_output=True, text=True, check=True)
    assert result.stdout.startswith("usage: python -m pipelines.language_model")
    assert result.stderr == ""
