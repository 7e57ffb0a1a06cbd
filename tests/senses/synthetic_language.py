import numpy as np


class SyntheticLanguage:
    """Words whose contexts form 1, 2, 3 or 4 clusters, with a different spread each.

    The same number of words has one, two, three and four clusters. A cluster's centre is a random
    direction; its contexts are directions around it, `normalize(centre + spread * noise)` with
    noise of expected squared length 1, at one length. Words, and the clusters of a word, differ in
    how frequent they are.

    Args:
        words_per_number: Words with each number of clusters.
        dim: Width of the contexts.
        spread: Range of the clusters' spreads.
        length: Length of all contexts.
        seed: Of the language. `sample` draws by a generator of its own.

    Attributes:
        vocabulary_size: Number of words V.
        clusters_of_word: `[V]`, how many clusters every word has.
        word_of_cluster, spread: `[C]`, of every cluster.

    Example:

    >>> language = SyntheticLanguage(words_per_number=3, dim=5)
    >>> contexts, words, clusters = language.sample(7, np.random.default_rng(0))
    >>> contexts.shape, bool((language.word_of_cluster[clusters] == words).all())
    ((7, 5), True)
    """

    def __init__(self, words_per_number=15, dim=16, spread=(0.2, 1.2), length=4.0, seed=0):
        rng = np.random.default_rng(seed)
        self.clusters_of_word = rng.permutation(np.repeat([1, 2, 3, 4], words_per_number))
        self.vocabulary_size = len(self.clusters_of_word)
        self.word_of_cluster = np.repeat(np.arange(self.vocabulary_size), self.clusters_of_word)
        number = len(self.word_of_cluster)
        centres = rng.normal(size=(number, dim))
        self.centres = centres / np.linalg.norm(centres, axis=1, keepdims=True)  # [C, dim]
        self.spread = rng.uniform(*spread, number)
        self.length = length
        word = np.exp(0.5 * rng.normal(size=self.vocabulary_size))
        share = rng.uniform(0.5, 1.5, number)
        share /= np.bincount(self.word_of_cluster, share)[self.word_of_cluster]
        self.probability = (word / word.sum())[self.word_of_cluster] * share  # [C]

    def sample(self, number, rng):
        """Contexts `[N, dim]` float32, the words `[N]` that follow, and their clusters `[N]`."""
        clusters = rng.choice(len(self.probability), number, p=self.probability)
        noise = rng.normal(size=(number, self.centres.shape[1])) / self.centres.shape[1] ** 0.5
        contexts = self.centres[clusters] + self.spread[clusters, None] * noise
        contexts *= self.length / np.linalg.norm(contexts, axis=1, keepdims=True)
        words = self.word_of_cluster[clusters].astype("int32")
        return contexts.astype("float32"), words, clusters
