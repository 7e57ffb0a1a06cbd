"""What devices send each other in a training step, read from the compiled program."""

import jax
import numpy as np
import pytest
from jax import export

from benchmarks.collectives import read_collectives
from benchmarks.sharded_heads import HEADS, compile_step, planned_bytes, traced_step

pytestmark = pytest.mark.slow

V, D, B, T = 1024, 16, 8, 6
N, M = B * T, 2 * V
MESHES = [(1, 8), (2, 4)]


def formula(name, mesh) -> tuple[int, int]:
    """Numbers that each device has a part in the sum of, over the axis of labels and of tokens."""
    tokens, shards = N // mesh[0], mesh[1]
    contexts = 3 if name == "mixture" else 1
    columns = 4 if name == "kerbs" else 1
    labels = M if name == "kerbs" else V
    # A largest score, a sum of exponentials, the targets' scores, the gradient; words looked up.
    by_labels = tokens * contexts * (1 + 1 + columns + D) + tokens * D
    weights = {  # of the label network, whose gradient each device has for its labels
        "dual": D * D + D,
        "drill": 4 * (D * D + D),
    }
    by_labels += weights.get(name, 0)
    # Labels and biases, or kernel parameters; embeddings that are looked up, a dense layer.
    by_tokens = labels // shards * (D + 1) + V // shards * D + D * D + D
    besides = {
        "bilinear": D * D,
        "dual": D * D + D,
        "mixture": D * 3 + D * 3 * D + 3 * D,
        "kerbs": 3 * V + M,  # statistics of words and senses, which each device keeps
    }
    return by_labels, by_tokens + besides.get(name, 0)


@pytest.fixture(scope="module")
def steps():
    """Compiled steps, by head and mesh."""
    compiled: dict = {}

    def step(name, mesh):
        if (name, mesh) not in compiled:
            compiled[name, mesh] = compile_step(name, V, mesh, D, B, T)
        return compiled[name, mesh]

    return step


@pytest.mark.parametrize("mesh", MESHES, ids=str)
@pytest.mark.parametrize("name", HEADS)
def test_bytes_are_those_of_the_formula(steps, name, mesh):
    """None belongs to scores, and to labels only where tokens are split too."""
    found = read_collectives(steps(name, mesh).as_text())
    assert {c.kind for c in found} == {"all-reduce"}
    sent = dict.fromkeys(mesh, 0)
    for collective in found:
        assert collective.times is not None
        sent[collective.devices] += collective.times * collective.num_bytes
    by_labels, by_tokens = formula(name, mesh)
    assert sent[mesh[1]] == 4 * by_labels
    if mesh[0] > 1:  # besides, a few single numbers: losses, counts
        assert 4 * by_tokens <= sent[mesh[0]] <= 4 * by_tokens + 64


def test_a_tied_table_is_sent_for_the_labels_and_for_the_lookups():
    """As the documentation says: JAX sums both gradients before they are added."""
    found = read_collectives(compile_step("tied", V, (8, 1), D, B, T).as_text())
    sent = sum(c.times * c.num_bytes for c in found if c.devices == 8)
    numbers = 2 * V * D + V + D * D + D
    assert 4 * numbers <= sent <= 4 * numbers + 64


def test_no_message_is_as_large_as_labels_or_scores(steps):
    for name in HEADS:
        for collective in read_collectives(steps(name, (1, 8)).as_text()):
            for _, sizes in collective.shapes:
                assert not {V, M, V // 8, M // 8} & set(sizes), collective


def test_a_gathered_table_is_noticed():
    """The reader of programs sees what the tests above exclude."""
    mesh = jax.sharding.Mesh(jax.devices(), ("model",))
    split = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("model", None))
    everywhere = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
    table = jax.ShapeDtypeStruct((V, D), "float32", sharding=split)
    gather = jax.jit(lambda x: x * 2, out_shardings=everywhere).lower(table).compile()
    (found,) = read_collectives(gather.as_text())
    assert (found.kind, found.num_bytes, found.devices) == ("all-gather", 4 * V * D, 8)


def test_loops_are_counted():
    mesh = jax.sharding.Mesh(jax.devices(), ("model",))
    specs = jax.sharding.PartitionSpec("model")

    def sums(x):
        return jax.lax.fori_loop(0, 3, lambda i, y: jax.lax.psum(y, "model") + i, x)

    function = jax.shard_map(sums, mesh=mesh, in_specs=specs, out_specs=specs, check_vma=False)
    compiled = jax.jit(function).lower(np.ones((16,), "float32")).compile()
    (found,) = read_collectives(compiled.as_text())
    assert (found.kind, found.num_bytes, found.times) == ("all-reduce", 8, 3)


def test_memory_is_split():
    """Eight devices plan about an eighth of the labels, of both moments and of the gradient."""
    whole = planned_bytes(compile_step("tied", 2**15, (8, 1), 32, B, T))
    split = planned_bytes(compile_step("tied", 2**15, (1, 8), 32, B, T))
    table = 4 * 32 * 2**15
    assert whole > 4 * table and split < 0.2 * whole


@pytest.mark.parametrize("name", HEADS)
def test_the_step_is_lowered_for_accelerators(name):
    step, arguments = traced_step(name, V, (2, 4), D, B, T)
    exported = export.export(jax.jit(step), platforms=["tpu", "cuda"])(*arguments)
    assert exported.platforms == ("tpu", "cuda") and exported.nr_devices == 8
