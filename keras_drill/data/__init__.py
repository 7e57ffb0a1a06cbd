"""Converts texts to batches of token ids: tokenizers, vocabularies, corpora and batches."""

from keras_drill.data.contiguous_batches import ContiguousBatches
from keras_drill.data.corpus import Corpus
from keras_drill.data.dialog_corpus import DialogCorpus
from keras_drill.data.encoded_text import EncodedText
from keras_drill.data.lines import Lines
from keras_drill.data.pair_batches import PairBatches
from keras_drill.data.paragraphs import Paragraphs
from keras_drill.data.parallel_corpus import ParallelCorpus
from keras_drill.data.parallel_text import ParallelText
from keras_drill.data.preprocessed_tokenizer import PreprocessedLines, PreprocessedTokenizer
from keras_drill.data.preprocessing import (
    Lowercase,
    MosesPunctuation,
    MosesTokenization,
    Preprocessing,
    UnicodeNormalization,
)
from keras_drill.data.pydoc_topics import pydoc_topics
from keras_drill.data.sentence_batches import SentenceBatches
from keras_drill.data.sentence_piece_tokenizer import SentencePieceTokenizer
from keras_drill.data.streamed_text import StreamedText
from keras_drill.data.text_lines import TextLines
from keras_drill.data.tokenizer import Tokenizer, VocabularySizeError
from keras_drill.data.truncate import truncate_text
from keras_drill.data.vocabulary import Vocabulary
from keras_drill.data.whitespace_tokenizer import WhitespaceTokenizer
from keras_drill.data.word_bytes import word_bytes
from keras_drill.data.word_piece_tokenizer import WordPieceTokenizer
from keras_drill.data.word_tokenizer import WordTokenizer
from keras_drill.data.word_vectors import read_word_vectors

__all__ = [
    "ContiguousBatches",
    "Corpus",
    "DialogCorpus",
    "EncodedText",
    "Lines",
    "Lowercase",
    "MosesPunctuation",
    "MosesTokenization",
    "PairBatches",
    "Paragraphs",
    "ParallelCorpus",
    "ParallelText",
    "PreprocessedLines",
    "PreprocessedTokenizer",
    "Preprocessing",
    "SentenceBatches",
    "SentencePieceTokenizer",
    "StreamedText",
    "TextLines",
    "Tokenizer",
    "UnicodeNormalization",
    "Vocabulary",
    "VocabularySizeError",
    "WhitespaceTokenizer",
    "WordPieceTokenizer",
    "WordTokenizer",
    "pydoc_topics",
    "read_word_vectors",
    "truncate_text",
    "word_bytes",
]
