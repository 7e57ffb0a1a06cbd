import keras


def find_embedding(layer, name: str) -> keras.layers.Embedding | None:
    """The embedding called `name` inside `layer` (or `layer` itself)."""
    for inner in layer._flatten_layers():
        if isinstance(inner, keras.layers.Embedding) and inner.name == name:
            return inner
    return None


def replace_sublayer(layer, name: str, new):
    """Puts `new` in place of the layer that is the attribute `name` of `layer`, built or not.

    Assigning alone would keep tracking the old one, and Keras refuses it in a built layer.
    """
    old = getattr(layer, name)
    layer._tracker.unlock()
    layer._layers.remove(old)
    setattr(layer, name, new)
    if layer.built:
        layer._tracker.lock()


def find_upstream_embedding(tensor: keras.KerasTensor, name: str) -> keras.layers.Embedding | None:
    """The embedding called `name` among the layers that a symbolic tensor was computed by.

    Cloning a functional model makes every layer from its config alone, so that a tied output layer
    comes back with a copy of its embedding; here it finds the one that the clone uses.
    """
    pending, seen = [tensor], set()
    while pending:
        operation, node_index, _ = pending.pop()._keras_history
        if (id(operation), node_index) in seen:
            continue
        seen.add((id(operation), node_index))
        if isinstance(operation, keras.Layer):
            found = find_embedding(operation, name)
            if found is not None:
                return found
        pending += operation._inbound_nodes[node_index].input_tensors
    return None
