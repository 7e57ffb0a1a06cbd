"""Checks that TensorFlow Serving supports the operations of a SavedModel."""

import os
from collections.abc import Iterator
from pathlib import Path

from tensorflow.core.framework import graph_pb2
from tensorflow.core.protobuf import saved_model_pb2

from keras_drill.ops.private_interfaces import is_tensorflow_operation

# Operations of tensorflow-text, which the server includes.
_TEXT_OPERATIONS = """
    CaseFoldUTF8 ConstrainedSequence FastBertNormalize FastWordpieceTokenizeWithOffsets
    FindSourceOffsets MaxSpanningTree NormalizeUTF8 NormalizeUTF8WithOffsetsMap PhraseTokenize
    RegexSplitWithOffsets RougeL SentenceFragments SentenceFragmentsV2 SentencepieceDetokenizeOp
    SentencepieceIdToStringOp SentencepieceOp SentencepieceStringToIdOp SentencepieceTokenizeOp
    SentencepieceTokenizeWithOffsetsOp SentencepieceVocabSizeOp SplitMergeTokenizeWithOffsets
    TFText>BoiseTagsToOffsets TFText>ByteSplitByOffsets TFText>ByteSplitWithOffsets
    TFText>FastSentencepieceDetokenize TFText>FastSentencepieceTokenize
    TFText>FastWordpieceDetokenize TFText>NgramsStringJoin TFText>OffsetsToBoiseTags
    TFText>PhraseDetokenize TFText>RoundRobinGenerateMasks TFText>RoundRobinTrim
    TFText>Utf8Binarize TFText>WhitespaceTokenizeWithOffsetsV2 TokenizerFromLogits
    UnicodeScriptTokenizeWithOffsets WhitespaceTokenizeWithOffsets WordpieceTokenizeWithOffsets
"""
TEXT_OPERATIONS = frozenset(_TEXT_OPERATIONS.split())
# Operations of TensorFlow that a default server does not run: Python functions exist only in the
# process that defined them, XLA needs a compiler that is off by default, and cuDNN needs a GPU.
_NOT_EVERYWHERE = ("PyFunc", "EagerPyFunc", "Xla", "Cudnn", "TPU", "Collective", "Nccl")


def is_served(operation: str) -> bool:
    """Returns whether TensorFlow Serving runs an operation in its default build on a CPU.

    The server includes the operations of TensorFlow and of tensorflow-text.

    Example:

    >>> [is_served(name) for name in ("MatMul", "NormalizeUTF8", "Addons>BeamSearch", "PyFunc")]
    [True, True, False, False]
    """
    if operation in TEXT_OPERATIONS:
        return True
    return is_tensorflow_operation(operation) and not operation.startswith(_NOT_EVERYWHERE)


def unserved_operations(folder: str | os.PathLike) -> dict[str, str]:
    """Finds the operations of a SavedModel that TensorFlow Serving does not support.

    An operation is supported if the server's default build runs it on a CPU. The function reads the
    graph and does not load or run the model.

    Args:
        folder: Folder of a SavedModel, which contains `saved_model.pb`.

    Returns:
        Dictionary from the name of each unsupported operation to the first node that uses the
        operation, for example `"node 'x' of the graph"`. Empty if all operations are supported.
    """
    saved_model = saved_model_pb2.SavedModel()
    saved_model.ParseFromString((Path(folder) / "saved_model.pb").read_bytes())
    found: dict[str, str] = {}
    for meta_graph in saved_model.meta_graphs:
        functions = {each.signature.name for each in meta_graph.graph_def.library.function}
        for operation, place in _nodes(meta_graph.graph_def):
            if operation not in functions and not is_served(operation):
                found.setdefault(operation, place)
    return found


def check_operations(folder: str | os.PathLike) -> None:
    """Checks that TensorFlow Serving can run a SavedModel.

    Raises:
        ValueError: The model has an operation that the server does not run.
    """
    unserved = unserved_operations(folder)
    if unserved:
        told = "; ".join(f"{name}, {place}" for name, place in sorted(unserved.items()))
        raise ValueError(
            "`model` must only use operations of TensorFlow and tensorflow-text that the default "
            f"build of TensorFlow Serving runs on a CPU. Received: {told}"
        )


def _nodes(graph: graph_pb2.GraphDef) -> Iterator[tuple[str, str]]:
    """Yields the operation and the place of each node of a graph and of its functions."""
    for node in graph.node:
        yield node.op, f"node {node.name!r} of the graph"
    for function in graph.library.function:
        for node in function.node_def:
            yield node.op, f"node {node.name!r} of the function {function.signature.name!r}"
