"""The runner: what is made, kept, made again, and what is left when something goes wrong."""

import errno
import json
import shutil

import pytest

from keras_drill.workbench.tasks.errors import ConfigError, RunError
from pipelines.engine import execution as executions
from pipelines.engine.artifact_store import ArtifactStore
from pipelines.engine.component import Component
from pipelines.engine.run_pipeline import run_pipeline
from tests.pipelines.toys import Joiner, Source, toy_pipeline


def run(folder, *words, **options):
    """Runs the toy pipeline: its execution, and which components ran."""
    log = []
    execution = run_pipeline(toy_pipeline(*words, log=log), ArtifactStore(folder), **options)
    return execution, log


def states(execution):
    return [step.state for step in execution.steps]


def files_in(folder):
    """All artifacts' files but the lineage, which tells the time."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in (folder / "artifacts").rglob("*")
        if path.is_file() and path.name != "lineage.json"
    }


def test_what_is_unchanged_is_kept(tmp_path):
    first, log = run(tmp_path, "cat")
    assert log == ["Source", "Left", "Right", "End"] and states(first) == ["made"] * 4
    made = files_in(tmp_path)
    again, log = run(tmp_path, "cat")
    assert log == [] and states(again) == ["kept"] * 4 and files_in(tmp_path) == made
    assert [step.artifact for step in again.steps] == [step.artifact for step in first.steps]
    assert (first.number, again.number) == (1, 2)


def test_only_what_depends_on_a_change_is_made_again(tmp_path):
    run(tmp_path, "cat")
    assert run(tmp_path, "cat", "", "x")[1] == ["Right", "End"]
    assert run(tmp_path, "bird", "", "x")[1] == ["Source", "Left", "Right", "End"]
    assert run(tmp_path, "cat", "", "x")[1] == []  # what was made before is still there


def test_the_same_content_is_the_same_artifact(tmp_path):
    class OtherSource(Source):
        version = 2

    run(tmp_path, "cat")
    log = []
    pipeline = [OtherSource("cat", log), *toy_pipeline(log=log)[1:]]
    run_pipeline(pipeline, ArtifactStore(tmp_path))
    assert log == ["Source"]


def test_lineage_tells_what_made_an_artifact(tmp_path):
    execution, _ = run(tmp_path, "cat", "", "", "end", command="make it")
    end = tmp_path / execution.steps[-1].artifact
    lineage = json.loads((end / "lineage.json").read_text())
    assert lineage["made_by"] == "End" and lineage["settings"] == {"word": "end"}
    assert lineage["facts"] == {"joined": 2} and lineage["command"] == "make it"
    left = tmp_path / lineage["inputs"]["left"]["path"]
    assert (left / "text.txt").read_text() == "cat "
    assert lineage["files"]["text.txt"]["bytes"] == len("cat  cat  end")
    record = json.loads((tmp_path / "executions" / "0001" / "execution.json").read_text())
    assert record["state"] == "made" and record["steps"][0]["facts"]["letters"] == 3


def test_force_and_until(tmp_path):
    run(tmp_path, "cat")
    made = files_in(tmp_path)
    execution, log = run(tmp_path, "cat", force=["Left"])
    assert log == ["Left"] and states(execution) == ["kept", "made", "kept", "kept"]
    assert files_in(tmp_path) == made
    execution, _ = run(tmp_path, "cat", until="Left")
    assert states(execution) == ["kept", "kept"]
    with pytest.raises(ConfigError, match="unknown component 'Lef'; known: Source, Left"):
        run(tmp_path, "cat", until="Lef")


def test_a_damaged_artifact_is_made_again(tmp_path):
    execution, _ = run(tmp_path, "cat")
    made = files_in(tmp_path)
    source, left, right, _ = [tmp_path / step.artifact for step in execution.steps]
    (source / "deep" / "first.txt").unlink()
    (left / "lineage.json").write_text("{")
    (right / "text.txt").write_text("longer than it was")
    assert run(tmp_path, "cat")[1] == ["Source", "Left", "Right"]
    assert files_in(tmp_path) == made
    shutil.rmtree(left)
    assert run(tmp_path, "cat")[1] == ["Left"]


def test_a_failure_keeps_what_was_before_and_says_how_to_go_on(tmp_path):
    with pytest.raises(RunError) as error:
        run(tmp_path, "cat", "", "fail")
    assert str(error.value).startswith("Right: text.txt: line 3 is bad\n")
    assert "the same command resumes at Right" in str(error.value)
    record = json.loads((tmp_path / "executions" / "0001" / "execution.json").read_text())
    assert [step["state"] for step in record["steps"]] == ["made", "made", "failed", "waiting"]
    assert (
        record["state"] == "failed" and record["steps"][2]["message"] == "text.txt: line 3 is bad"
    )
    assert not any("half" in name for name in files_in(tmp_path))
    assert run(tmp_path, "cat", "", "mended")[1] == ["Right", "End"]


@pytest.mark.parametrize("stop", [OSError(errno.ENOSPC, "No space left", "a"), KeyboardInterrupt()])
def test_a_full_disk_does_not_hide_what_the_component_said(stop, tmp_path, monkeypatch, capsys):
    """The records of an execution and its page are written to the same disk."""

    class Full(Source):
        def run(self, inputs, output, progress):
            monkeypatch.setattr(executions, "replace_file", refuse)
            raise stop

    def refuse(path, content):
        raise OSError(errno.ENOSPC, "No space left on device", str(path))

    with pytest.raises((RunError, KeyboardInterrupt)) as raised:
        run_pipeline([Full()], ArtifactStore(tmp_path), on_end=lambda *_: refuse("page.html", ""))
    if isinstance(stop, OSError):
        assert str(raised.value).startswith("Source: a: No space left\n")
        assert "the same command resumes at Source" in str(raised.value)
    else:
        assert raised.value is stop
    err = capsys.readouterr().err
    assert "execution.json: No space left on device" in err and "page.html: No space" in err
    monkeypatch.undo()
    log = []
    run_pipeline([Source(log=log)], ArtifactStore(tmp_path))
    assert log == ["Source"]


def test_a_record_that_cannot_be_written_is_an_error(tmp_path):
    def on_end(execution, artifacts):
        raise OSError(errno.ENOSPC, "No space left on device", "page.html")

    with pytest.raises(OSError, match="page"):
        run_pipeline([Source()], ArtifactStore(tmp_path), on_end=on_end)


def test_a_mistake_of_the_program_is_not_hidden(tmp_path):
    class Mistaken(Source):
        def run(self, inputs, output, progress):
            raise TypeError("no text")

    with pytest.raises(TypeError, match="no text"):
        run_pipeline([Mistaken()], ArtifactStore(tmp_path))
    record = json.loads((tmp_path / "executions" / "0001" / "execution.json").read_text())
    assert record["steps"][0]["message"] == "TypeError: no text"


def test_an_artifact_may_stop_the_pipeline_each_time(tmp_path):
    for made in (["Source", "Left", "Right", "End"], []):
        log = []
        pipeline = [*toy_pipeline("dog", log=log), Joiner("After", ("end",), "after", log=log)]
        with pytest.raises(RunError, match=r"^End: it says dog: say cat$"):
            run_pipeline(pipeline, ArtifactStore(tmp_path))
        assert log == made
    record = json.loads((tmp_path / "executions" / "0002" / "execution.json").read_text())
    assert [step["state"] for step in record["steps"]] == ["kept"] * 3 + ["stopped", "waiting"]


def test_two_at_once_are_refused(tmp_path):
    with (
        ArtifactStore(tmp_path).lock(),
        pytest.raises(RunError, match=r"is running in .*--folder"),
    ):
        run(tmp_path, "cat")
    assert run(tmp_path, "cat")[1]


def test_interrupted(tmp_path):
    class Interrupted(Source):
        def run(self, inputs, output, progress):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_pipeline([Interrupted()], ArtifactStore(tmp_path))
    record = json.loads((tmp_path / "executions" / "0001" / "execution.json").read_text())
    assert record["state"] == record["steps"][0]["state"] == "interrupted"


def test_components_must_stand_after_what_they_read(tmp_path):
    pipeline = toy_pipeline()
    with pytest.raises(ValueError, match=r"no component before Left writes \['text'\]"):
        run_pipeline(pipeline[1:], ArtifactStore(tmp_path))


class Counting(Component):
    """Writes a line in each call, three in all; the first two calls are cut short."""

    name, version, writes, keeps_work = "Counting", 1, "count", True

    def __init__(self):
        super().__init__(toy_pipeline()[0].options)

    def run(self, inputs, output, progress):
        lines = output / "lines.txt"
        number = len(lines.read_text().splitlines()) if lines.exists() else 0
        lines.write_text("line\n" * (number + 1))
        if number < 2:
            raise KeyboardInterrupt
        return {}


def test_a_component_may_go_on_with_its_own_work(tmp_path):
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            run_pipeline([Counting()], ArtifactStore(tmp_path))
        run(tmp_path, until="Source")  # another execution, which leaves it alone
    execution = run_pipeline([Counting()], ArtifactStore(tmp_path))
    text = (tmp_path / execution.steps[0].artifact / "lines.txt").read_text()
    assert text == "line\n" * 3
