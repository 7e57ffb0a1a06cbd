"""Everything that `keras-drill train` does."""

from keras_drill.report import RunSummary, describe_environment, write_report
from keras_drill.training.config import RunConfig
from keras_drill.training.judge_run import judge_run
from keras_drill.training.prepared_text import PreparedText
from keras_drill.training.run_folder import RunFolder
from keras_drill.training.training import Training


def train_run(config: RunConfig, folder: RunFolder) -> RunSummary:
    """Trains a run, or resumes it, judges its best model, and writes its report.

    Args:
        config: the options.
        folder: where everything is kept.

    Returns:
        What the report says about the run.
    """
    with folder.lock():
        folder.check(config)
        text = PreparedText.prepare(config, folder)
        training = Training(config, folder, text)
        folder.write_config(config)
        text.vocabulary.save(folder.vocabulary_file)
        sizes = ", ".join(f"{len(ids):,} of {name}" for name, ids in text.splits.items())
        print(f"{folder.path}: {len(text.vocabulary):,} words; tokens: {sizes}", flush=True)
        if training.finished:
            print(f"already trained: {training.state.epoch} epochs, nothing left to do")
        else:
            if training.state.step:
                print(
                    f"resuming at epoch {training.state.epoch + 1}, "
                    f"batch {training.state.batch + 1}"
                )
            training.run()
        summary = judge_run(folder, text)
        write_report(
            folder.report_file,
            [summary],
            title=config.description or folder.name,
            environment=describe_environment(seed=config.training.seed),
        )
    print(
        f"best epoch {summary.best_epoch}: validation perplexity {summary.valid_perplexity:.2f}"
        + (f", test {summary.test_perplexity:.2f}" if summary.test_perplexity else "")
        + f"\nreport: {folder.report_file}"
    )
    return summary
