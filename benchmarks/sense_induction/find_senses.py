"""Finds the senses of all words by one method and seed."""

import copy

import keras
import numpy as np
from sklearn.linear_model import LogisticRegression

from benchmarks.sense_induction.count_senses import count_by_head, count_by_mixture
from benchmarks.sense_induction.data import Word
from benchmarks.sense_induction.methods import POLICIES, Method
from benchmarks.sense_induction.read_states import States
from keras_drill import LanguageModel, SenseReallocation
from keras_drill.layers import ContextSpace
from keras_drill.senses.policies import AllocationPolicy, SenseStatistics
from keras_drill.workbench.sense_induction import (
    begin_at_clusters,
    find_clusters,
    make_sense_model,
    train_senses,
)
from tests.senses.certain_sense_policy import CertainSensePolicy

DIM = 128
MOST = 400  # contexts of a word that a head is trained on: one word is not to outweigh all others
STEPS = 400
STATES = {"word": 0, "mean": 1}


class Induction:
    """Contexts of all words as a method has them; the words of the study come first.

    Attributes:
        found: Sense of each test context, by word.
        senses: How many senses or clusters each word was given.
        facts: Figures of the model, such as senses a word.
    """

    def __init__(self, method: Method, states: States, seed: int):
        self.method = method
        self.seed = seed
        self.studied = states.words if method.read == "masked" else states.nouns
        self.states = [
            states.of(word, method.read)[:, STATES[method.state]] for word in self.studied
        ]
        others = list(states.other.values()) if method.read == "masked" else []
        training = [
            some[: word.training] for some, word in zip(self.states, self.studied, strict=True)
        ]
        training += [some[:, STATES[method.state]] for some in others]
        rng = np.random.default_rng(0)
        training = [some[rng.permutation(len(some))[:MOST]] for some in training]
        if method.read == "by word":
            means = [some.mean(axis=0) for some in training]
            training = [some - mean for some, mean in zip(training, means, strict=True)]
            self.states = [some - mean for some, mean in zip(self.states, means, strict=False)]
        self.training = np.concatenate(training)
        self.words = np.repeat(np.arange(len(training)), list(map(len, training))).astype("int32")
        self.space = ContextSpace(min(DIM, states.encoder.width), method.whiten, method.length)
        self.space.adapt(self.training)
        self.facts: dict[str, float] = {}
        self.senses: dict[str, int] = {}
        self.found = {
            "kerbs": self._kerbs,
            "k-means": self._k_means,
            "supervised": self._supervised,
        }[method.kind]()

    def contexts(self, word: int) -> tuple[np.ndarray, np.ndarray]:
        """Contexts for training and for testing."""
        return np.split(self._contexts(self.states[word]), [self.studied[word].training])

    def _contexts(self, states: np.ndarray) -> np.ndarray:
        return keras.ops.convert_to_numpy(self.space(states))

    def _senses(self, word: Word) -> int:
        return len(set(word.gold)) if self.method.senses == "gold" else int(self.method.senses)

    def _k_means(self) -> dict[str, np.ndarray]:
        found = {}
        for number, word in enumerate(self.studied):
            training, test = self.contexts(number)
            if self.method.senses == "held out":
                senses = count_by_mixture(training, self.seed)
            else:
                senses = self._senses(word)
            self.senses[word.name] = senses
            clusters = find_clusters(training, senses, self.seed)
            means = np.stack(
                [training[clusters == c].mean(axis=0) for c in range(clusters.max() + 1)]
            )
            distances = np.square(means).sum(axis=1) - 2 * test @ means.T
            found[word.name] = distances.argmin(axis=1)
        return found

    def _supervised(self) -> dict[str, np.ndarray]:
        found = {}
        for number, word in enumerate(self.studied):
            training, test = self.contexts(number)
            model = LogisticRegression(max_iter=300).fit(training, word.gold[: word.training])
            found[word.name] = model.predict(test)
        return found

    def _kerbs(self) -> dict[str, np.ndarray]:
        method, size = self.method, self.words.max() + 1
        if method.senses == "held out":
            contexts = self._contexts(self.training)
            found = count_by_head(self._head, contexts, self.words, len(self.studied))
            senses = found + [1] * (size - len(found))
        elif isinstance(method.senses, float) and method.senses % 1:  # of all words in the mean
            senses = [int(method.senses) + (word % 2) for word in range(size)]
        else:
            senses = [1] * size
            senses[: len(self.studied)] = map(self._senses, self.studied)
        return self._posteriors(self._head(senses))

    def _head(self, senses: list[int], seen: np.ndarray | slice = slice(None)) -> LanguageModel:
        """A head with these senses, trained on the contexts that are `seen`."""
        method, training, words = self.method, self.training[seen], self.words[seen]
        keras.utils.set_random_seed(self.seed)
        most = max(4, *senses)
        model = make_sense_model(
            self.space,
            senses,
            method.variant,
            most,
            bool(method.policy),
            self.seed,
            method.usage,
        )
        if method.start == "clusters":
            begin_at_clusters(model, training, words, self.seed)
        reallocation = None
        if method.policy:
            policy = copy.copy(POLICIES[method.policy])
            contexts = self._contexts(training)
            if isinstance(policy, CertainSensePolicy):
                policy = Observed(policy, model.head, contexts, words)
            if method.moved == "centroids":
                reallocation = MovedToCentroids(50, policy, 0.05, seed=self.seed)
                reallocation.contexts, reallocation.words = contexts, words
            else:
                reallocation = SenseReallocation(50, policy, 0.05, method.moved, self.seed)
        train_senses(model, training, words, STEPS, method.rate, reallocation, self.seed)
        return model

    def _posteriors(self, model) -> dict[str, np.ndarray]:
        found, log_probs = {}, []
        table = keras.ops.convert_to_numpy(model.head.allocation.senses_of_word)
        for number, word in enumerate(self.studied):
            hidden = self.contexts(number)[1]
            ids = np.full(len(hidden), number)
            posteriors = model.head.sense_posteriors(hidden, ids)
            found[word.name] = keras.ops.convert_to_numpy(posteriors).argmax(axis=-1)
            log_probs.append(float(keras.ops.mean(model.head.log_prob(hidden, ids))))
        self.facts["test log p"] = float(np.mean(log_probs))
        counts = (table[: len(self.studied)] >= 0).sum(axis=1)
        self.senses = {w.name: int(n) for w, n in zip(self.studied, counts, strict=True)}
        self.facts["senses"] = float(counts.mean())
        return found


class Observed(AllocationPolicy):
    """A policy that sees all training contexts before it decides."""

    def __init__(self, policy: CertainSensePolicy, *seen):
        self.policy = policy
        self.seen = seen

    def moves(self, statistics: SenseStatistics) -> tuple[np.ndarray, np.ndarray]:
        self.policy.observe(*self.seen, kept=0.0)
        return self.policy.moves(statistics)


class MovedToCentroids(SenseReallocation):
    """Begins each moved sense at the cluster of its new word that is farthest from its others."""

    contexts: np.ndarray  # [N, d]
    words: np.ndarray  # [N]

    def on_train_batch_end(self, batch, logs=None):
        before = len(self.history)
        super().on_train_batch_end(batch, logs)
        head = self._reallocator.head
        for record in self.history[before:]:
            labels = keras.ops.convert_to_numpy(head.label_embeddings).copy()
            senses_of_word = keras.ops.convert_to_numpy(head.allocation.senses_of_word)
            for word in np.unique(record["to_words"]):
                senses = senses_of_word[word][senses_of_word[word] >= 0]
                contexts = self.contexts[self.words == word]
                clusters = find_clusters(contexts, len(senses), self.seed)
                means = np.stack(
                    [contexts[clusters == c].mean(axis=0) for c in np.unique(clusters)]
                )
                means /= np.linalg.norm(means, axis=1, keepdims=True)
                settled = [sense for sense in senses if sense not in record["senses"]]
                for sense in np.setdiff1d(senses, settled):
                    taken = labels[settled] / np.linalg.norm(labels[settled], axis=1, keepdims=True)
                    labels[sense] = means[(means @ taken.T).max(axis=1, initial=-1.0).argmin()]
                    settled.append(sense)
            head.label_embeddings.assign(labels)
