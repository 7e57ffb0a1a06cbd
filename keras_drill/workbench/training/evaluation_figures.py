"""Writes the metrics of an evaluation as JSON."""

import dataclasses
import datetime
import json
import math
import os
from collections.abc import Sequence
from typing import Any

from keras_drill.data.atomic import replace_file
from keras_drill.workbench.report import RunSummary
from keras_drill.workbench.report.comparability import Comparability
from keras_drill.workbench.tasks.task import Evaluation
from keras_drill.workbench.training.loaded_run import LoadedRun


def write_figures(
    path: str | os.PathLike,
    runs: Sequence[LoadedRun],
    evaluated: Sequence[Evaluation],
    summaries: Sequence[RunSummary],
    checkpoint: int | str | None = None,
    compared: Sequence[Comparability] = (),
) -> None:
    """Writes all metrics of runs as JSON.

    Args:
        path: The file, which is replaced if it exists.
        runs: The runs.
        evaluated: Results of the evaluation of each run.
        summaries: The report's summary of each run.
        checkpoint: The checkpoint of each run that was evaluated; `None` for the best model.
        compared: For each text, the metrics that can be compared.
    """
    records = [
        {
            "name": summary.name,
            "folder": str(run.folder.path.resolve()),
            "checkpoint": checkpoint,
            "output_layer": summary.output_layer,
            "texts": {text.name: text.to_json() for text in summary.texts},
            **evaluation.figures(),
            "total_parameters": summary.total_parameters,
            "output_parameters": summary.output_parameters,
            "best_epoch": summary.best_epoch,
            "seconds_per_epoch": summary.seconds_per_epoch,
        }
        for run, evaluation, summary in zip(runs, evaluated, summaries, strict=True)
    ]
    figures = {
        "date": f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d %H:%M UTC}",
        "runs": records,
        "compared": [dataclasses.asdict(each) for each in compared],
    }
    text = json.dumps(_finite(figures), indent=2, ensure_ascii=False)
    replace_file(path, text + "\n")


def _finite(value: Any) -> Any:
    """Replaces NaN and infinite numbers in nested values by `None`, as JSON cannot express them."""
    if isinstance(value, dict):
        return {name: _finite(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
