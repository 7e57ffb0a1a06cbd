"""All that the package uses of Keras and TensorFlow beyond what they promise to keep.

Each function says why the public interface does not do. `tests/ops/test_private_interfaces.py`
fails when one of them changes, and when another module uses such an interface itself.
"""

import contextlib
import itertools
from collections.abc import Iterator
from typing import Any

import keras

# --- Keras --------------------------------------------------------------------------------------


def keras_mask(tensor):
    """The mask that a layer attached to its output, or `None`.

    Layers get it as an argument; a model that hands hidden states to a function does not. It is an
    attribute of tensors, but JAX keeps masks of its tracers in a table of Keras' own.
    """
    from keras.src.backend import get_keras_mask

    return get_keras_mask(tensor)


def is_symbolic() -> bool:
    """Whether Keras only asks for shapes and types, with inputs that may not be of the right type.

    The scope is public, but not the question. Under `tf.distribute` Keras builds models for the
    mean over replicas of a batch, which makes floats of words.
    """
    from keras.src.backend.common.symbolic_scope import in_symbolic_scope

    return in_symbolic_scope()


def called_model() -> keras.Layer | None:
    """The outermost layer or model that is being called, such as the one that `fit` trains.

    A layer is told neither who calls it nor what loss its output goes into.
    """
    from keras.src.backend.common import global_state

    context = global_state.get_global_attribute("current_call_ctx")
    return None if context is None else context.entry_layer


def replace_sublayer(layer: keras.Layer, name: str, new: keras.Layer) -> None:
    """Puts `new` in place of the layer that is the attribute `name` of `layer`, built or not.

    Assigning alone keeps tracking the old one, and Keras refuses it in a built layer.
    """
    old = getattr(layer, name)
    layer._tracker.unlock()
    layer._layers.remove(old)
    setattr(layer, name, new)
    if layer.built:
        layer._tracker.lock()


def attention_dropout(attention: keras.layers.MultiHeadAttention) -> keras.layers.Dropout:
    """The dropout of a built layer's attention weights.

    Keras makes it, and takes none.
    """
    return attention._dropout_layer


class SaveSignature(keras.Layer):
    """Base of layers that say what `tf.saved_model.save` offers as their signature.

    Keras makes it from the shapes that a layer was built for, all of them floats.
    """

    def save_signature(self) -> Any:
        """A `tf.function` with an input signature; here, what Keras makes."""
        return super()._default_save_signature

    @property
    def _default_save_signature(self):
        return self.save_signature()


class FitsOnWorkers(keras.Model):
    """Base of models that `fit` and `evaluate` on replicas and on workers.

    Steps of Keras fail there (keras issue 20585): it builds a model from the mean over replicas of
    a batch, which is none where they have unequal parts or are on several workers, and under
    `MultiWorkerMirroredStrategy` it takes the mean of scalars over their first axis. So the model
    is built from one replica's part, and scalars get that axis, while Keras wants it. Backends
    other than TensorFlow have no strategies. On one device the first step is traced once.
    """

    def compile(self, *args: Any, **kwargs: Any) -> None:
        strategy = getattr(self, "distribute_strategy", None)
        is_shared = strategy is not None and strategy.num_replicas_in_sync > 1
        if is_shared and _on_logical_cpus(strategy):
            if kwargs.get("jit_compile") is True:
                raise ValueError(
                    "`jit_compile` must be False or 'auto' on several logical CPUs: XLA compiles "
                    "for one of them, and cannot use the variables of another. "
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
        # Variables that are made while TensorFlow traces a step have it traced once more. Under a
        # strategy, and on JAX, Keras makes the optimizer's before; here it would not.
        alone = getattr(self, "_distribute_strategy", self) is None
        are_built = all(layer.built for layer in self._flatten_layers())  # some only in training
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
                "`steps_per_execution` must be 1 on workers, and on several CPUs: TensorFlow "
                "cannot run their steps in a loop. "
                f"Received: steps_per_execution={self.steps_per_execution}"
            )
        if not over_rows:
            return super()._make_function(step_function, **options)

        def with_rows(data):
            return keras.tree.map_structure(lambda value: value[None], step_function(data))

        return super()._make_function(with_rows, **options)


@contextlib.contextmanager
def _even_batches() -> Iterator[None]:
    """Says which batches a distribution of Keras' takes, where JAX says what it cannot partition.

    JAX' class of error is private.
    """
    try:
        yield
    except ValueError as error:
        if type(error).__name__ != "IndivisibleError":
            raise
        raise ValueError(
            "Every batch, the last one too, must have as many rows as the devices that share it, "
            "or a multiple of them: drop the rest with `dataset.batch(size, drop_remainder=True)`, "
            "or pad the batch with rows whose `sample_weight` is 0. Received a batch for which JAX "
            f"says: {error}"
        ) from error


def _on_logical_cpus(strategy: Any) -> bool:
    """Whether replicas of this process are CPUs that TensorFlow makes of one.

    It is no private interface, but what is refused on them is refused here.
    """
    devices = strategy.extended.worker_devices
    return len(devices) > 1 and any("CPU" in device for device in devices)


def means_over_rows(strategy: Any) -> bool:
    """Whether Keras, under this strategy, takes the mean of workers' scalars over an axis that
    they do not have.

    There is no telling from its version when that will be mended.
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
    """Makes an optimizer, under `tf.distribute`, add up the replicas' gradients before all else.

    Keras clips each replica's own gradient, and tells infinities in it, before it adds them up, so
    that clipping, and the scale of the loss, would depend on the number of replicas.

    Raises:
        ValueError: Gradients are to be accumulated, or weights to be averaged, by the optimizer.
    """
    import tensorflow as tf

    _stop_accumulating(optimizer)
    if "_sums_gradients_first" in vars(optimizer):
        return
    apply = optimizer.apply

    def apply_sums(grads, trainable_variables=None):
        if not optimizer._sums_gradients_first:  # one that it is in did
            return apply(grads, trainable_variables)
        if not optimizer.built:
            raise ValueError(
                "The optimizer must be built before a replica's step, where TensorFlow cannot make "
                "variables: call `optimizer.build(model.trainable_variables)` in "
                f"`strategy.scope()`. Received: {optimizer.name!r}, not built"
            )
        grads = list(grads)
        replica = tf.distribute.get_replica_context()
        own = [grad for grad in grads if grad is not None]
        sums = iter(replica.all_reduce(tf.distribute.ReduceOp.SUM, own))
        grads = [None if grad is None else next(sums) for grad in grads]
        _stop_accumulating(optimizer)  # again, as a MultiOptimizer may know its own only once built
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
                "accumulates no gradients: give each replica fewer rows and take more replicas, or "
                "train on one device. Received: gradient_accumulation_steps="
                f"{single.gradient_accumulation_steps}"
            )
        if single.use_ema:
            raise ValueError(
                "`use_ema` must be False under `tf.distribute`, where Keras' averages fail: take "
                "`keras_drill.callbacks.NonMonotonicAveraging`, or train on one device. "
                f"Received: use_ema={single.use_ema}"
            )
        single._all_reduce_sum_gradients = lambda grads_and_variables: grads_and_variables


def all_layers(layer: keras.Layer) -> list[keras.Layer]:
    """`layer` and all layers inside it, at any depth, each once.

    Only models have a public list of their layers.
    """
    return list(layer._flatten_layers())


def direct_layers(layer: keras.Layer) -> list[keras.Layer]:
    """The layers right inside `layer`, in the order in which they came to be there.

    Only models have a public list of their layers, and it leaves out what is in lists.
    """
    return list(layer._layers)


def producer(tensor: keras.KerasTensor) -> tuple[keras.Operation, int, list[keras.KerasTensor]]:
    """The operation that a symbolic tensor was computed by, the number of that call among the
    operation's calls, and the tensors that went into it.

    Keras shows the operations of a finished functional model, but not of a tensor on its own.
    """
    operation, node_index, _ = tensor._keras_history
    return operation, node_index, operation._inbound_nodes[node_index].input_tensors


def call_arguments(tensor: keras.KerasTensor) -> tuple[tuple, dict]:
    """The arguments of the call that a symbolic tensor came from, by position and by name.

    As `producer`; what is not a tensor (a constant, an option) is nowhere else.
    """
    operation, node_index, _ = tensor._keras_history
    arguments = operation._inbound_nodes[node_index].arguments
    return arguments.args, arguments.kwargs


def replace_loss_tracker(model: keras.Model, metric: keras.metrics.Metric) -> None:
    """Makes `metric` what a compiled model reports as its loss, and adds each batch's loss to.

    The public way, a metric of the model's own, reports the loss beside Keras' and is saved with
    the weights, which could not be loaded into models saved before.
    """
    object.__setattr__(model, "_loss_tracker", metric)  # untracked, as `compile` sets its own


def loss_tracker(model: keras.Model) -> keras.metrics.Metric | None:
    """The metric that a model reports as its loss, `None` where it was not compiled.

    `Model.metrics` has it among others, which may have its name.
    """
    return model._loss_tracker


# What Keras calls an optimizer's averages of the weights, which begin at the weights.
AVERAGES_OF_WEIGHTS = "_model_variables_moving_average"


def single_optimizers(optimizer: keras.optimizers.Optimizer) -> list[keras.optimizers.Optimizer]:
    """Those that make the steps: `optimizer`, or what is in a `LossScaleOptimizer`, a
    `MultiOptimizer`, or one in the other; of a `MultiOptimizer` that is not built, what it knows.

    Keras has no interface for it.
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
    """The variables that an optimizer trains, in the order of its slots.

    Keras has no public way from a variable to its slots.
    """
    return list(getattr(optimizer, "_trainable_variables", []))


def slot_lists(optimizer: keras.optimizers.Optimizer) -> dict[str, list]:
    """By name of the attribute, the lists that an optimizer keeps in parallel to its variables.

    `Optimizer.variables` has all slots, but does not say which belongs to which variable.
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
    """Whether TensorFlow traces for XLA, which has its own way with memory.

    There is no public way to ask.
    """
    import tensorflow as tf

    return tf.__internal__.get_enclosing_xla_context() is not None


def zeros_of_its_own(shape, dtype: str):
    """Zeros that share their memory with no other tensor, so that they may be changed in place.

    Graphs merge equal tensors: two calls of `tf.zeros` are one.
    """
    import tensorflow as tf

    return tf.raw_ops.Empty(shape=shape, dtype=dtype, init=True)


def add_rows_in_place(total, indices, rows):
    """`total` with `rows` added to the rows `indices`, in its own memory.

    Every public function copies the whole tensor. Whatever else reads `total` must be done by then.
    """
    import tensorflow as tf

    return tf.raw_ops.InplaceAdd(x=total, i=tf.cast(indices, "int32"), v=rows)


def put_rows_in_place(x, start, rows):
    """`x` with `rows` in place of its own from row `start` on.

    The public function copies; this does not where nothing else uses `x`.
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
    """cuDNN's LSTM or GRU over `x` `[T, B, d]` without a mask.

    Keras' own layers reach it, but with weights, dropout and layout that are not ours.

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
    """Whether an operation came with TensorFlow, whatever else this process has loaded.

    Nothing public lists the operations.
    """
    import tensorflow as tf

    return hasattr(tf.raw_ops, name)


def sentence_piece_pieces(model: bytes, shared_name: str):
    """A `tensorflow_text.SentencepieceTokenizer` whose model lives as long as the process.

    tensorflow-text leaves the model to the kernel that made it, and kernels go with every
    `keras.utils.set_random_seed`: "Resource ... does not exist". Named resources stay.

    Args:
        model: A trained model.
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
