"""Bytes that nobody would write, and what may happen to those of a file."""

import contextlib
import gzip

from hypothesis import strategies as st

_PARTS = [
    *(b"<unk>", b"<eos>", b"a", b"\n", b"\r", b" ", b"\t", b"7", b"__eou__", b"\xff", b"\0"),
    *("\u2028".encode(), "\ufeff".encode(), "é".encode(), "\x85".encode(), b"\x1f\x8b", b"-1"),
    *(b"9" * 30, b'"', b",", b"##", b"nan", b"\x1c"),
]
TEXTS = st.one_of(
    st.lists(st.sampled_from(_PARTS), max_size=30).map(b"".join),
    st.binary(max_size=60),
    st.text(max_size=30).map(lambda text: text.encode("utf-8", "surrogatepass")),
    st.binary(max_size=30).map(gzip.compress),
)
# Where, what happens there, and what stands there afterwards.
CHANGES = st.lists(
    st.tuples(
        st.integers(0, 1 << 16),
        st.sampled_from(["flip", "cut", "insert", "overwrite", "remove"]),
        st.binary(min_size=1, max_size=5),
    ),
    min_size=1,
    max_size=3,
)
# Values of JSON where others are expected.
JSON = st.recursive(
    st.sampled_from([None, True, -1, 0, 1, 7.5, float("nan"), float("inf"), 10**30, "", "x"])
    | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=5,
)


def change(content, changes):
    """Bytes after all of these `CHANGES`."""
    for number, how, what in changes:
        place = number % (len(content) + 1)
        before, after = content[:place], content[place:]
        if how == "flip":
            content = before + bytes(byte ^ 1 << number % 8 for byte in after[:1]) + after[1:]
        elif how == "cut":
            content = before
        elif how == "insert":
            content = before + what + after
        elif how == "overwrite":
            content = before + what + after[len(what) :]
        else:
            content = before + after[len(what) :]
    return content


def replace_inside(document, number, value):
    """A JSON document with another value in one of its places, the `number`th."""
    places = []

    def walk(inner):
        if isinstance(inner, dict | list):
            for key in inner if isinstance(inner, dict) else range(len(inner)):
                places.append((inner, key))
                walk(inner[key])

    root = [document]
    walk(root)
    inner, key = places[number % len(places)]
    inner[key] = value
    return root[0]


@contextlib.contextmanager
def clear_errors(*kinds):
    """Lets errors pass that were meant: of these kinds, with a message that says something."""
    try:
        yield
    except kinds as error:
        assert type(error) in kinds, repr(error)  # a UnicodeDecodeError is a ValueError as well
        assert len(str(error)) > 20, repr(error)
