"""Runs of NT-ASGD: what their checkpoints hold, and what is told of the averages."""

import contextlib
import io

import numpy as np
import pytest

from keras_drill.workbench.training.checkpoints import CheckpointStore
from keras_drill.workbench.training.loaded_run import LoadedRun
from keras_drill.workbench.training.run_folder import RunFolder, read_history
from keras_drill.workbench.training.snapshot import model_keys
from keras_drill.workbench.training.train_run import prepare_process, train_run
from tests.workbench.training.tiny import tiny_config

EPOCHS = 6


@pytest.fixture(
    scope="module", params=["float32", pytest.param("mixed_bfloat16", marks=pytest.mark.slow)]
)
def averaging_run(request, corpus, tmp_path_factory):
    """A run that averages from its fifth epoch on, with a checkpoint of each step."""
    folder = RunFolder(tmp_path_factory.mktemp("averaging") / "run")
    config = tiny_config(
        corpus,
        data_batch_size=7,
        data_sequence_length=13,
        optimizer_kind="nt-asgd",
        optimizer_nonmonotone_interval=1,
        optimizer_learning_rate=200.0,  # far too much: epochs become worse at once
        training_epochs=EPOCHS,
        training_checkpoint_every=1,
        training_keep_checkpoints=99,
        training_precision=request.param,
    )
    prepare_process(config)
    output = io.StringIO()
    try:
        with contextlib.redirect_stdout(output):
            train_run(config, folder)
    finally:
        prepare_process(tiny_config(corpus))
    (folder.path / "output.txt").write_text(output.getvalue())
    return folder


def first_averaged_epoch(folder):
    """The epoch after the first that is worse than one more than an epoch before it, from 1."""
    losses = read_history(folder.history_file)["val_loss"]
    return next(k for k in range(2, EPOCHS) if losses[k] > min(losses[: k - 1])) + 2


def weights_of_steps(store, keys):
    """What the optimizer made of the weights in each step."""
    for step in store.steps():
        arrays, _ = store.load(step)
        if arrays["averaging/average_in_model"]:
            yield step, [arrays[f"averaging/mean_{i}"] for i in range(len(keys))]
        else:
            yield step, [arrays[f"model/{key}"] for key in keys]


@pytest.mark.slow
def test_a_checkpoint_has_the_mean_of_the_steps_since_the_switch(averaging_run):
    store = CheckpointStore(averaging_run.checkpoints)
    best = LoadedRun.load(averaging_run)
    built = model_keys(best.task.build_model(best.vocabulary))
    keys = [key for key, variable in built.items() if variable.trainable]
    weights = dict(weights_of_steps(store, keys))
    batches = store.steps()[-1] // EPOCHS
    switch = (first_averaged_epoch(averaging_run) - 1) * batches
    assert switch < (EPOCHS - 1) * batches
    # Before averaging begins, in the first epoch with averages and at its end, and in the last.
    for step in (switch - 2, switch, switch + 2, switch + batches, switch + 2 * batches - 1):
        since = [weights[s] for s in weights if switch < s <= step] or [weights[step]]
        chosen = LoadedRun.load(averaging_run, checkpoint=step).model
        assert chosen.head.compute_dtype == best.model.head.compute_dtype
        for variable, *steps in zip(chosen.trainable_variables, *since, strict=True):
            mean = np.mean(steps, axis=0, dtype="float64")
            np.testing.assert_allclose(variable, mean, rtol=2e-6, atol=1e-6, err_msg=str(step))


@pytest.mark.slow
def test_the_switch_is_told(averaging_run):
    first = first_averaged_epoch(averaging_run)
    steps = read_history(averaging_run.history_file)["averaged_steps"]
    batches = CheckpointStore(averaging_run.checkpoints).steps()[-1] // EPOCHS
    expected = [max(0, epoch - first + 1) * batches for epoch in range(1, EPOCHS + 1)]
    assert steps == expected
    page = averaging_run.report_file.read_text()
    assert f"averages its weights from epoch {first} on" in page
    said = (averaging_run.path / "output.txt").read_text()
    assert f"weights are averaged from epoch {first} on" in said
    assert said.count("weights are averaged") == 1


@pytest.mark.slow
def test_fine_tuning_averages_from_the_first_step(corpus, tmp_path, capsys):
    first = tiny_config(corpus, training_epochs=1, optimizer_kind="nt-asgd")
    train_run(first, RunFolder(tmp_path / "first"))
    tuned = first.replace(
        {
            "optimizer.nonmonotone_interval": 0,
            "training.epochs": 2,
            "training.start_from": str(tmp_path / "first"),
        }
    )
    capsys.readouterr()
    folder = RunFolder(tmp_path / "tuned")
    train_run(tuned, folder)
    assert "weights are averaged from the first step on" in capsys.readouterr().out
    steps = read_history(folder.history_file)["averaged_steps"]
    assert 0 < steps[0] == steps[1] - steps[0]
