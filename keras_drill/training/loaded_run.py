"""The best model of a run, with its words."""

import dataclasses
import itertools
import math
import os
from collections.abc import Iterable, Mapping

import keras
import numpy as np
import tensorflow as tf

from keras_drill.analysis import collect_log_probs, count_dedicated_parameters
from keras_drill.data import Corpus, EncodedText, Tokenizer, Vocabulary
from keras_drill.decoding import (
    GreedySampler,
    Sampler,
    TemperatureSampler,
    TopKSampler,
    TopPSampler,
)
from keras_drill.export import TextModel
from keras_drill.report import RunSummary, SampleContinuation
from keras_drill.training.build_model import build_model
from keras_drill.training.checkpoints import CheckpointStore
from keras_drill.training.config import RunConfig
from keras_drill.training.errors import RunError
from keras_drill.training.prepared_text import (
    evaluation_batches,
    fingerprint_of_words,
    make_tokenizer,
)
from keras_drill.training.run_folder import RunFolder, read_history
from keras_drill.training.snapshot import restore_weights


@dataclasses.dataclass(frozen=True)
class LoadedRun:
    """A trained model, its options, and how it reads and writes text.

    Args:
        folder: the folder of the run.
        config: its options.
        model: its best model, or that of a checkpoint.
        vocabulary: its words.
        tokenizer: splits text into words.
    """

    folder: RunFolder
    config: RunConfig
    model: keras.Model
    vocabulary: Vocabulary
    tokenizer: Tokenizer

    @classmethod
    def load(cls, folder: RunFolder, checkpoint: int | str | None = None) -> "LoadedRun":
        """Loads a model of a run and its vocabulary, and checks that they match.

        Args:
            folder: the folder of the run.
            checkpoint: the step whose checkpoint to load, or "last"; by default the best model is
                loaded (the mean of the last checkpoints, where the run has one).
        """
        config = folder.config()
        vocabulary = Vocabulary.load(folder.vocabulary_file)
        if checkpoint is not None:
            model = _model_of_checkpoint(folder, config, len(vocabulary), checkpoint)
        else:
            model = _best_model(folder)
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

    def text_model(
        self, sampler: Sampler, seed: int, max_tokens: int, stop_strings: tuple[str, ...] = ()
    ) -> TextModel:
        """The model with text in and text out, as it would be exported."""
        return TextModel(
            self.model,
            self.tokenizer,
            self.vocabulary,
            sampler=sampler,
            seed=seed,
            max_new_tokens=max_tokens,
            k=min(10, len(self.vocabulary)),
            stop_strings=stop_strings,
        )

    def summarize(self, perplexities: Mapping[str, float]) -> RunSummary:
        """What a report says about the run, with perplexities by split."""
        history = read_history(self.folder.history_file)
        best = int(np.nanargmin(history["val_perplexity"])) + 1
        return RunSummary(
            name=self.folder.name,
            output_layer=describe_head(self.config),
            history=history,
            total_parameters=_count(self.model.trainable_variables),
            output_parameters=count_dedicated_parameters(self.model.head, self.model.backbone),
            valid_perplexity=perplexities.get("valid"),
            test_perplexity=perplexities.get("test"),
            best_epoch=best,
            seconds_per_epoch=float(np.mean(history["seconds"])),
            max_epochs=self.config.training.epochs,
            config=self.config.to_mapping(),
            samples=self._samples(),
        )

    def _samples(self) -> tuple[SampleContinuation, ...]:
        options = self.config.samples
        if not options.prompts:
            return ()
        sampler = make_sampler(options.sampler, options.temperature, options.k, options.p)
        text_model = self.text_model(sampler, options.seed, options.max_tokens)
        texts = text_model.continue_text(tf.constant(options.prompts))["texts"].numpy()
        drawn = f"{options.sampler}, seed {options.seed}"
        return tuple(
            SampleContinuation(prompt, self._added(prompt, text.decode()), drawn)
            for prompt, text in zip(options.prompts, texts, strict=True)
        )

    def _added(self, prompt: str, text: str) -> str:
        """What a text has after its prompt, with the space between them where there is one."""
        lines = self.tokenizer.detokenize(self.tokenizer.tokenize(prompt.split("\n"))).numpy()
        read = b"\n".join(lines).decode()  # the prompt as the tokenizer writes it
        same = itertools.takewhile(lambda pair: pair[0] == pair[1], zip(read, text, strict=False))
        return text[len(list(same)) :]


def _best_model(folder: RunFolder) -> keras.Model:
    file = folder.model_file
    if folder.averaged_model_file.exists():
        file = folder.averaged_model_file
    if not file.exists():
        raise RunError(
            f"{folder.path} has no model yet: there is one after the first epoch of "
            "`keras-drill train`"
        )
    try:
        return keras.saving.load_model(file, compile=False)
    # Zip, HDF5, JSON and Keras each have their own errors for what they did not write.
    except Exception as error:
        raise RunError(
            f"{file} cannot be loaded: {(str(error).splitlines() or [type(error).__name__])[0]} "
            "(training on, or a checkpoint of the run, can take its place)"
        ) from error


def _model_of_checkpoint(
    folder: RunFolder, config: RunConfig, vocabulary_size: int, checkpoint: int | str
) -> keras.Model:
    store = CheckpointStore(folder.checkpoints)
    if checkpoint == "last":
        if not store.steps():
            raise RunError(f"{folder.path} has no checkpoint yet")
        checkpoint = store.steps()[-1]
    arrays, state = store.load(checkpoint)
    fingerprint = fingerprint_of_words(Vocabulary.load(folder.vocabulary_file).tokens)
    if state["fingerprints"]["vocabulary"] != fingerprint:
        raise RunError(
            f"{folder.vocabulary_file} is not the vocabulary that checkpoint {checkpoint} was made "
            "with"
        )
    model = build_model(config, vocabulary_size)
    restore_weights(model, arrays)
    averaged = int(arrays.get("averaging/num_averaged", 0))
    if averaged and not arrays["averaging/average_in_model"]:  # in the middle of an epoch
        for number, variable in enumerate(model.trainable_variables):
            variable.assign(arrays[f"averaging/sum_{number}"] / averaged)
    model.backbone.reset_state()
    return model


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


def judged_splits(run: LoadedRun, data: str | os.PathLike | None = None) -> dict[str, np.ndarray]:
    """Token ids of the validation and the test text, as far as there are both, in this order.

    Args:
        run: The run, whose words are used.
        data: The text; `None` is that of the run.
    """
    corpus = Corpus(run.config.data.path if data is None else data)
    splits = {name: lines for name, lines in corpus.splits.items() if name != "train"}
    if not splits:
        raise RunError(f"{corpus.path} has no validation or test text")
    return {
        name: EncodedText.encode(lines, run.tokenizer, run.vocabulary).ids
        for name, lines in splits.items()
    }
