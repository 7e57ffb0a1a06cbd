"""The best model of a run, with its words."""

import dataclasses
import math
from collections.abc import Iterable, Mapping

import keras
import numpy as np
import tensorflow as tf

from keras_drill.analysis import collect_log_probs
from keras_drill.data import Tokenizer, Vocabulary
from keras_drill.decoding import (
    GreedySampler,
    Sampler,
    TemperatureSampler,
    TopKSampler,
    TopPSampler,
)
from keras_drill.export import TextModel
from keras_drill.report import RunSummary, SampleContinuation
from keras_drill.training.config import RunConfig
from keras_drill.training.history_file import read_history
from keras_drill.training.prepared_text import evaluation_batches, make_tokenizer
from keras_drill.training.run_error import RunError
from keras_drill.training.run_folder import RunFolder


@dataclasses.dataclass(frozen=True)
class LoadedRun:
    """A trained model, its options, and how it reads and writes text.

    Args:
        folder: the folder of the run.
        config: its options.
        model: its best model.
        vocabulary: its words.
        tokenizer: splits text into words.
    """

    folder: RunFolder
    config: RunConfig
    model: keras.Model
    vocabulary: Vocabulary
    tokenizer: Tokenizer

    @classmethod
    def load(cls, folder: RunFolder) -> "LoadedRun":
        """Loads the best model of a run and its vocabulary, and checks that they match."""
        config = folder.config()
        if not folder.model_file.exists():
            raise RunError(
                f"{folder.path} has no model yet: there is one after the first epoch of "
                "`keras-drill train`"
            )
        vocabulary = Vocabulary.load(folder.vocabulary_file)
        try:
            model = keras.saving.load_model(folder.model_file, compile=False)
        except (ValueError, TypeError, KeyError, OSError) as error:
            raise RunError(f"{folder.model_file} cannot be loaded: {error}") from error
        if model.head.vocabulary_size != len(vocabulary):
            raise RunError(
                f"{folder.vocabulary_file} is not the model's vocabulary: it has {len(vocabulary)} "
                f"words, and {folder.model_file.name} was trained with {model.head.vocabulary_size}"
            )
        return cls(folder, config, model, vocabulary, make_tokenizer(config))

    def log_probs(self, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Targets and their log-probabilities, in the order of the batches."""
        batches = evaluation_batches(self.config, ids, self.vocabulary)
        return collect_log_probs(self.model, batches.dataset())

    def perplexity(self, ids: np.ndarray) -> float:
        """Perplexity of a text."""
        return math.exp(-self.log_probs(ids)[1].mean(dtype=np.float64))

    def text_model(self, sampler: Sampler, seed: int, max_tokens: int) -> TextModel:
        """The model with text in and text out, as it would be exported."""
        return TextModel(
            self.model,
            self.tokenizer,
            self.vocabulary,
            sampler=sampler,
            seed=seed,
            max_new_tokens=max_tokens,
            k=min(10, len(self.vocabulary)),
        )

    def summarize(self, perplexities: Mapping[str, float]) -> RunSummary:
        """What a report says about the run, with perplexities by split."""
        history = read_history(self.folder.history_file)
        input_weights = {id(weight) for weight in self.model.backbone.trainable_variables}
        output_weights = [
            weight
            for weight in self.model.head.trainable_variables
            if id(weight) not in input_weights
        ]
        best = int(np.nanargmin(history["val_perplexity"])) + 1
        return RunSummary(
            name=self.folder.name,
            output_layer=describe_head(self.config),
            history=history,
            total_parameters=_count(self.model.trainable_variables),
            output_parameters=_count(output_weights),
            valid_perplexity=perplexities.get("valid"),
            test_perplexity=perplexities.get("test"),
            best_epoch=best,
            seconds_per_epoch=float(np.mean(history["seconds"])),
            config=self.config.to_mapping(),
            samples=self._samples(),
        )

    def _samples(self) -> tuple[SampleContinuation, ...]:
        options = self.config.samples
        if not options.prompts:
            return ()
        sampler = make_sampler(options.sampler, options.temperature, options.k, options.p)
        text_model = self.text_model(sampler, options.seed, options.max_tokens)
        added = text_model.continue_text(tf.constant(options.prompts))["continuations"].numpy()
        return tuple(
            SampleContinuation(
                prompt, continuation.decode(), f"{options.sampler}, seed {options.seed}"
            )
            for prompt, continuation in zip(options.prompts, added, strict=True)
        )


def _count(variables: Iterable[keras.Variable]) -> int:
    return sum(math.prod(variable.shape) for variable in variables)


def make_sampler(kind: str, temperature: float, k: int, p: float) -> Sampler:
    """A sampler by its name on the command line and in recipes."""
    if kind == "greedy":
        return GreedySampler()
    if kind == "temperature":
        return TemperatureSampler(temperature)
    if kind == "top-k":
        return TopKSampler(k, temperature)
    return TopPSampler(p, temperature)


def describe_head(config: RunConfig) -> str:
    """The output layer in a few words."""
    options, senses = config.head, config.senses
    drill = f"DRILL, depth {options.depth}, {options.activation}"
    per_word = f"{senses.per_word:g} senses per word" + ("" if senses.dynamic else ", fixed")
    return {
        "softmax": "softmax",
        "tied": "tied softmax",
        "bilinear": "bilinear",
        "dual": f"dual nonlinear, {options.activation}",
        "drill": drill,
        "mos": f"mixture of {options.num_mixtures} softmaxes",
        "kerbs": f"KerBS, {per_word}",
        "drill-kerbs": f"KerBS, {per_word}, over {drill}",
    }[options.kind]
