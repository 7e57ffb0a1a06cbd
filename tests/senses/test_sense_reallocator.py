import keras
import numpy as np
import pytest
from keras import ops

import keras_drill
from keras_drill.senses import SenseReallocator
from keras_drill.senses.policies import AllocationPolicy, RankingPolicy, ThresholdPolicy

V, M, D, N = 7, 17, 11, 23


class FixedMoves(AllocationPolicy):
    """The same moves, whatever the statistics."""

    def __init__(self, senses, words):
        self.senses, self.words = np.array(senses, int), np.array(words, int)

    def moves(self, statistics):
        self.statistics = statistics
        return self.senses, self.words


def make_head(**options):
    keras.utils.set_random_seed(3)
    head = keras_drill.KernelizedBayesianSoftmax(V, **{"num_senses": M, **options})
    head.build((None, D))
    return head


def tied_head():
    embedding = keras_drill.SenseEmbedding(V, D, M)
    return make_head(embedding=embedding)


HEADS = {
    "own": make_head,
    "tied": tied_head,
    "biased": lambda: make_head(use_bias=True),
    "reference": lambda: make_head(variant="reference"),
    "no kernel": lambda: make_head(variant="inner_product"),
    "drill": lambda: make_head(
        embedding_dim=D, label_encoder=keras_drill.ResidualLabelEncoder(depth=2)
    ),
}


def train_a_little(head, optimizer=None, steps=3, seed=5):
    """Fills slots and statistics."""
    rng = np.random.default_rng(seed)
    if optimizer is not None:
        optimizer.build(head.trainable_variables)
    for _ in range(steps):
        # As `head.loss` does in training.
        targets = rng.integers(0, V, N)
        _, mask = values(head.allocation.columns(targets))
        posteriors = rng.random(mask.shape) * mask
        head.allocation.record(
            targets, -4 * rng.random(N), posteriors / posteriors.sum(-1, keepdims=True)
        )
        if optimizer is not None:
            gradients = [ops.ones_like(ops.convert_to_tensor(v)) for v in head.trainable_variables]
            optimizer.apply(gradients)


def values(variables):
    return [np.array(ops.convert_to_numpy(variable)) for variable in variables]


def test_running_averages_are_those_of_single_updates():
    head, momentum, interval = make_head(), 0.3, 3
    reallocator = SenseReallocator(
        head, interval=interval, policy=FixedMoves([], []), momentum=momentum
    )
    allocation = head.allocation
    log_prob, usage = (values([v])[0] for v in (allocation.word_log_prob, allocation.usage))
    for interval_number in range(1, 3):
        train_a_little(head, steps=interval)
        count, log_prob_sum, usage_sum = values(
            [allocation.word_count, allocation.log_prob_sum, allocation.usage_sum]
        )
        assert count.sum() == interval * N
        for word in range(V):
            for _ in range(int(count[word])):
                mean = log_prob_sum[word] / count[word]
                log_prob[word] = (1 - momentum) * log_prob[word] + momentum * mean
        for _ in range(interval):
            usage = (1 - momentum) * usage + momentum * usage_sum / count.sum()
        record = reallocator.reallocate(interval_number * interval)
        assert record["tokens"] == interval * N
        found = values([allocation.word_log_prob, allocation.usage])
        np.testing.assert_allclose(found[0], log_prob, rtol=1e-5)
        np.testing.assert_allclose(found[1], usage, rtol=1e-5)
        np.testing.assert_allclose(found[1].sum(), 1, rtol=1e-5)
        assert not any(total.any() for total in values(reallocator._sums))
    statistics = reallocator.policy.statistics
    np.testing.assert_array_equal(statistics.word_count, count)
    np.testing.assert_array_equal(statistics.sense_to_word, np.arange(M) % V)


@pytest.mark.parametrize("moved_embedding", ["keep", "near"])
@pytest.mark.parametrize("kind", HEADS)
def test_moved_senses_start_anew_and_others_go_on(kind, moved_embedding):
    head, optimizer = HEADS[kind](), keras.optimizers.Adagrad(0.1, initial_accumulator_value=0.3)
    train_a_little(head, optimizer)
    senses, words = [8, 2], [3, 4]
    moved = np.isin(np.arange(M), senses)
    reallocator = SenseReallocator(
        head, optimizer, policy=FixedMoves(senses, words), moved_embedding=moved_embedding
    )
    table, *others = values([head.embeddings, *head.score_parameters])
    slots = dict(zip(map(id, head.trainable_variables), optimizer._accumulators, strict=True))
    accumulators = {key: values([slot])[0] for key, slot in slots.items()}
    record = reallocator.reallocate()

    allocation = head.allocation
    expected = np.arange(M) % V
    expected[senses] = words
    np.testing.assert_array_equal(ops.convert_to_numpy(allocation.sense_to_word), expected)
    columns, mask = values(allocation.columns(np.arange(V)))
    for word in range(V):
        assert sorted(columns[word][mask[word]]) == np.flatnonzero(expected == word).tolist()
    assert record["moves"] == 2 and record["iteration"] == 3
    assert record["senses"].tolist() == senses and record["to_words"].tolist() == words
    assert record["from_words"].tolist() == [1, 2]
    assert (
        record["words_by_senses"].tolist() == np.bincount(np.bincount(expected), None, 5).tolist()
    )

    usage = reallocator.policy.statistics.usage
    found = values([allocation.usage])[0]
    np.testing.assert_allclose(found[moved], usage.mean(), rtol=1e-6)
    np.testing.assert_array_equal(found[~moved], usage[~moved])
    for parameter, before in zip(head.score_parameters, others, strict=True):
        after = values([parameter])[0]
        initial = {"reference": 0.0}.get(kind, np.float32(1e-8))
        assert (after[moved] == initial).all() and (before[moved] != initial).all()
        np.testing.assert_array_equal(after[~moved], before[~moved])
    after = values([head.embeddings])[0]
    np.testing.assert_array_equal(after[~moved], table[~moved])
    if moved_embedding == "keep":
        np.testing.assert_array_equal(after[moved], table[moved])
    else:
        for sense, word in zip(senses, words, strict=True):
            own = np.flatnonzero(np.arange(M) % V == word)
            source = table[own[usage[own].argmax()]]
            distance = np.linalg.norm(after[sense] - source) / np.linalg.norm(source)
            np.testing.assert_allclose(distance, 0.1, rtol=1e-4)
    for variable in head.trainable_variables:
        slot, before = values([slots[id(variable)]])[0], accumulators[id(variable)]
        if len(slot) == M:
            assert (slot[moved] == np.float32(0.3)).all() and (before[moved] > 0.4).all()
            np.testing.assert_array_equal(slot[~moved], before[~moved])
        else:
            np.testing.assert_array_equal(slot, before)


def test_a_restarted_sense_takes_the_bias_of_its_neighbour():
    head = make_head(use_bias=True)
    head.bias.assign(np.arange(M, dtype="float32"))
    train_a_little(head)
    policy = FixedMoves([8], [3])
    SenseReallocator(head, policy=policy, moved_embedding="near").reallocate(1)
    own = np.array([3, 10])
    assert float(head.bias[8]) == own[policy.statistics.usage[own].argmax()]


@pytest.mark.parametrize("policy", [ThresholdPolicy(-1.5), RankingPolicy(0.5)])
def test_moves_are_deterministic_and_keep_words_within_their_limits(policy):
    results = []
    for _ in range(2):
        head = make_head(max_senses=3)
        reallocator = SenseReallocator(head, policy=policy, moved_embedding="near", seed=13)
        for iteration in range(1, 8):
            train_a_little(head, steps=1, seed=iteration)
            reallocator.reallocate(iteration)
            counts = np.bincount(ops.convert_to_numpy(head.allocation.sense_to_word), minlength=V)
            assert counts.min() >= 1 and counts.max() <= 3
        assert sum(record["moves"] for record in reallocator.history) > 2
        results.append(values(head.variables))
    for a, b in zip(*results, strict=True):
        np.testing.assert_array_equal(a, b)


def test_the_seed_and_the_iteration_change_the_noise():
    tables = []
    for seed, iteration in [(1, 1), (2, 1), (1, 2), (1, 1)]:
        head = make_head()
        train_a_little(head)
        SenseReallocator(
            head, policy=FixedMoves([8], [3]), moved_embedding="near", seed=seed
        ).reallocate(iteration)
        tables.append(values([head.embeddings])[0])
    assert not any((tables[0] == table).all() for table in tables[1:3])
    np.testing.assert_array_equal(tables[0], tables[3])


@pytest.mark.parametrize(
    "iterations, acts_at",
    [
        (range(1, 12), [5, 10]),
        (range(3, 29, 3), [6, 12, 15, 21, 27]),  # `steps_per_execution=3`
        ([4, 4, 5, 5, 6, 9, 10, 10], [5, 10]),  # gradients are accumulated
        ([7, 9, 27, 28], [27]),
        ([10, 11], [10]),  # resumed
        ([11, 12], []),
    ],
)
def test_steps_that_end_an_interval(iterations, acts_at):
    head = make_head()
    reallocator = SenseReallocator(head, interval=5, policy=FixedMoves([], []))
    for iteration in iterations:
        train_a_little(head, steps=1)
        record = reallocator.step(iteration)
        assert record is None or record is reallocator.history[-1]
    assert [record["iteration"] for record in reallocator.history] == list(acts_at)


def test_an_interval_without_tokens_is_said_and_moves_nothing():
    head = make_head()
    before = values(head.variables)
    reallocator = SenseReallocator(head, policy=FixedMoves([8], [3]))
    with pytest.warns(UserWarning, match="No tokens were counted"):
        assert reallocator.reallocate(1)["moves"] == 0
    for a, b in zip(before, values(head.variables), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"interval": 0}, "`interval` must be a positive number of steps. Received: interval=0"),
        ({"interval": 2.5}, "`interval` must be"),
        ({"momentum": 0}, r"`momentum` must be in \(0, 1\]. Received: momentum=0"),
        ({"momentum": 1.1}, "`momentum` must be"),
        ({"seed": None}, "`seed` must be a non-negative integer. Received: seed=None"),
        ({"moved_embedding": "new"}, "`moved_embedding` must be one of .* Received: .*'new'"),
        ({"policy": "ranking"}, "`policy` must be a .*AllocationPolicy. Received: .*'ranking'"),
    ],
)
def test_nonsense_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        SenseReallocator(make_head(), **options)
    with pytest.raises(ValueError, match=message):
        keras_drill.SenseReallocation(**options)


def test_senses_that_cannot_move_are_refused():
    with pytest.raises(ValueError, match=r"`dynamic_allocation=True` .* Received: head="):
        SenseReallocator(make_head(dynamic_allocation=False))
    with pytest.raises(ValueError, match=r"several senses per word, .* Received: head="):
        SenseReallocator(keras_drill.OutputLayer(V))
    with pytest.raises(ValueError, match=r"`num_senses` .* Received: num_senses=5"):
        make_head(num_senses=5)
    with pytest.raises(ValueError, match=r"`iteration` must be .* Received: iteration=None"):
        SenseReallocator(make_head()).step()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({3: -1}, r"words in \[0, 7\). Received: words from -1 to 6"),
        ({3: 7}, r"words in \[0, 7\). Received: words from 0 to 7"),
        ({0: 1, 7: 1, 14: 1}, "1 to 4 senses. Received: 0 senses for word 0"),
        ({2: 0, 3: 0}, "1 to 4 senses. Received: 5 senses for word 0"),
    ],
)
def test_an_allocation_that_is_none_is_refused(changed, message):
    allocation = make_head().allocation
    words = np.arange(M) % V
    for sense, word in changed.items():
        words[sense] = word
    with pytest.raises(ValueError, match=message):
        allocation.assign(words)
    with pytest.raises(ValueError, match=r"must have shape \(17,\). Received: .* of shape \(16,\)"):
        allocation.assign(words[1:])


def test_a_frozen_head_keeps_its_senses():
    head = make_head()
    train_a_little(head)
    head.trainable = False
    before = values(head.variables)
    reallocator = SenseReallocator(head, policy=FixedMoves([8], [3]))
    assert reallocator.reallocate(1) is None and reallocator.history == []
    for a, b in zip(before, values(head.variables), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("changed", [{"num_senses": M - 1}, {"max_senses": 5}, {"dynamic": False}])
def test_an_embedding_with_other_senses_is_not_shared(changed):
    arguments = {"vocabulary_size": V, "num_senses": M, "max_senses": 4, "dynamic": True}
    composition = keras_drill.compositions.MultiSense(**{**arguments, **changed})
    with pytest.raises(ValueError, match="`composition` must be `MultiSense` with the senses of"):
        keras_drill.OutputLayer(
            V, keras_drill.SenseEmbedding(V, D, M), composition=composition,
            score=keras_drill.scores.KerBSKernel(),
        )  # fmt: skip
