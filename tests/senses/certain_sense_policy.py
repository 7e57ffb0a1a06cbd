import dataclasses

import keras
import numpy as np

from keras_drill.senses.policies import IdleSensePolicy


class CertainSensePolicy(IdleSensePolicy):
    """Takes senses that share their contexts with others of their word, too.

        certainty_m = exp(Σ q_m log q_m / Σ q_m)

    is what the posterior q_m comes to where sense m is used: 1 if nothing else is meant there, 1/2
    for each of two senses that share a cluster evenly. (Σ_m p_m (log certainty_m − log p_m), with
    p_m the sense's share, is the mutual information of sense and context.) Of the senses of a word
    that are not certain the least used one counts as idle, beside those that are.

    What the sums need a head would have to gather while training; here `observe` is given the
    interval's tokens, so that the policy can be evaluated before it has a place in the package.

    Args:
        idle_share: As of `IdleSensePolicy`.
        certainty: What a sense must have.
    """

    def __init__(self, idle_share=0.1, certainty=0.6):
        super().__init__(idle_share)
        self.certainty = certainty
        self.sums = None  # [2, M], running averages of q and q log q

    def observe(self, head, contexts, words, kept):
        """Takes note of an interval's tokens; `kept` is what the averages keep of themselves."""
        posteriors = keras.ops.convert_to_numpy(head.sense_posteriors(contexts, words))  # [N, S]
        table = keras.ops.convert_to_numpy(head.allocation.senses_of_word)[words]
        senses, q = table[table >= 0], posteriors[table >= 0].astype("float64")
        sums = np.stack(
            [
                np.bincount(senses, values, head.num_senses) / len(words)
                for values in (q, q * np.log(np.maximum(q, 1e-30)))
            ]
        )
        if self.sums is None:  # as the head's usage begins
            self.sums = np.array([[1 / head.num_senses], [0.0]]) + 0 * sums
        self.sums = kept * self.sums + (1 - kept) * sums

    def moves(self, statistics):
        usage = statistics.usage.astype("float64")
        used, logs = self.sums
        shared = np.flatnonzero(np.exp(logs / np.maximum(used, 1e-30)) < self.certainty)
        shared = shared[np.argsort(usage[shared], kind="stable")]
        _, first = np.unique(statistics.sense_to_word[shared], return_index=True)
        usage[shared[first]] *= 1e-3  # idle
        senses, words = super().moves(dataclasses.replace(statistics, usage=usage))
        self.sums[:, senses] = [[used.mean()], [0.0]]  # moved senses start anew
        return senses, words
