"""All uses of private interfaces of Keras and TensorFlow in this package.

The docstring of each function says why a public interface does not suffice.
`tests/ops/test_private_interfaces.py` fails if a private interface changes, or if another module
of the package uses one.
"""

import contextlib
import itertools
from collections.abc import Iterator
from typing import Any

import keras

# --- Keras --------------------------------------------------------------------------------------


def keras_mask(tensor):
    """Returns the mask that a layer attached to its output, or `None`.

    Keras passes masks to layers as an argument, but not to a model that passes hidden states to a
    function. The public attribute of tensors does not suffice: for JAX tracers Keras keeps the
    masks in a table.
    """
    from keras.src.backend import get_keras_mask

    return get_keras_mask(tensor)


def is_symbolic() -> bool:
    """Returns whether Keras calls a layer symbolically, only to find shapes and dtypes.

    The inputs of such a call may have a wrong dtype. For example, under `tf.distribute` Keras
    builds a model with the replicas' mean of a batch, so word ids are floats. Keras' scope for
    symbolic calls is public, but the test for the scope is not.
    """
    from keras.src.backend.common.symbolic_scope import in_symbolic_scope

    return in_symbolic_scope()


def called_model() -> keras.Layer | None:
    """Returns the outermost layer or model of the present call, such as the model in `fit`.

    Publicly, a layer cannot find out which model calls it, and which loss reads its output.
    """
    from keras.src.backend.common import global_state

    context = global_state.get_global_attribute("current_call_ctx")
    return None if context is None else context.entry_layer


def replace_sublayer(layer: keras.Layer, name: str, new: keras.Layer) -> None:
    """Replaces the layer in the attribute `name` of `layer` by `new`.

    If the attribute is only assigned, Keras keeps tracking the old layer. In a built layer Keras
    raises an error.
    """
    old = getattr(layer, name)
    layer._tracker.unlock()
    layer._layers.remove(old)
    setattr(layer, name, new)
    if layer.built:
        layer._tracker.lock()


def attention_dropout(attention: keras.layers.MultiHeadAttention) -> keras.layers.Dropout:
    """Returns the layer that drops attention weights in a built `MultiHeadAttention`.

    The constructor accepts a dropout rate, but no dropout layer.
    """
    return attention._dropout_layer


class SaveSignature(keras.Layer):
    """Base class of layers that define the serving signature for `tf.saved_model.save`.

    Without this class, Keras makes the signature from the shapes that the layer was built for, and
    takes all inputs for floats.
    """

    def save_signature(self) -> Any:
        """Returns a `tf.function` with an input signature. The default is Keras' signature."""
        return super()._default_save_signature

    @property
    def _default_save_signature(self):
        return self.save_signature()


class FitsOnWorkers(keras.Model):
    """Base class of models whose `fit` and `evaluate` work under all `tf.distribute` strategies.

    Keras' own steps fail under some strategies (keras issue 20585):

    - Keras builds a model with the mean of a batch over its replicas. There is no such mean if the
      replicas' parts have unequal sizes, or are on several workers. This class builds the model
      with one replica's part.
    - Under `MultiWorkerMirroredStrategy`, Keras takes the mean of scalars over their first axis,
      which they do not have. This class adds that axis for versions of Keras with this fault.

    Backends other than TensorFlow have no strategies. On one device TensorFlow traces the training
    step only once, because the optimizer is built before.
    """

    def compile(self, *args: Any, **kwargs: Any) -> None:
        strategy = getattr(self, "distribute_strategy", None)
        is_shared = strategy is not None and strategy.num_replicas_in_sync > 1
        if is_shared and _on_logical_cpus(strategy):
            if kwargs.get("jit_compile") is True:
                raise ValueError(
                    "`jit_compile` must be False or 'auto' on several logical CPUs, because XLA "
                    "cannot use the variables of another logical CPU. "
                    "Received: jit_compile=True"
                )
            kwargs["jit_compile"] = False
        super().compile(*args, **kwargs)
        if is_shared:
            sum_gradients_first(self.optimizer)

    def fit(self, *args: Any, **kwargs: Any) -> Any:
        with _even_batches():
            return super().fit(*args, **kwargs)

    def evaluate(self, *args: Any, **kwargs: Any) -> Any:
        with _even_batches():
            return super().evaluate(*args, **kwargs)

    def predict(self, *args: Any, **kwargs: Any) -> Any:
        with _even_batches():
            return super().predict(*args, **kwargs)

    def train_on_batch(self, *args: Any, **kwargs: Any) -> Any:
        with _even_batches():
            return super().train_on_batch(*args, **kwargs)

    def test_on_batch(self, *args: Any, **kwargs: Any) -> Any:
        with _even_batches():
            return super().test_on_batch(*args, **kwargs)

    def predict_on_batch(self, *args: Any, **kwargs: Any) -> Any:
        with _even_batches():
            return super().predict_on_batch(*args, **kwargs)

    def _maybe_symbolic_build(self, iterator=None, data_batch=None):
        strategy = getattr(self, "distribute_strategy", None)
        if iterator is None or strategy is None or strategy.num_replicas_in_sync == 1:
            super()._maybe_symbolic_build(iterator, data_batch)
            return
        _, _, batches = next(iter(iterator))
        data_batch = keras.tree.map_structure(
            lambda part: strategy.experimental_local_results(part)[0], next(batches)
        )
        with strategy.scope():
            self._symbolic_build(data_batch=data_batch)

    def make_train_function(self, force: bool = False) -> Any:
        # TensorFlow traces a step twice if the first tracing creates variables. Keras creates the
        # optimizer's variables before tracing only under a strategy and on JAX.
        alone = getattr(self, "_distribute_strategy", self) is None
        # Some layers are built only by the first training step.
        are_built = all(layer.built for layer in self._flatten_layers())
        if alone and are_built and not self.optimizer.built:
            self.optimizer.build(self.trainable_variables)
        return super().make_train_function(force)

    def _make_function(self, step_function, **options):
        strategy = getattr(self, "distribute_strategy", None)
        if strategy is None or strategy.num_replicas_in_sync == 1:
            return super()._make_function(step_function, **options)
        over_rows = means_over_rows(strategy)
        on_cpus = any("CPU" in device for device in strategy.extended.worker_devices)
        if self.steps_per_execution != 1 and (over_rows or on_cpus):
            raise ValueError(
                "`steps_per_execution` must be 1 on several workers or several CPUs, because "
                "TensorFlow cannot run their steps in a loop. "
                f"Received: steps_per_execution={self.steps_per_execution}"
            )
        if not over_rows:
            return super()._make_function(step_function, **options)

        def with_rows(data):
            return keras.tree.map_structure(lambda value: value[None], step_function(data))

        return super()._make_function(with_rows, **options)


@contextlib.contextmanager
def _even_batches() -> Iterator[None]:
    """Replaces JAX' error about a batch that does not divide by the number of devices.

    The new error says which batch sizes a `keras.distribution` accepts. JAX' error class is
    private.
    """
    try:
        yield
    except ValueError as error:
        if type(error).__name__ != "IndivisibleError":
            raise
        raise ValueError(
            "The number of rows of every batch, also of the last one, must be a multiple of the "
            "number of devices that share the batch. Drop the last batch with "
            "`dataset.batch(size, drop_remainder=True)`, or pad it with rows whose `sample_weight` "
            f"is 0. Received: a batch for which JAX raises: {error}"
        ) from error


def _on_logical_cpus(strategy: Any) -> bool:
    """Returns whether the replicas of this process are logical CPUs of one physical CPU.

    The function uses no private interface. It is here because only this module needs it.
    """
    devices = strategy.extended.worker_devices
    return len(devices) > 1 and any("CPU" in device for device in devices)


def means_over_rows(strategy: Any) -> bool:
    """Returns whether Keras, under this strategy, takes the mean of scalars over their first axis.

    Scalars have no axis, so such a mean fails. The function calls Keras' private function with a
    recording strategy, because the first version of Keras without this fault is not known.
    """
    import tensorflow as tf
    from keras.src.backend.tensorflow.trainer import reduce_per_replica

    is_mirrored = isinstance(strategy, tf.distribute.MultiWorkerMirroredStrategy)
    if not is_mirrored or not strategy.extended._in_multi_worker_mode():
        return False
    axes = []

    class Asked(tf.distribute.MultiWorkerMirroredStrategy):
        def __init__(self):
            pass

        @property
        def extended(self):
            return strategy.extended

        def reduce(self, reduce_op, value, axis=None):
            axes.append(axis)
            return value

    reduce_per_replica(tf.zeros(()), Asked(), "mean")
    return axes == [0]


def sum_gradients_first(optimizer: keras.optimizers.Optimizer) -> None:
    """Makes an optimizer sum the replicas' gradients before it clips or checks them.

    Under `tf.distribute`, Keras clips each replica's gradient, and searches it for infinities,
    before it sums the gradients. Clipping and loss scaling would depend on the number of replicas.

    Args:
        optimizer: The optimizer, which is changed in place.

    Raises:
        ValueError: The optimizer uses `gradient_accumulation_steps` or `use_ema`.
    """
    import tensorflow as tf

    _stop_accumulating(optimizer)
    if "_sums_gradients_first" in vars(optimizer):
        return
    apply = optimizer.apply

    def apply_sums(grads, trainable_variables=None):
        if not optimizer._sums_gradients_first:  # an outer optimizer has summed them
            return apply(grads, trainable_variables)
        if not optimizer.built:
            raise ValueError(
                "The optimizer must be built before a replica's step, because TensorFlow cannot "
                "create variables there. Call `optimizer.build(model.trainable_variables)` in "
                f"`strategy.scope()`. Received: optimizer {optimizer.name!r}, which is not built"
            )
        grads = list(grads)
        replica = tf.distribute.get_replica_context()
        own = [grad for grad in grads if grad is not None]
        sums = iter(replica.all_reduce(tf.distribute.ReduceOp.SUM, own))
        grads = [None if grad is None else next(sums) for grad in grads]
        _stop_accumulating(optimizer)  # again: `build` of a MultiOptimizer may add optimizers
        return apply(grads, trainable_variables)

    optimizer.apply = apply_sums
    optimizer._sums_gradients_first = True


def _stop_accumulating(optimizer: keras.optimizers.Optimizer) -> None:
    for each in _with_inner_optimizers(optimizer):
        if "_sums_gradients_first" in vars(each):
            each._sums_gradients_first = each is optimizer
    for single in single_optimizers(optimizer):
        if single.gradient_accumulation_steps:
            raise ValueError(
                "`gradient_accumulation_steps` must be `None` under `tf.distribute`, where Keras "
                "accumulates no gradients. Use more replicas with fewer rows each, or train on one "
                "device. Received: gradient_accumulation_steps="
                f"{single.gradient_accumulation_steps}"
            )
        if single.use_ema:
            raise ValueError(
                "`use_ema` must be False under `tf.distribute`, where Keras' averages fail. Use "
                "`keras_drill.callbacks.NonMonotonicAveraging`, or train on one device. "
                f"Received: use_ema={single.use_ema}"
            )
        single._all_reduce_sum_gradients = lambda grads_and_variables: grads_and_variables


def all_layers(layer: keras.Layer) -> list[keras.Layer]:
    """Returns `layer` and all layers inside `layer`, at any depth, each once.

    Only models have a public list of their layers.
    """
    return list(layer._flatten_layers())


def direct_layers(layer: keras.Layer) -> list[keras.Layer]:
    """Returns the layers directly inside `layer`, in the order of their assignment.

    Only models have a public list of their layers, without layers that are in Python lists.
    """
    return list(layer._layers)


def producer(tensor: keras.KerasTensor) -> tuple[keras.Operation, int, list[keras.KerasTensor]]:
    """Returns how a symbolic tensor was computed.

    Keras lists the operations of a finished functional model, but not those of a single tensor.

    Returns:
        The operation, the index of this call among the operation's calls, and the input tensors.
    """
    operation, node_index, _ = tensor._keras_history
    return operation, node_index, operation._inbound_nodes[node_index].input_tensors


def call_arguments(tensor: keras.KerasTensor) -> tuple[tuple, dict]:
    """Returns the arguments of the call that computed a symbolic tensor.

    As for `producer`, Keras has no public interface. The arguments include constants and options,
    which `producer` omits.

    Returns:
        The positional arguments and the keyword arguments.
    """
    operation, node_index, _ = tensor._keras_history
    arguments = operation._inbound_nodes[node_index].arguments
    return arguments.args, arguments.kwargs


def replace_loss_tracker(model: keras.Model, metric: keras.metrics.Metric) -> None:
    """Makes a compiled model report its loss by `metric`, instead of Keras' own metric.

    A further, public metric would report a second loss. Its variables would be saved with the
    weights, which would then not load into models without this metric.
    """
    object.__setattr__(model, "_loss_tracker", metric)  # untracked, as `compile` sets its own


def loss_tracker(model: keras.Model) -> keras.metrics.Metric | None:
    """Returns the metric that a model reports as its loss, or `None` before `compile`.

    `Model.metrics` contains this metric, but other metrics in the list may have the same name.
    """
    return model._loss_tracker


# Name of an optimizer's attribute with the averages of the weights, which begin at the weights.
AVERAGES_OF_WEIGHTS = "_model_variables_moving_average"


def single_optimizers(optimizer: keras.optimizers.Optimizer) -> list[keras.optimizers.Optimizer]:
    """Returns the optimizers that update variables: `optimizer`, or the optimizers inside of it.

    `LossScaleOptimizer` and `MultiOptimizer`, which may be nested, only contain other optimizers.
    A `MultiOptimizer` that is not built may not have all its optimizers yet. Keras has no public
    interface for this.
    """
    return [each for each in _with_inner_optimizers(optimizer) if _inner_optimizers(each) is None]


def _with_inner_optimizers(optimizer) -> list[keras.optimizers.Optimizer]:
    inside = map(_with_inner_optimizers, _inner_optimizers(optimizer) or [])
    return [optimizer, *itertools.chain.from_iterable(inside)]


def _inner_optimizers(optimizer) -> list[keras.optimizers.Optimizer] | None:
    if hasattr(optimizer, "inner_optimizer"):
        return [optimizer.inner_optimizer]
    return getattr(optimizer, "optimizers", None)


def trained_variables(optimizer: keras.optimizers.Optimizer) -> list[keras.Variable]:
    """Returns the variables that an optimizer trains, in the order of its slots.

    Keras has no public interface to find the slots of a variable.
    """
    return list(getattr(optimizer, "_trainable_variables", []))


def slot_lists(optimizer: keras.optimizers.Optimizer) -> dict[str, list]:
    """Returns an optimizer's lists of slots: one slot for each trained variable, in that order.

    `Optimizer.variables` contains all slots, but does not say which variable a slot belongs to.

    Returns:
        A dictionary from the name of the optimizer's attribute to the list.
    """
    number = len(trained_variables(optimizer))
    return {
        name: value
        for name, value in vars(optimizer).items()
        if isinstance(value, list)
        and name not in ("_trainable_variables", "_variables")
        and len(value) == number
    }


# --- TensorFlow ---------------------------------------------------------------------------------


def is_compiled_by_xla() -> bool:
    """Returns whether TensorFlow traces for XLA, which manages memory differently.

    There is no public interface to find out.
    """
    import tensorflow as tf

    return tf.__internal__.get_enclosing_xla_context() is not None


def zeros_of_its_own(shape, dtype: str):
    """Returns zeros that share memory with no other tensor, for updates in place.

    `tf.zeros` is not suitable: graphs merge equal tensors, so two calls may share memory.
    """
    import tensorflow as tf

    return tf.raw_ops.Empty(shape=shape, dtype=dtype, init=True)


def add_rows_in_place(total, indices, rows):
    """Adds `rows` to the rows `indices` of `total` in place, and returns the result.

    Every public function copies the whole tensor. All other operations that read `total` must be
    finished before.
    """
    import tensorflow as tf

    return tf.raw_ops.InplaceAdd(x=total, i=tf.cast(indices, "int32"), v=rows)


def put_rows_in_place(x, start, rows):
    """Returns `x` with `rows` in place of its rows from `start` on.

    The public function copies `x`. This function does not, if no other operation uses `x`.
    """
    import tensorflow as tf

    begin = tf.stack([start] + [0] * (len(x.shape) - 1))
    return tf.raw_ops.TensorStridedSliceUpdate(
        input=x,
        begin=begin,
        end=begin + tf.shape(rows),
        strides=[1] * len(x.shape),
        value=rows,
    )


def run_cudnn(mode: str, x, parameters, h0, c0):
    """Runs cuDNN's LSTM or GRU, without a mask.

    Keras' own layers can also run cuDNN, but not with the weights, dropout and layout of this
    package.

    Args:
        mode: "lstm" or "gru".
        x: `[T, B, d]`.
        parameters: Kernels and biases, `[P]`, in cuDNN's order.
        h0, c0: `[1, B, H]`; `c0` is a scalar for a GRU.

    Returns:
        Outputs `[T, B, H]`, and the last states `h` and `c`, `[1, B, H]`.
    """
    import tensorflow as tf

    outputs, h, c, _, _ = tf.raw_ops.CudnnRNNV3(
        input=x,
        input_h=h0,
        input_c=c0,
        params=parameters,
        sequence_lengths=tf.fill([tf.shape(x)[1]], tf.shape(x)[0]),
        rnn_mode=mode,
        is_training=True,
        time_major=True,
    )
    return outputs, h, c


def is_tensorflow_operation(name: str) -> bool:
    """Returns whether an operation is part of TensorFlow itself, not of a loaded library.

    There is no public list of operations.
    """
    import tensorflow as tf

    return hasattr(tf.raw_ops, name)


def sentence_piece_pieces(model: bytes, shared_name: str):
    """Returns a `tensorflow_text.SentencepieceTokenizer` whose model lives as long as the process.

    In tensorflow-text, the kernel that creates the model owns it. Every
    `keras.utils.set_random_seed` deletes kernels, and later calls fail with "Resource ... does not
    exist". Resources with a shared name stay.

    Args:
        model: A trained SentencePiece model, serialized.
        shared_name: A name that no other model has.
    """
    import tensorflow as tf
    import tensorflow_text as tf_text
    from tensorflow_text.python.ops import sentencepiece_tokenizer as library

    class Resource(library._SentencepieceModelResource):
        def _create_resource(self):
            make = library.gen_sentencepiece_tokenizer.sentencepiece_op
            return make(model=self._model, shared_name=shared_name)

    pieces = tf_text.SentencepieceTokenizer(model, out_type=tf.string)
    pieces._model_resource = Resource(model, None)
    return pieces
