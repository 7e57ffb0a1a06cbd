"""Pusher: publishes a blessed model as the next version in the folder of the servers."""

import dataclasses
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from keras_drill.export import ModelCard
from keras_drill.export.served_versions import ServedVersions
from keras_drill.workbench.tasks.errors import RunError
from pipelines.components.trainer import serving_folder
from pipelines.components.verdict import Verdict
from pipelines.engine.artifact_store import LINEAGE
from pipelines.engine.component import Component, Facts, Progress
from pipelines.options import PusherOptions

PUSHED = "pushed.json"


class Pusher(Component):
    """Copies the model to `<directory>/<name>/<version>/` in one atomic step.

    Special cases:

    - A model that is already served is not pushed a second time.
    - A model that was rolled back is pushed only with the option `pusher.again`.
    - The component raises an error if the verdict compares the model with an older version than
      the newest, because another pipeline has published a version in the meantime.

    Args:
        served: The versions of the served model.
        data: Path or name of the corpus, for the model card.
        options: The options.
    """

    name = "Pusher"
    version = 1
    reads = ("model", "verdict", "infra_validation")
    writes = "pushed"

    def __init__(
        self,
        served: ServedVersions,
        data: str,
        options: PusherOptions = PusherOptions(),  # noqa: B008
    ):
        super().__init__(options)
        self.served = served
        self.serve_as = served.directory.name
        self.data = data

    def settings(self) -> dict[str, Any]:
        directory = str(self.served.directory.resolve())
        # The component must run again after a version was removed or rolled back.
        there = [self.served.versions(), self.served.rolled_back()]
        return {**super().settings(), "directory": directory, "there": there}

    def stopping_reason(self, artifact: Path) -> str | None:
        version = json.loads((artifact / PUSHED).read_text(encoding="utf-8"))["version"]
        if version in self.served.versions():
            return None
        return (
            f"the model was published as version {version} of {self.serve_as}, but this version is "
            f"no longer in {self.served.directory}: --force {self.name} publishes it again"
        )

    def run(self, inputs: Mapping[str, Path], output: Path, progress: Progress) -> Facts:
        verdict = Verdict.load(inputs["verdict"])
        if not verdict.blessed:
            raise RunError("the model was refused: " + "; ".join(verdict.reasons))
        lineage = json.loads((inputs["model"] / LINEAGE).read_text(encoding="utf-8"))
        model = lineage["content"]
        removed: list[int] = []
        with self.served.lock():
            newest = self.served.newest()
            is_new = newest is None or self.served.lineage(newest).get("model") != model
            if is_new:
                self._check(verdict, model, newest)
                told = {
                    "model": model,
                    "verdict": dataclasses.asdict(verdict),
                    "trained": {key: lineage[key] for key in _TOLD},
                }
                source = serving_folder(inputs["model"])
                newest = self.served.push(source, told, self._card(source, verdict))
                removed = self.served.remove_all_but(self.options.keep)
        assert newest is not None
        folder = str(self.served.folder(newest).resolve())
        pushed = {"version": newest, "folder": folder, "removed": removed}
        (output / PUSHED).write_text(json.dumps(pushed, indent=2) + "\n", encoding="utf-8")
        facts: Facts = {"version": newest, "folder": folder}
        if not is_new:
            facts["was"] = "served already"
        if removed:
            facts["removed"] = ", ".join(map(str, removed))
        return facts

    def _check(self, verdict: Verdict, model: str, newest: int | None) -> None:
        rolled_back = self.served.was_rolled_back(model)
        if rolled_back is not None and not self.options.again:
            raise RunError(
                f"this model was version {rolled_back} of {self.serve_as} and was rolled back; "
                "train with other data or options, or publish it again with --pusher.again true"
            )
        if verdict.baseline != newest:
            now = (
                "no version is served now" if newest is None else f"version {newest} is served now"
            )
            against = verdict.baseline or "none"
            raise RunError(
                f"in the verdict, the version of {self.serve_as} to compare with is {against}, but "
                f"{now}: start the pipeline again to compare the model with the current version"
            )

    def _card(self, source: Path, verdict: Verdict) -> ModelCard:
        """Returns the model card of the training run, with the verdict and the corpus added."""
        file = source / "assets.extra" / "model_card.json"
        card = ModelCard(**json.loads(file.read_text(encoding="utf-8")))
        return dataclasses.replace(
            card,
            name=self.serve_as,
            licence=self.options.licence,
            data={**card.data, "corpus": Path(self.data).name},
            figures={**card.figures, "verdict": " ".join(verdict.reasons)},
        )


_TOLD = ("made_at", "code_version", "settings", "inputs", "command")
