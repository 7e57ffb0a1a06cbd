"""Runs that look trained and are not: their weights are random."""

from pathlib import Path

import numpy as np

from keras_drill.workbench.tasks.config import RunConfig
from keras_drill.workbench.tasks.make_task import make_task
from keras_drill.workbench.training.run_folder import RunFolder, write_history


def untrained_run(config: RunConfig, path: Path) -> RunFolder:
    """Writes what commands about trained runs read, in a second."""
    folder, task = RunFolder(path), make_task(config)
    path.mkdir(parents=True)
    words = task.make_vocabulary(path)
    words.save(path)
    folder.write_config(config)
    model = task.build_model(words)
    random = np.random.default_rng(config.training.seed)
    for variable in model.trainable_variables:
        variable.assign(random.normal(0, 0.7, variable.shape))
    model.save(folder.model_file)
    write_history(folder.history_file, [{"val_perplexity": 17.0, "seconds": 1.0}])
    return folder
