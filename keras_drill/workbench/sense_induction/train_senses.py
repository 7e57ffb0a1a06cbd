"""Trains a KerBS output layer on encoder states of words' contexts."""

from collections.abc import Sequence

import keras
import numpy as np

from keras_drill.callbacks import SenseReallocation
from keras_drill.layers import ContextSpace
from keras_drill.models.language_model import LanguageModel
from keras_drill.ready_made import KernelizedBayesianSoftmax
from keras_drill.workbench.sense_induction.clusters import find_clusters
from keras_drill.workbench.tasks.errors import RunError

_BATCH = 512


def make_sense_model(
    space: ContextSpace,
    senses: Sequence[int],
    variant: str = "paper",
    max_senses: int | None = None,
    dynamic: bool = False,
    seed: int = 0,
    usage_by: str = "posterior",
) -> LanguageModel:
    """Makes a model that predicts words from an encoder's states.

    Args:
        space: An adapted `ContextSpace`.
        senses: Number of senses of each word, `[V]`.
        variant: Variant of `KernelizedBayesianSoftmax`.
        max_senses: Maximum number of senses of a word; by default the maximum of `senses`.
        dynamic: Whether senses may move between words during training.
        seed: Seed of the initial senses.
        usage_by: As in `KernelizedBayesianSoftmax`.
    """
    size, width = len(senses), int(space.axes.shape[0])
    head = KernelizedBayesianSoftmax(
        size,
        num_senses=int(np.sum(senses)),
        max_senses=max(senses) if max_senses is None else max_senses,
        variant=variant,
        dynamic_allocation=dynamic,
        usage_by=usage_by,
        embeddings_initializer=keras.initializers.RandomNormal(stddev=space.dim**-0.5, seed=seed),
    )
    head.build((None, space.dim))
    head.allocation.assign(np.repeat(np.arange(size), senses))
    states = keras.Input((width,), name="states")
    return LanguageModel(keras.Model(states, space(states)), head)


def begin_at_clusters(
    model: LanguageModel, states: np.ndarray, words: np.ndarray, seed: int = 0
) -> np.ndarray:
    """Initializes the senses of each word with the means of clusters of the word's contexts.

    Args:
        model: A model from `make_sense_model`.
        states: The encoder's states of N contexts, `[N, D]`.
        words: Id of the word of each context, `[N]`.
        seed: Seed of the clusters.

    Returns:
        Number of the cluster of each context among the clusters of its word, `[N]`.

    Raises:
        RunError: A word has fewer contexts than senses.
    """
    contexts = keras.ops.convert_to_numpy(model.backbone(states))
    table = keras.ops.convert_to_numpy(model.head.allocation.senses_of_word)
    labels = keras.ops.convert_to_numpy(model.head.label_embeddings).copy()
    clusters = np.zeros(len(words), int)
    for word, senses in enumerate(table):
        senses, here = senses[senses >= 0], words == word
        if here.sum() < len(senses):
            raise RunError(
                f"each word must have at least as many contexts as senses, {len(senses)}. "
                f"Received: {here.sum()} contexts of the word with id {word}"
            )
        clusters[here] = find_clusters(contexts[here], len(senses), seed)
        for place in np.unique(clusters[here]):  # equal contexts may leave clusters empty
            mean = contexts[here][clusters[here] == place].mean(axis=0)
            labels[senses[place]] = mean / max(np.linalg.norm(mean), 1e-6)
    model.head.label_embeddings.assign(labels)
    return clusters


def train_senses(
    model: LanguageModel,
    states: np.ndarray,
    words: np.ndarray,
    steps: int = 400,
    learning_rate: float = 0.001,
    reallocation: SenseReallocation | None = None,
    seed: int = 0,
) -> None:
    """Trains the output layer with Adam on batches of 512 contexts.

    By default, the steps are few and small, which suits senses that begin at clusters. More or
    larger steps overfit to single contexts (`docs/results/senses.md`).

    Args:
        model: A model from `make_sense_model`.
        states: The encoder's states of N contexts, `[N, D]`.
        words: Id of the word of each context, `[N]`.
        steps: Number of batches.
        learning_rate: Learning rate of Adam.
        reallocation: Callback that moves senses between words, for models with dynamic senses.
        seed: Seed of the order of the contexts.
    """
    rng = np.random.default_rng(seed)
    chosen = np.concatenate(
        [rng.permutation(len(words)) for _ in range(-(-steps * _BATCH // len(words)))]
    )[: steps * _BATCH]
    model.compile(keras.optimizers.Adam(learning_rate))
    model.fit(
        states[chosen],
        words[chosen],
        batch_size=_BATCH,
        shuffle=False,
        verbose=0,
        callbacks=[] if reallocation is None else [reallocation],
    )
