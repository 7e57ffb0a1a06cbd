"""Scores of texts against references: BLEU, chrF and plainer figures, by sacrebleu."""

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
    """Scores of texts against references, the more the better, made by `score_texts`.

    Args:
        sentences: Number of texts.
        bleu: BLEU of the corpus with n-grams up to 4, from 0 to 100.
        bleu_1: The same with single words only, as papers on dialog report it.
        chrf: chrF of the corpus (character n-grams up to 6, β = 2), from 0 to 100.
        exact_match: Percentage of the texts that are equal to a reference.
        length_ratio: Words of the texts over words of the references; NaN without the latter.
        bleu_signature: sacrebleu's signature of `bleu`. `bleu_1` differs in the order of n-grams,
            which signatures omit.
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

    Texts are those that a reader sees: no subword pieces, no spaces before punctuation. Figures of
    different papers compare when the signatures are equal.

    Args:
        hypotheses: The texts to score.
        references: The right texts: a text, or several that are equally right.
        tokenize: sacrebleu's tokenizer for BLEU: `"13a"` for languages with spaces, `"zh"`,
            `"ja-mecab"`, `"char"`, ..., and `"none"` for texts that are words with spaces between.
        lowercase: Whether upper and lower case count as equal.

    Raises:
        ImportError: sacrebleu is not installed.

    Warns:
        UserWarning: A hundred texts and more end in a full stop after a space, or their references
            do and they do not, or a hundred references have capitals and no text has one.

    Example:

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
    """Share of different n-grams among all n-grams of the texts: distinct-n, from 0 to 1.

    The share falls with the amount of text, so compare models on equally many texts. The paper
    divides by the number of words; this divides by the number of n-grams, as most papers since. For
    n = 1 they are the same.

    Args:
        texts: Outputs of a model. Texts shorter than n words have no n-grams.
        n: Words in an n-gram.
        tokenize: sacrebleu's tokenizer, see `score_texts`.

    Returns:
        The share; NaN when there are no n-grams.

    Example:

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
        texts: For example the target side of the training set.
        tokenize: sacrebleu's tokenizer, see `score_texts`.
        lowercase: Whether upper and lower case count as equal.

    Example:

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
    """Each text as the list of its words, see `count_words`."""
    tokenizer = bleu_metric(tokenize, lowercase).tokenizer
    return (tokenizer((text.lower() if lowercase else text).rstrip()).split() for text in texts)


def import_sacrebleu() -> ModuleType:
    """The library, or an error that says how to get it."""
    try:
        import sacrebleu
    except ImportError as error:
        raise ImportError(
            "Evaluating texts needs sacrebleu: pip install keras_drill[translation]"
        ) from error
    return sacrebleu


def bleu_metric(tokenize: str, lowercase: bool, **options: bool) -> "BLEU":
    """sacrebleu's BLEU, its tokenizer's name checked."""
    metric = import_sacrebleu().BLEU
    if tokenize not in metric.TOKENIZERS:
        raise ValueError(
            f"`tokenize` must be one of {', '.join(metric.TOKENIZERS)}. Received: {tokenize!r}"
        )
    # What looks like tokenized text would be reported at every score: `score_texts` warns once.
    return metric(tokenize=tokenize, lowercase=lowercase, force=True, **options)


def chrf_metric(lowercase: bool) -> "CHRF":
    """sacrebleu's chrF2."""
    return import_sacrebleu().CHRF(lowercase=lowercase)


def reference_streams(references: References) -> list[list[Any]]:
    """References in sacrebleu's layout: the first of all texts, the second of all, ..., and `None`,
    which its type hints leave out, where a text has no more.

    >>> reference_streams(["a", ["b", "c"]])
    [['a', 'b'], [None, 'c']]
    """
    lists = [[each] if isinstance(each, str) else list(each) for each in references]
    most = max(map(len, lists))
    return [[each[place] if place < len(each) else None for each in lists] for place in range(most)]


def check_texts(
    hypotheses: Sequence[str], references: References, name: str = "hypotheses"
) -> None:
    """Refuses texts at which sacrebleu would fail, or which it would silently drop."""
    if isinstance(hypotheses, str) or isinstance(references, str):
        raise ValueError(f"`{name}` and `references` must be sequences of texts. Received: a str")
    if len(hypotheses) != len(references) or len(hypotheses) == 0:
        raise ValueError(
            f"`{name}` and `references` must have the same length, at least 1. "
            f"Received: {len(hypotheses)} and {len(references)}"
        )
    for place, (hypothesis, each) in enumerate(zip(hypotheses, references, strict=True)):
        is_text = isinstance(hypothesis, str)
        allowed = [each] if isinstance(each, str) else each
        is_list = isinstance(allowed, Sequence) and len(allowed) > 0
        if not (is_text and is_list and all(isinstance(text, str) for text in allowed)):
            raise ValueError(
                f"`{name}` must be strings, and `references` strings or non-empty sequences of "
                f"strings. Received at {place}: {hypothesis!r} and {each!r}"
            )


def _different_steps(
    hypotheses: Sequence[str], references: Sequence[str], tokenize: str, lowercase: bool
) -> Iterator[str]:
    """Signs that texts and references did not go through the same steps before.

    The messages have no numbers, so that Python shows each once.
    """
    if not any(text.strip() for text in hypotheses):
        return
    cut, cut_references = (
        sum(text.endswith(" .") for text in texts) for texts in (hypotheses, references)
    )
    if tokenize != "none" and cut >= _MANY:
        yield (
            "A hundred `hypotheses` or more end in ' .', as texts do that were cut into words: "
            "their BLEU does not compare with that of texts as they are written"
        )
    elif cut_references >= _MANY and 2 * cut < cut_references:
        yield (
            "A hundred `references` or more end in ' .', as texts do that were cut into words, and "
            "the `hypotheses` do not: give both as they are written, or both cut into words"
        )
    have_capitals = sum(text != text.lower() for text in references) >= _MANY
    if not lowercase and have_capitals and all(text == text.lower() for text in hypotheses):
        yield (
            "No text of the `hypotheses` has capitals, and a hundred `references` or more do: "
            "`lowercase=True` scores both in lower case"
        )


def _exact_match(hypotheses: Sequence[str], references: References, lowercase: bool) -> float:
    """Percentage of texts that are a reference but for runs of white space, and around them."""

    def key(text: str) -> str:
        return " ".join((text.lower() if lowercase else text).split())

    equal = sum(
        key(hypothesis) in {key(text) for text in ([each] if isinstance(each, str) else each)}
        for hypothesis, each in zip(hypotheses, references, strict=True)
    )
    return 100 * equal / len(hypotheses)
