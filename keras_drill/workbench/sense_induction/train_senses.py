"""A KerBS head alone, trained on contexts of words."""

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
) -> LanguageModel:
    """A model from states to words whose words have the senses that they are given.

    Args:
        space: An adapted `ContextSpace`.
        senses: Number of senses of each word, `[V]`.
        variant: As of `KernelizedBayesianSoftmax`.
        max_senses: Most senses of a word; by default the most in `senses`.
        dynamic: Whether senses may move while training.
        seed: Of the initial senses.
    """
    size, width = len(senses), int(space.axes.shape[0])
    head = KernelizedBayesianSoftmax(
        size,
        num_senses=int(np.sum(senses)),
        max_senses=max(senses) if max_senses is None else max_senses,
        variant=variant,
        dynamic_allocation=dynamic,
        embeddings_initializer=keras.initializers.RandomNormal(stddev=space.dim**-0.5, seed=seed),
    )
    head.build((None, space.dim))
    head.allocation.assign(np.repeat(np.arange(size), senses))
    states = keras.Input((width,), name="states")
    return LanguageModel(keras.Model(states, space(states)), head)


def begin_at_clusters(
    model: LanguageModel, states: np.ndarray, words: np.ndarray, seed: int = 0
) -> np.ndarray:
    """Puts the senses of each word at the means of clusters of its own contexts.

    Args:
        model: Of `make_sense_model`.
        states: `[N, D]`.
        words: `[N]`, the word of each.
        seed: Of the clusters.

    Returns:
        `[N]`, the cluster of each context among those of its word.

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
            raise RunError(f"word {word} has {here.sum()} contexts for {len(senses)} senses")
        clusters[here] = find_clusters(contexts[here], len(senses), seed)
        for place in np.unique(clusters[here]):  # equal contexts may leave others empty
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
    """Trains the head by Adam on batches of 512 contexts.

    Steps are few and small: what senses that begin at clusters gain is gained then, and larger or
    more steps fit single contexts (`docs/results/senses.md`).

    Args:
        model: Of `make_sense_model`.
        states: `[N, D]`.
        words: `[N]`, the word of each.
        steps: Number of batches.
        learning_rate: Of Adam.
        reallocation: What moves senses meanwhile, if the head's are dynamic.
        seed: Of the order of the contexts.
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
