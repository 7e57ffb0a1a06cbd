"""Finds the embedding that an output layer shares after both were rebuilt from configs.

Keras restores shared layers only when it loads a `.keras` file, and only if the configs contain the
shared layer. In all other cases the rebuilt output layer has a copy of the embedding: after cloning
or `from_config`, in a `Sequential`, or if the backbone creates its own embedding. The output layer
then replaces the copy by the embedding at the path of the original embedding. A path consists of
names of attributes and layers. Older files contain only the name of the embedding.
"""

from collections.abc import Iterator

import keras

from keras_drill.ops.private_interfaces import direct_layers, producer

Found = tuple[str, keras.layers.Embedding]


def embeddings_inside(layer: keras.Layer) -> list[Found]:
    """Returns paths and embeddings inside a layer; the empty path is the layer itself."""
    return list(_walk(layer, "", set()))


def embeddings_upstream(tensor: keras.KerasTensor) -> list[Found]:
    """Returns paths and embeddings of all layers that computed a symbolic tensor."""
    pending, seen, layers = [tensor], set(), []
    while pending:
        operation, call, inputs = producer(pending.pop())
        if (id(operation), call) in seen:
            continue
        seen.add((id(operation), call))
        if isinstance(operation, keras.Layer) and operation not in layers:
            layers.append(operation)
        pending += inputs
    visited: set[int] = set()
    return [found for layer in layers for found in _walk(layer, layer.name, visited)]


def path_of(embedding, found: list[Found]) -> str | None:
    """Returns the path of an embedding, or `None` if `found` does not contain the embedding."""
    return next((path for path, other in found if other is embedding), None)


def find_original(copy: keras.layers.Embedding, path: str | None, found: list[Found]):
    """Finds the embedding that an output layer shares after both were rebuilt from their configs.

    Args:
        copy: Embedding that the output layer's config created. If Keras restored the sharing, this
            is the shared embedding itself.
        path: Path of the original embedding, or `None` if it is not known. If no embedding has this
            path, embeddings with the name of `copy` are used.
        found: Paths and embeddings of the rebuilt model.

    Returns:
        The embedding to share, or `None` if no embedding matches.

    Raises:
        ValueError: Several embeddings match.
    """
    if path_of(copy, found) is not None:
        return copy
    found = [(where, embedding) for where, embedding in found if _are_alike(copy, embedding)]
    candidates = [(where, embedding) for where, embedding in found if where == path]
    if not candidates:
        candidates = [(where, other) for where, other in found if other.name == copy.name]
    if len(candidates) > 1:
        raise ValueError(
            f"Several embeddings have the name {copy.name!r}, but an output layer must share "
            "exactly one. Give the embeddings different names. Or create the model in code, share "
            "the embedding with `tie_to`, and load only the weights with `load_weights`. "
            f"Received: {', '.join(repr(where) for where, _ in candidates)}"
        )
    return candidates[0][1] if candidates else None


def _are_alike(a, b) -> bool:
    return type(a) is type(b) and (a.input_dim, a.output_dim) == (b.input_dim, b.output_dim)


def _walk(layer, path: str, visited: set[int]) -> Iterator[Found]:
    if id(layer) in visited:
        return
    visited.add(id(layer))
    if isinstance(layer, keras.layers.Embedding):
        yield path, layer
        return
    for name, inner in _children(layer).items():
        yield from _walk(inner, f"{path}/{name}" if path else name, visited)


def _children(layer) -> dict[str, keras.Layer]:
    """Returns the layers directly inside `layer`, by names that are equal after `from_config`.

    A layer in an attribute gets the attribute's name, because automatic names of layers contain a
    counter. Other layers, for example those of a functional model, keep their own names.
    """
    children = {}
    for name, value in vars(layer).items():
        if name.startswith("_"):  # Keras' own lists of layers
            continue
        entries = {"": value}
        if isinstance(value, list | tuple):
            entries = {f"/{i}": entry for i, entry in enumerate(value)}
        elif isinstance(value, dict):
            entries = {f"/{key}": entry for key, entry in value.items()}
        for key, entry in entries.items():
            if isinstance(entry, keras.Layer):
                children[name + key] = entry
    in_attributes = {id(child) for child in children.values()}
    for number, child in enumerate(direct_layers(layer)):
        if id(child) not in in_attributes:
            name = child.name
            children[f"{name}#{number}" if name in children else name] = child
    return children
