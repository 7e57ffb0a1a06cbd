"""Makes the task of a run."""

from keras_drill.workbench.tasks.autoencoder.config import AutoencoderConfig
from keras_drill.workbench.tasks.autoencoder.task import AutoencoderTask
from keras_drill.workbench.tasks.config import RunConfig
from keras_drill.workbench.tasks.dialog.config import DialogConfig
from keras_drill.workbench.tasks.dialog.task import DialogTask
from keras_drill.workbench.tasks.language_model.config import LanguageModelConfig
from keras_drill.workbench.tasks.language_model.task import LanguageModelTask
from keras_drill.workbench.tasks.task import Task
from keras_drill.workbench.tasks.translation.config import TranslationConfig
from keras_drill.workbench.tasks.translation.task import TranslationTask

_TASKS: dict[type[RunConfig], type[Task]] = {
    LanguageModelConfig: LanguageModelTask,
    TranslationConfig: TranslationTask,
    DialogConfig: DialogTask,
    AutoencoderConfig: AutoencoderTask,
}


def make_task(config: RunConfig) -> Task:
    """Makes the task that `config.task` names, with these options."""
    return _TASKS[type(config)](config)
