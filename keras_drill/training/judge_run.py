"""Figures and samples of a run's best model."""

import json

from keras_drill.data.atomic import replace_file
from keras_drill.report import RunSummary
from keras_drill.training.loaded_run import LoadedRun
from keras_drill.training.prepared_text import PreparedText
from keras_drill.training.run_folder import RunFolder


def judge_run(folder: RunFolder, text: PreparedText) -> RunSummary:
    """Evaluates the best model of a run on its own text, and writes `results.json`."""
    run = LoadedRun.load(folder)
    judged = {split: ids for split, ids in text.splits.items() if split != "train"}
    summary = run.summarize({split: run.perplexity(ids) for split, ids in judged.items()})
    figures = (
        "total_parameters",
        "output_parameters",
        "best_epoch",
        "valid_perplexity",
        "test_perplexity",
        "seconds_per_epoch",
    )
    results = {figure: getattr(summary, figure) for figure in figures}
    replace_file(folder.results_file, json.dumps(results, indent=2) + "\n")
    return summary
