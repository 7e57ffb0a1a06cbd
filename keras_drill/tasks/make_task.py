"""The list of tasks."""

from keras_drill.tasks.autoencoder.config import AutoencoderConfig
from keras_drill.tasks.autoencoder.task import AutoencoderTask
from keras_drill.tasks.config import RunConfig
from keras_drill.tasks.dialog.config import DialogConfig
from keras_drill.tasks.dialog.task import DialogTask
from keras_drill.tasks.language_model.config import LanguageModelConfig
from keras_drill.tasks.language_model.task import LanguageModelTask
from keras_drill.tasks.task import Task
from keras_drill.tasks.translation.config import TranslationConfig
from keras_drill.tasks.translation.task import TranslationTask

_TASKS: dict[type[RunConfig], type[Task]] = {
    LanguageModelConfig: LanguageModelTask,
    TranslationConfig: TranslationTask,
    DialogConfig: DialogTask,
    AutoencoderConfig: AutoencoderTask,
}


def make_task(config: RunConfig) -> Task:
    """The task of a run with these options."""
    return _TASKS[type(config)](config)
