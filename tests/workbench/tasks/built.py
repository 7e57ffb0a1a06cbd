"""What a configuration builds, and where in it the value of an option is found."""

import dataclasses
import functools
from types import SimpleNamespace
from typing import Any

import keras
import numpy as np
import pytest

import keras_drill
from keras_drill.workbench.tasks.free_seeds import free_seeds
from keras_drill.workbench.tasks.make_sampler import make_sampler
from keras_drill.workbench.tasks.make_task import make_task
from keras_drill.workbench.training.build_optimizer import build_optimizer
from keras_drill.workbench.training.build_sense_reallocation import build_sense_reallocation
from keras_drill.workbench.training.training import Training


class Built:
    """What a configuration becomes, each part when it is asked for."""

    def __init__(self, config: Any, folder: Any):
        self.config, self.folder, self.task = config, folder, make_task(config)

    @functools.cached_property
    def words(self):
        config = self.config
        if config.head.kind == "described":  # the descriptions are not there
            config = config.replace({"head.kind": "tied"})
        return make_task(config).make_vocabulary(self.folder / "none")

    @property
    def tokenizer(self):
        return getattr(self.words, "target", self.words).tokenizer

    def cut(self, text):
        return [word.decode() for word in self.tokenizer.tokenize(text).numpy()]

    @functools.cached_property
    def texts(self):
        return self.task.read_texts(self.words)

    @property
    def batches(self):
        return self.task.training_batches(self.words, self.texts["train"])

    @property
    def evaluation(self):
        return self.task.evaluation_batches(self.words, self.texts["valid"])

    @functools.cached_property
    def model(self):
        """The parts of the model, without variables."""

        def parts(backbone, head, **others):
            return SimpleNamespace(backbone=backbone, head=head, **others)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(keras_drill, "LanguageModel", parts)
            patch.setattr(keras_drill, "SequenceToSequence", parts)
            if self.config.head.kind == "described":
                words = dataclasses.replace(
                    self.words, descriptions=np.zeros((len(self.words.tokens), 3), "float32")
                )
                return self.task.build_model(words)
            return self.task.build_model(self.words)

    @property
    def backbone(self):
        return self.model.backbone

    @property
    def head(self):
        return self.model.head

    @property
    def encoder(self):
        return self.head.label_encoder

    @property
    def composition(self):
        return self.head.composition

    @property
    def sampling(self):
        return self.model.scheduled_sampling

    @property
    def optimizer(self):
        return build_optimizer(self.config, self.batches)

    @property
    def rate(self):
        return self.optimizer._learning_rate

    @property
    def compiled(self):
        """What the model is compiled with, beside the optimizer."""
        told = SimpleNamespace()
        training = SimpleNamespace(
            config=self.config,
            _batches=self.batches,
            _gradient_norm=SimpleNamespace(mean=keras.metrics.Mean()),
        )
        model = SimpleNamespace(compile=lambda optimizer, **others: vars(told).update(others))
        Training._compile(training, model)
        return told

    @property
    def reallocation(self):
        return build_sense_reallocation(self.config, None, None)

    @property
    def search(self):
        return self.task.make_search()

    @property
    def limits(self):
        return self.task._limits(self.words)

    @property
    def constraint(self):
        (found,) = self.limits["constraints"]
        return found

    @property
    def sampler(self):
        options = self.config.samples
        return make_sampler(
            options.sampler, options.temperature, options.k, options.p, options.min_p
        )


def at(path: str):
    """The attribute at a path such as `"head.label_encoder.depth"` of what is built."""
    return lambda built: functools.reduce(getattr, path.split("."), built)


def number(path: str):
    """The same as a number: of a Keras variable, for example."""
    return lambda built: 0.0 if at(path)(built) is None else float(at(path)(built))


def named(path: str):
    """The name of the class, or of the function, at a path."""

    def name(built):
        found = at(path)(built)
        return getattr(found, "__name__", type(found).__name__)

    return name


def seed_of(path: str):
    """The seed of the run, where the one at a path is the first that its backbone leaves free."""

    def see(built):
        seed, found = built.config.training.seed, at(path)(built)
        return seed if found == next(free_seeds(seed, built.backbone)) else found

    return see
