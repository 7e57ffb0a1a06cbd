"""A vocabulary that a SavedModel reads from an asset file."""

import os

import tensorflow as tf

from keras_drill.data import Vocabulary


class AssetVocabulary(tf.Module):
    """Vocabulary for a SavedModel, whose words are in a text file of the SavedModel.

    Pass the object to `TextModel` or `Side` instead of a `Vocabulary`, whose words are in the
    graph, if the words shall stay readable in the SavedModel. `export_saved_model` and
    `export_translator` create the object from the `Vocabulary` that you pass. A SavedModel stores
    the file as the asset `assets/<file name>`. Loading the SavedModel fills lookup tables from this
    asset.

    Args:
        vocabulary: The `keras_drill.data.Vocabulary` that was saved to `path`. Only its special
            tokens and its size are used.
        path: File to which `vocabulary.save(path)` wrote the words, one per line.
    """

    def __init__(self, vocabulary: Vocabulary, path: str | os.PathLike):
        super().__init__(name="vocabulary")
        self.end_token = vocabulary.end_token
        self.unknown_id = vocabulary.unknown_id
        self.end_id = vocabulary.end_id
        self.start_id = vocabulary.start_id
        self.pad_id = vocabulary.pad_id
        self._size = len(vocabulary)
        line, number = tf.lookup.TextFileIndex.WHOLE_LINE, tf.lookup.TextFileIndex.LINE_NUMBER
        self._ids = tf.lookup.StaticHashTable(
            tf.lookup.TextFileInitializer(os.fspath(path), tf.string, line, tf.int64, number),
            default_value=vocabulary.unknown_id,
        )
        self._words = tf.lookup.StaticHashTable(
            tf.lookup.TextFileInitializer(os.fspath(path), tf.int64, number, tf.string, line),
            default_value=vocabulary.unknown_token,
        )

    def ids(self, words: tf.Tensor | tf.RaggedTensor) -> tf.Tensor | tf.RaggedTensor:
        """Maps words, a dense or ragged string tensor, to int32 ids of the same shape.

        Words that are not in the file get the id of the unknown token.
        """
        return tf.cast(self._ids.lookup(words), tf.int32)

    def words(self, ids: tf.Tensor | tf.RaggedTensor) -> tf.Tensor | tf.RaggedTensor:
        """Maps ids, a dense or ragged integer tensor, to words, strings of the same shape.

        Ids outside the vocabulary become the unknown token.
        """
        return self._words.lookup(tf.cast(ids, tf.int64))

    def __len__(self) -> int:
        return self._size
