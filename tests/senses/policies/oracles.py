"""The papers' policies, literally and one sense at a time."""

import numpy as np


def threshold_oracle(statistics, threshold):
    """Algorithm 1, looking for every word's sense anew."""
    owner = statistics.sense_to_word.copy()
    log_prob = statistics.word_log_prob
    needy = sorted(np.flatnonzero(log_prob < threshold), key=lambda word: (log_prob[word], word))
    moves = []
    for word in needy:
        if np.sum(owner == word) >= statistics.max_senses:
            continue
        candidates = [
            sense
            for sense in range(len(owner))
            if np.sum(owner == owner[sense]) > statistics.min_senses
            and not log_prob[owner[sense]] < threshold
        ]
        if not candidates:
            break
        sense = min(candidates, key=lambda sense: (statistics.usage[sense], sense))
        owner[sense] = word
        moves.append((sense, word))
    return owner, moves


def ranking_oracle(statistics, ratio):
    """The authors' loop: one pointer walks over the senses and never goes back."""
    count, size = statistics.word_count, len(statistics.word_count)
    owner = statistics.sense_to_word.copy()
    min_count = np.sort(count)[size - int(size * 0.5)]
    rank = (count + 1e-7) / (statistics.prob_sum + 1e-7) / (count**0.5 + 1e-7)
    by_usage = np.argsort(statistics.usage, kind="stable")
    pointer, moves = 0, []
    for word in np.argsort(rank, kind="stable"):
        if np.sum(owner == word) >= statistics.max_senses or count[word] <= min_count:
            continue
        while True:
            if len(moves) >= size * ratio or pointer >= len(by_usage):
                return owner, moves
            sense = by_usage[pointer]
            pointer += 1
            if np.sum(owner == owner[sense]) > statistics.min_senses:
                owner[sense] = word
                moves.append((sense, word))
                break
    return owner, moves
