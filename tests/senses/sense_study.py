"""Trains a KerBS head on a synthetic language, and holds what it found against the truth."""

import keras
import numpy as np
import tensorflow as tf
from scipy.stats import spearmanr
from sklearn.metrics import v_measure_score

import keras_drill
from tests.senses.certain_sense_policy import CertainSensePolicy

BATCH, STEPS, INTERVAL = 256, 4000, 100
LEARNING_RATE, MOMENTUM = 0.01, 0.005


def train(
    language,
    policy,
    senses_per_word=2.5,
    seed=0,
    steps=STEPS,
    momentum=MOMENTUM,
    moved="keep",
    usage_by="posterior",
):
    """A head trained on `steps` batches of the language, reallocating by `policy` (or not)."""
    keras.utils.set_random_seed(seed)
    size = language.vocabulary_size
    head = keras_drill.KernelizedBayesianSoftmax(
        size, num_senses=int(senses_per_word * size), usage_by=usage_by
    )
    head.build((None, language.centres.shape[1]))
    optimizer = keras.optimizers.Adam(LEARNING_RATE)
    optimizer.build(head.trainable_variables)

    @tf.function
    def interval(contexts, words):
        for batch in tf.range(INTERVAL):
            with tf.GradientTape() as tape:
                loss = head.loss(contexts[batch], words[batch])
            gradients = tape.gradient(loss, [v.value for v in head.trainable_variables])
            optimizer.apply(gradients, head.trainable_variables)

    reallocator = None
    if policy is not None:
        reallocator = keras_drill.SenseReallocator(
            head, optimizer, INTERVAL, policy, momentum, moved
        )
    rng = np.random.default_rng([seed, 1])
    for _ in range(steps // INTERVAL):
        contexts, words, _ = language.sample(INTERVAL * BATCH, rng)
        interval(contexts.reshape(INTERVAL, BATCH, -1), words.reshape(INTERVAL, BATCH))
        if isinstance(policy, CertainSensePolicy):
            policy.observe(head, contexts, words, (1 - momentum) ** INTERVAL)
        if reallocator is not None:
            reallocator.step()
    return head


def figures(language, head, tokens=20000) -> dict[str, float]:
    """What became of the senses, on fresh tokens.

    - `many`: share of the words with 3 and 4 clusters that have more than one sense.
    - `one`: share of the words with 1 cluster that have exactly one sense.
    - `one_in_use`: share of them with one sense that takes 95 % of their tokens.
    - `exact`: share of all words with as many senses as clusters.
    - `v_measure`: of the most probable sense against the cluster, the mean over words with several
      clusters.
    - `theta`: Spearman correlation of a cluster's spread with the θ of the sense that takes most of
      its tokens.
    - `log_prob`: mean log-probability of a word.
    """
    contexts, words, clusters = language.sample(tokens, np.random.default_rng(0))
    posteriors = keras.ops.convert_to_numpy(head.sense_posteriors(contexts, words))
    table = keras.ops.convert_to_numpy(head.allocation.senses_of_word)
    senses = table[words, posteriors.argmax(-1)]
    true, found = language.clusters_of_word, np.sum(table >= 0, axis=1)

    by_cluster = np.zeros((len(language.spread), head.num_senses))
    np.add.at(by_cluster, (clusters, senses), 1)
    theta = keras.ops.convert_to_numpy(head.theta)[by_cluster.argmax(1)]
    by_word = np.zeros((len(true), head.num_senses))
    np.add.at(by_word, (words, senses), 1)
    largest = by_word.max(1) / by_word.sum(1)
    return {
        "many": np.mean(found[true >= 3] > 1),
        "one": np.mean(found[true == 1] == 1),
        "one_in_use": np.mean(largest[true == 1] >= 0.95),
        "exact": np.mean(found == true),
        "v_measure": np.mean(
            [
                v_measure_score(clusters[words == word], senses[words == word])
                for word in np.flatnonzero(true > 1)
            ]
        ),
        "theta": spearmanr(language.spread, theta).statistic,
        "log_prob": float(keras.ops.mean(head.log_prob(contexts, words))),
    }
