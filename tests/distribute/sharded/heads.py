"""Every output layer, on one device or on a mesh of eight, with the same weights."""

import jax
import keras
import numpy as np

import keras_drill
from keras_drill.distribute import layout_map

B, T, D, J, V, M = 8, 5, 13, 11, 48, 104
MESHES = [(1, 8), (2, 4), (8, 1)]

# Of a vocabulary, an embedding, and arguments of every output layer.
HEADS = {
    "softmax": lambda v, e, **k: keras_drill.SoftmaxOutput(v, **k),
    "tied": lambda v, e, **k: keras_drill.TiedOutput(v, e, **k),
    "bilinear": lambda v, e, **k: keras_drill.BilinearOutput(v, e, **k),
    "dual": lambda v, e, **k: keras_drill.DualNonlinearOutput(v, e, J, **k),
    "drill": lambda v, e, **k: keras_drill.DrillOutput(v, e, depth=2, dropout=0.3, seed=3, **k),
    "mixture": lambda v, e, **k: keras_drill.MixtureOfSoftmaxes(v, e, num_mixtures=3, **k),
    "kerbs": lambda v, e, **k: keras_drill.KernelizedBayesianSoftmax(v, num_senses=M, **k),
    "tied_kerbs": lambda v, e, **k: keras_drill.KernelizedBayesianSoftmax(v, e, **k),
    "described": lambda v, e, **k: keras_drill.OutputLayer(
        v, label_encoder=keras_drill.DescriptionLabelEncoder(FEATURES[:v]), **k
    ),
}
FEATURES = np.random.default_rng(7).normal(size=(V, J))


def set_mesh(shape):
    """Sets Keras' distribution, to none if there is no shape of a mesh."""
    distribution = None
    if shape is not None:
        mesh = keras.distribution.DeviceMesh(shape, ("batch", "model"))
        distribution = keras.distribution.ModelParallel(
            layout_map=layout_map(mesh), batch_dim_name="batch"
        )
    keras.distribution.set_distribution(distribution)


def make_embedding(name, rows=V):
    if name == "tied_kerbs":
        return keras_drill.SenseEmbedding(V, D, num_senses=M, weighting="usage", name="embedding")
    # Heads with labels of their own take tokens of padding, which have a mask.
    return keras.layers.Embedding(rows, D, mask_zero=name == "softmax", name="embedding")


def make_head(name, vocabulary_size=V, rows=V, **arguments):
    """A built head, whose weights do not depend on the mesh, nor on rows that only fill up."""
    embedding = make_embedding(name, rows)
    head = HEADS[name](vocabulary_size, embedding, name="head", **arguments)
    head.build((B, T, D))
    assign_weights(head)
    return head


def assign_weights(layer):
    rng = np.random.default_rng(17)
    for variable in layer.trainable_variables:
        variable.assign(rng.normal(size=variable.shape))


def place(x):
    """An array as Keras places a batch: split over the mesh' first axis."""
    distribution = keras.distribution.distribution()
    if distribution is None or x is None:
        return x
    return jax.device_put(x, distribution.get_data_layout(x.shape).backend_layout)


def loss_function(head, **arguments):
    """The loss, its statistics and its gradients, of values of the head's variables and a batch."""

    def loss(trainable, others, hidden, targets, weights):
        variables = [*head.trainable_variables, *head.non_trainable_variables]
        values = zip(variables, [*trainable, *others], strict=True)
        with keras.StatelessScope(values):
            loss, *found = head.loss_log_prob_and_rank(hidden, targets, weights, **arguments)
        return loss, found

    return jax.jit(jax.value_and_grad(loss, argnums=(0, 2), has_aux=True))


def loss_inputs(head, hidden, targets, weights=None):
    variables = head.trainable_variables, head.non_trainable_variables
    values = [[variable.value for variable in some] for some in variables]
    return *values, *(place(x) for x in (hidden, targets, weights))


def loss_and_gradients(head, *batch, **arguments):
    """What `loss_function` gives, as arrays."""
    (loss, found), gradients = loss_function(head, **arguments)(*loss_inputs(head, *batch))
    return jax.tree.map(np.asarray, [loss, found, gradients])
