"""Components so small that what is tested is the runner."""

import dataclasses

from keras_drill.workbench.tasks.errors import RunError
from pipelines.engine.component import Component


@dataclasses.dataclass(frozen=True)
class Word:
    word: str = "cat"


class Source(Component):
    """Writes a word, in two files."""

    name, version, writes = "Source", 1, "text"

    def __init__(self, word="cat", log=None):
        super().__init__(Word(word))
        self.log = [] if log is None else log

    def run(self, inputs, output, progress):
        self.log.append(self.name)
        (output / "text.txt").write_text(self.options.word)
        (output / "deep").mkdir()
        (output / "deep" / "first.txt").write_text(self.options.word[:1])
        progress(1, "files", 2)
        return {"letters": len(self.options.word), "parts": [1, 2]}


class Joiner(Component):
    """Writes its inputs one after the other, and a word."""

    version = 1

    def __init__(self, name, reads, writes, word="", log=None):
        super().__init__(Word(word))
        self.name, self.reads, self.writes = name, reads, writes
        self.log = [] if log is None else log

    def run(self, inputs, output, progress):
        self.log.append(self.name)
        if self.options.word == "fail":
            (output / "half.txt").write_text("half")
            raise RunError("text.txt: line 3 is bad")
        texts = [(inputs[name] / "text.txt").read_text() for name in self.reads]
        (output / "text.txt").write_text(" ".join([*texts, self.options.word]))
        return {"joined": len(texts)}


class Censor(Joiner):
    """A joiner whose artifact may stop the pipeline."""

    def stopping_reason(self, artifact):
        text = (artifact / "text.txt").read_text()
        return "it says dog: say cat" if "dog" in text else None


def toy_pipeline(source="cat", left="", right="", end="", log=None):
    """A diamond of four components."""
    return [
        Source(source, log),
        Joiner("Left", ("text",), "left", left, log),
        Joiner("Right", ("text",), "right", right, log),
        Censor("End", ("left", "right"), "end", end, log),
    ]
