"""A corpus of English prose from Python's documentation."""

import os
import re
import string
import unicodedata
from collections.abc import Iterator
from pathlib import Path

from keras_drill.data.atomic import replace_file
from keras_drill.data.corpus import Corpus

# Listed by name and not sampled, so that other versions of Python have the same split.
_HELD_OUT = {
    "valid": ("assignment", "execmodel", "import", "naming", "exceptions", "sequence-types"),
    "test": ("attribute-access", "comparisons", "function", "typesseq-mutable", "with"),
}
_BULLET = re.compile(r"^(?:\*|\d+\.|\[\d+\]) +")
_VERSION_NOTE = re.compile(r"^(?:New|Added|Changed|Deprecated|Removed)\b.{0,40} (?:version|since) ")
_CODE = re.compile(
    r">>>|::=|^\.\.\. |^[-+|=*~^#>]{1,3}|[=+|-]{5}|\w = \w|: \w+ = | # |\w\[.*\] = |;$",
    re.MULTILINE,
)
_OPENING = string.ascii_uppercase + '"*“('  # a literal or emphasised word may begin a sentence
# A literal's asterisks are its own; elsewhere they mark emphasis.
_MARKED = re.compile(r'"([^"]*)"|\*{1,2}([^\s*](?:[^*]*[^\s*])?)\*{1,2}')


def pydoc_topics(folder: str | os.PathLike) -> Corpus:
    """Writes a small English corpus, the prose of the Python language reference, to a folder.

    The corpus needs no download: Python contains its language reference as text for `help()`, in
    `pydoc_data.topics`. This function removes tables, code, grammar, headings, version notes and
    markup. It writes the files `train.txt`, `valid.txt` and `test.txt`, with one paragraph per
    line. Topics of the reference overlap, so each paragraph is kept only once. Paragraphs of the
    validation and test topics are not in the training text. The text differs slightly between
    versions of Python.

    Args:
        folder: Output folder, created if necessary. Files are written atomically.

    Returns:
        The `Corpus` of the folder. Use `WordTokenizer` for its text.

    Example:

    >>> from keras_drill.data import pydoc_topics
    >>> corpus = pydoc_topics(getfixture("tmp_path"))
    >>> list(corpus.splits)
    ['train', 'valid', 'test']
    """
    try:
        from pydoc_data.topics import topics
    except ImportError as error:
        raise ImportError(
            "This installation of Python has no `pydoc_data.topics`, which some systems package "
            f"separately. Install the module, or use another text. Received: {error}"
        ) from error
    held_out = {name for names in _HELD_OUT.values() for name in names}
    parts = {**_HELD_OUT, "train": tuple(sorted(set(topics) - held_out))}
    seen: set[str] = set()
    for split in ("test", "valid", "train"):
        lines = []
        for name in parts[split]:
            for paragraph in _paragraphs(topics.get(name, "")):
                if paragraph not in seen:
                    seen.add(paragraph)
                    lines.append(paragraph)
        replace_file(Path(folder) / f"{split}.txt", "".join(f"{line}\n" for line in lines))
    return Corpus(folder)


def _paragraphs(text: str) -> Iterator[str]:
    """Returns the paragraphs of prose in one topic, each on one line, without markup."""
    text = unicodedata.normalize("NFKC", text)
    for block in re.split(r"\n\s*\n", text):
        indented = [line for line in block.split("\n") if line.strip()]
        if not indented:
            continue
        indent = min(len(line) - len(line.lstrip()) for line in indented)
        lines = [line[indent:].rstrip() for line in indented]
        bullet = _BULLET.match(lines[0])
        if bullet:
            lines = [line[bullet.end() :] for line in lines]
        if any(line.startswith(" ") for line in lines[1:]):
            continue  # code, a table or a definition list
        marked = "\n".join(lines)
        if _CODE.search(_MARKED.sub("x", marked)):
            continue
        paragraph = _without_markup(marked)
        if lines[0][0] in _OPENING and _is_prose(paragraph):
            yield paragraph


def _without_markup(text: str) -> str:
    text = re.sub(r"(?<=[a-z])-\n(?=[a-z])", "-", text)
    text = " ".join(text.split())
    text = re.sub(r" \[\d+\]", "", text)  # footnotes
    text = _MARKED.sub(lambda match: match[1] or match[2] or "", text)
    return " ".join(text.replace('"', "").replace("()", "").split())


def _is_prose(paragraph: str) -> bool:
    words = paragraph.split()
    plain = sum(bool(re.fullmatch(r"[(“‘]?[A-Za-z'’-]+[.,;:!?)”’]*", word)) for word in words)
    return (
        len(words) >= 6
        and plain >= 0.7 * len(words)
        and paragraph[-1] in ".:!?)”"
        and not _VERSION_NOTE.match(paragraph)
    )
