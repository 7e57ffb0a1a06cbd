"""Loss and gradients of a student on eight devices are those on one, whatever its teacher is."""

import jax
import keras
import numpy as np
import pytest

from keras_drill.ops import sparse_linear_kl_divergence
from keras_drill.output_layer.distillation import HeadTeacher
from keras_drill.output_layer.losses import loss_and_statistics
from tests.distribute.sharded.heads import B, D, T, V, loss_inputs, make_head, set_mesh
from tests.distribute.sharded.test_heads import assert_close, batch

pytestmark = pytest.mark.slow
RANDOM = np.random.default_rng(9)
TEACHER_HIDDEN = RANDOM.normal(size=(B, T, D)).astype("float32")
WORDS = RANDOM.integers(0, V, (B, T, 3)).astype("int32")
LOG_PROBS = np.log(RANDOM.dirichlet(np.ones(5), (B, T))[..., :3]).astype("float32")


def distill(teacher_kind, divergence, num_words=V, **arguments):
    student = make_head("tied", num_words, tile_size=7, **arguments)
    teacher = make_head(teacher_kind, num_words, **arguments)
    given = HeadTeacher(teacher, TEACHER_HIDDEN, divergence, 0.3, 2.0, 0.4)

    def loss(trainable, others, hidden, targets, weights):
        variables = [*student.trainable_variables, *student.non_trainable_variables]
        values = zip(variables, [*trainable, *others], strict=True)
        with keras.StatelessScope(values):
            return loss_and_statistics(
                student, hidden, targets, weights, 0.1, "mean", True, False, given
            )[0]

    inputs = loss_inputs(student, *batch(vocabulary_size=num_words))
    found = jax.jit(jax.value_and_grad(loss, argnums=(0, 2)))(*inputs)
    return jax.tree.map(np.asarray, found)


@pytest.mark.parametrize("mesh", [(2, 4), (8, 1)], ids=str)
@pytest.mark.parametrize(
    ("teacher", "divergence"), [("softmax", "jensen_shannon"), ("mixture", "reverse_kl")]
)
def test_devices_agree(teacher, divergence, mesh):
    set_mesh(None)
    expected = distill(teacher, divergence)
    set_mesh(mesh)
    assert_close(distill(teacher, divergence), expected)


def test_teachers_of_senses():
    """Every device needs all words of these: tokens are split over devices, and words are not."""
    set_mesh(None)
    expected = distill("kerbs", "forward_kl")
    set_mesh((8, 1))
    assert_close(distill("kerbs", "forward_kl"), expected)
    set_mesh((2, 4))
    with pytest.raises(ValueError, match=r"`teacher` must have one label per word.*Received"):
        distill("kerbs", "forward_kl")


def test_rows_that_fill_up_are_no_words():
    results = []
    for mesh in (None, (2, 4)):
        set_mesh(mesh)
        results.append(distill("softmax", "jensen_shannon", 43, rows=48, pad_labels_to=48))
    assert_close(results[1], results[0])


@pytest.mark.parametrize("mesh", [(2, 4), (8, 1)], ids=str)
def test_stored_words(mesh):
    hidden, _, weights = batch()
    results = []
    for shape in (None, mesh):
        set_mesh(shape)
        head = make_head("softmax")

        def loss(labels, hidden, head=head):
            with keras.StatelessScope([(head.label_embeddings, labels)]):
                return sparse_linear_kl_divergence(
                    hidden,
                    head.label_embeddings,
                    WORDS,
                    LOG_PROBS,
                    head.bias,
                    sample_weight=weights,
                    tile_size=7,
                )

        step = jax.jit(jax.value_and_grad(loss, argnums=(0, 1)))
        results.append(jax.tree.map(np.asarray, step(head.label_embeddings.value, hidden)))
    assert_close(results[1], results[0])
