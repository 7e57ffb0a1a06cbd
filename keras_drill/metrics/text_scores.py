"""Scores of texts against references: BLEU, chrF and others, computed by sacrebleu."""

import collections
import dataclasses
import math
import warnings
from collections.abc import Iterable, Iterator, Sequence
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sacrebleu.metrics import BLEU, CHRF

_MANY = 100
References = Sequence[str | Sequence[str]]


@dataclasses.dataclass(frozen=True)
class TextScores:
    """Scores of texts against references, the output of `score_texts`.

    Args:
        sentences: Number of texts.
        bleu: BLEU of all texts together, with n-grams up to 4, from 0 to 100. Higher is better.
        bleu_1: BLEU with single words only (BLEU-1), from 0 to 100, as in papers on dialog.
        chrf: chrF of all texts together (character n-grams up to 6, β = 2), from 0 to 100. Higher
            is better.
        exact_match: Percentage of the texts that are equal to a reference. Extra white space is
            ignored, and with `lowercase=True` also the difference between upper and lower case.
        length_ratio: Number of words in the texts divided by the number in the references. Of
            several references, the one closest in length is used. NaN if the references have no
            words.
        bleu_signature: sacrebleu's signature of `bleu`: its settings and version. `bleu_1` has the
            same signature, because signatures omit the length of n-grams.
        chrf_signature: sacrebleu's signature of `chrf`.
    """

    sentences: int
    bleu: float
    bleu_1: float
    chrf: float
    exact_match: float
    length_ratio: float
    bleu_signature: str
    chrf_signature: str


def score_texts(
    hypotheses: Sequence[str],
    references: References,
    tokenize: str = "13a",
    lowercase: bool = False,
) -> TextScores:
    """Scores texts against references, with sacrebleu.

    Unless `tokenize` is `"none"`, pass texts as a reader sees them, without subword pieces and
    without spaces before punctuation. Scores are comparable with published scores if sacrebleu's
    signatures are equal.

    Args:
        hypotheses: The texts to score.
        references: For each text one reference, or a sequence of several references.
        tokenize: sacrebleu's tokenizer for BLEU: `"13a"` for languages with spaces, `"zh"`,
            `"ja-mecab"`, `"char"`, ..., and `"none"` for texts that are already tokenized.
        lowercase: Whether to ignore the difference between upper and lower case.

    Returns:
        A `TextScores`.

    Raises:
        ImportError: sacrebleu is not installed.
        ValueError: `tokenize` is not a tokenizer of sacrebleu. Or `hypotheses` and `references` are
            not texts, differ in their number, or have no element.

    Warns:
        UserWarning: At least 100 texts end in " .", so they seem to be tokenized, although
            `tokenize` is not `"none"`. Or at least 100 references end in " .", but fewer than half
            as many texts do. Or at least 100 references contain capitals, but no text does,
            although `lowercase` is false.

    Example:

    >>> from keras_drill.metrics import score_texts
    >>> scores = score_texts(["A dog runs."], [["A dog runs.", "The dog is running."]])
    >>> scores.bleu, scores.chrf, scores.exact_match, scores.length_ratio
    (100.0..., 100.0, 100.0, 1.0)
    >>> scores.bleu_signature
    'nrefs:2|case:mixed|eff:no|tok:13a|smooth:exp|version:2...'

    References:

    - [Papineni et al., 2002](https://aclanthology.org/P02-1040), BLEU
    - [Popović, 2015](https://aclanthology.org/W15-3049), chrF
    - [Post, 2018](https://aclanthology.org/W18-6319), sacrebleu
    """
    check_texts(hypotheses, references)
    streams = reference_streams(references)
    for problem in _different_steps(hypotheses, streams[0], tokenize, lowercase):
        warnings.warn(problem, stacklevel=2)
    bleu = bleu_metric(tokenize, lowercase)
    chrf = chrf_metric(lowercase)
    by_words = bleu.corpus_score(hypotheses, streams)
    by_characters = chrf.corpus_score(hypotheses, streams)
    return TextScores(
        sentences=len(hypotheses),
        bleu=by_words.score,
        bleu_1=by_words.bp * by_words.precisions[0],  # a single order is never smoothed
        chrf=by_characters.score,
        exact_match=_exact_match(hypotheses, references, lowercase),
        length_ratio=by_words.sys_len / by_words.ref_len if by_words.ref_len else math.nan,
        bleu_signature=str(bleu.get_signature()),
        chrf_signature=str(chrf.get_signature()),
    )


def distinct_n(texts: Sequence[str], n: int, tokenize: str = "13a") -> float:
    """Computes distinct-n: the number of different n-grams divided by the number of all n-grams.

    Distinct-n measures how varied generated texts are; higher is more varied. Distinct-n falls with
    the amount of text, so compare models on equally many texts. The original paper divides by the
    number of words. This function divides by the number of n-grams, like most later papers. For
    n = 1 the two are equal.

    Args:
        texts: Outputs of a model. Texts shorter than n words have no n-grams.
        n: Number of words in an n-gram.
        tokenize: sacrebleu's tokenizer, see `score_texts`.

    Returns:
        A number from 0 to 1, or NaN if there are no n-grams.

    Example:

    >>> from keras_drill.metrics import distinct_n
    >>> texts = ["I do not know .", "I do not ."]
    >>> round(distinct_n(texts, 1), 3), round(distinct_n(texts, 2), 3)
    (0.556, 0.714)

    References:

    - [Li et al., 2016](https://arxiv.org/abs/1510.03055), "A Diversity-Promoting Objective
      Function for Neural Conversation Models"
    """
    if n < 1:
        raise ValueError(f"`n` must be at least 1. Received: n={n}")
    ngrams: collections.Counter[tuple[str, ...]] = collections.Counter()
    for words in split_words(texts, tokenize):
        ngrams.update(zip(*(words[start:] for start in range(n)), strict=False))
    return len(ngrams) / ngrams.total() if ngrams else math.nan


def count_words(
    texts: Iterable[str], tokenize: str = "13a", lowercase: bool = False
) -> collections.Counter[str]:
    """Counts the words of texts, with BLEU's tokenization.

    Args:
        texts: The texts, for example the targets of a training set.
        tokenize: sacrebleu's tokenizer, see `score_texts`.
        lowercase: Whether to lower-case the texts first.

    Returns:
        A `collections.Counter` from words to counts.

    Example:

    >>> from keras_drill.metrics import count_words
    >>> count_words(["A dog.", "No dog!"])["dog"]
    2
    """
    counts: collections.Counter[str] = collections.Counter()
    for words in split_words(texts, tokenize, lowercase):
        counts.update(words)
    return counts


def split_words(
    texts: Iterable[str], tokenize: str = "13a", lowercase: bool = False
) -> Iterable[list[str]]:
    """Returns each text as a list of words. See `count_words` for the arguments."""
    tokenizer = bleu_metric(tokenize, lowercase).tokenizer
    return (tokenizer((text.lower() if lowercase else text).rstrip()).split() for text in texts)


def import_sacrebleu() -> ModuleType:
    """Returns the module sacrebleu, or raises an error that says how to install it."""
    try:
        import sacrebleu
    except ImportError as error:
        raise ImportError(
            "Evaluating texts needs the library sacrebleu: pip install keras_drill[translation]. "
            f"Received: {error}"
        ) from error
    return sacrebleu


def bleu_metric(tokenize: str, lowercase: bool, **options: bool) -> "BLEU":
    """Returns sacrebleu's BLEU, after checking the name of the tokenizer."""
    metric = import_sacrebleu().BLEU
    if tokenize not in metric.TOKENIZERS:
        raise ValueError(
            f"`tokenize` must be one of {', '.join(metric.TOKENIZERS)}. "
            f"Received: tokenize={tokenize!r}"
        )
    # `force` suppresses sacrebleu's warning about tokenized text at every score. `score_texts`
    # warns once instead.
    return metric(tokenize=tokenize, lowercase=lowercase, force=True, **options)


def chrf_metric(lowercase: bool) -> "CHRF":
    """Returns sacrebleu's chrF2."""
    return import_sacrebleu().CHRF(lowercase=lowercase)


def reference_streams(references: References) -> list[list[Any]]:
    """Returns references in sacrebleu's layout.

    The first list has the first reference of each text, the second list the second, and so on.
    Texts with fewer references are padded with `None`, which sacrebleu accepts although its type
    hints omit it.

    >>> reference_streams(["a", ["b", "c"]])
    [['a', 'b'], [None, 'c']]
    """
    lists = [[each] if isinstance(each, str) else list(each) for each in references]
    most = max(map(len, lists))
    return [[each[place] if place < len(each) else None for each in lists] for place in range(most)]


def check_texts(
    hypotheses: Sequence[str], references: References, name: str = "hypotheses"
) -> None:
    """Raises `ValueError` for texts on which sacrebleu would fail, or which it would ignore.

    Args:
        hypotheses, references: As in `score_texts`.
        name: Name of the argument `hypotheses` in error messages.
    """
    if isinstance(hypotheses, str) or isinstance(references, str):
        raise ValueError(
            f"`{name}` and `references` must be sequences of texts, not a string. Received: {name} "
            f"of type {type(hypotheses).__name__}, references of type {type(references).__name__}"
        )
    if len(hypotheses) != len(references) or len(hypotheses) == 0:
        raise ValueError(
            f"`{name}` and `references` must have the same length, at least 1. "
            f"Received: {name} of length {len(hypotheses)}, references of length {len(references)}"
        )
    for place, (hypothesis, each) in enumerate(zip(hypotheses, references, strict=True)):
        is_text = isinstance(hypothesis, str)
        allowed = [each] if isinstance(each, str) else each
        is_list = isinstance(allowed, Sequence) and len(allowed) > 0
        if not (is_text and is_list and all(isinstance(text, str) for text in allowed)):
            raise ValueError(
                f"`{name}` must be strings, and `references` strings or non-empty sequences of "
                f"strings. Received: {name}[{place}]={hypothesis!r}, references[{place}]={each!r}"
            )


def _different_steps(
    hypotheses: Sequence[str], references: Sequence[str], tokenize: str, lowercase: bool
) -> Iterator[str]:
    """Returns warnings if texts and references seem to be preprocessed differently.

    The messages contain no numbers, so that Python shows each message only once.
    """
    if not any(text.strip() for text in hypotheses):
        return
    cut, cut_references = (
        sum(text.endswith(" .") for text in texts) for texts in (hypotheses, references)
    )
    if tokenize != "none" and cut >= _MANY:
        yield (
            "A hundred `hypotheses` or more end in ' .' and seem to be tokenized. Their BLEU is "
            "not comparable with that of texts that are not tokenized"
        )
    elif cut_references >= _MANY and 2 * cut < cut_references:
        yield (
            "A hundred `references` or more end in ' .' and seem to be tokenized, but the "
            "`hypotheses` do not. Pass both without tokenization, or both tokenized"
        )
    have_capitals = sum(text != text.lower() for text in references) >= _MANY
    if not lowercase and have_capitals and all(text == text.lower() for text in hypotheses):
        yield (
            "A hundred `references` or more have capitals, but none of the `hypotheses` does. "
            "`lowercase=True` scores both in lower case"
        )


def _exact_match(hypotheses: Sequence[str], references: References, lowercase: bool) -> float:
    """Returns the percentage of texts that equal a reference, ignoring extra white space."""

    def key(text: str) -> str:
        return " ".join((text.lower() if lowercase else text).split())

    equal = sum(
        key(hypothesis) in {key(text) for text in ([each] if isinstance(each, str) else each)}
        for hypothesis, each in zip(hypotheses, references, strict=True)
    )
    return 100 * equal / len(hypotheses)
