"""Texts that users send, and some that nobody should."""

import numpy as np

NASTY = [
    b"the cat sat on a mat.",
    b"",
    b" ",
    b"\n\n",
    b"the dog\r\nran\r\n",
    b"it was there . " * 97,
    b"x" * 5003,
    b"the \xff\xfe cat \xc3",
    "שלום the \u202ecat\u202c مرحبا".encode(),
    "😀 👨\u200d👩\u200d👧 é".encode(),
    b"a\0cat\0",
    b"<eos> <unk> <pad>",
]


def random_texts(number: int, words: list[str], seed: int = 0) -> list[bytes]:
    """Texts of known words and of everything else: bytes, scripts, controls, from none to many."""
    random = np.random.default_rng(seed)
    texts = list(NASTY)
    while len(texts) < number:
        parts = []
        for kind in random.integers(0, 7, size=random.integers(0, 29)):
            if kind < 4:
                parts.append(str(random.choice(words)).encode())
            elif kind == 4:
                code_points = random.integers(0x20, 0xD800, size=random.integers(1, 9))
                parts.append("".join(map(chr, code_points)).encode())
            elif kind == 5:
                parts.append(random.bytes(random.integers(1, 7)))
            else:
                parts.append(bytes([random.choice([0, 9, 10, 13, 32])]))
        texts.append(b" ".join(parts))
    return texts[:number]
