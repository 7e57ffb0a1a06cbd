"""Makes a folder of German-English pairs: Tatoeba's for training, IWSLT 2014's for evaluation.

    python -m benchmarks.tatoeba_pairs --tatoeba tatoeba --iwslt iwslt --folder pairs

`tatoeba` has `tatoeba.de` and `tatoeba.en`, sorted by length and with several translations of a
sentence. The program shuffles the pairs, and keeps 2,000 English sentences with all their German
translations for validation. `iwslt` has `valid.de` and `valid.en`, lower-cased and tokenized by
Moses. The program undoes the tokenization and lower-cases all texts, so that both corpora have the
same format.
"""

import argparse
import random
from collections.abc import Sequence
from pathlib import Path

from sacremoses import MosesDetokenizer

LANGUAGES = ("de", "en")
Pairs = list[tuple[str, str]]


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tatoeba", required=True, type=Path)
    parser.add_argument("--iwslt", required=True, type=Path)
    parser.add_argument("--folder", required=True, type=Path, help="where to write the pairs")
    parser.add_argument("--valid", type=int, default=2000, help="sentences to validate on")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args(argv)
    train, valid = split(read(args.tatoeba, "tatoeba"), args.valid, args.seed)
    both = [MosesDetokenizer(language) for language in LANGUAGES]
    test = [
        tuple(moses.detokenize(text.split()) for moses, text in zip(both, pair, strict=True))
        for pair in read(args.iwslt, "valid")
    ]
    args.folder.mkdir(parents=True, exist_ok=True)
    for name, pairs in {"train": train, "valid": valid, "test": test}.items():
        for language, texts in zip(LANGUAGES, zip(*pairs, strict=True), strict=True):
            lines = "".join(f"{text}\n" for text in texts)
            (args.folder / f"{name}.{language}").write_text(lines, encoding="utf-8")
        print(f"{name}: {len(pairs):,} pairs")


def read(folder: Path, name: str) -> Pairs:
    texts = [(folder / f"{name}.{language}").read_text("utf-8").lower() for language in LANGUAGES]
    return list(zip(*(text.removesuffix("\n").split("\n") for text in texts), strict=True))


def split(pairs: Pairs, num_valid: int, seed: int) -> tuple[Pairs, Pairs]:
    """Shuffled pairs to train and to validate on, which have no English sentence in common.

    Example:

    >>> train, valid = split([("a", "A"), ("b", "B"), ("c", "A"), ("d", "D")], 1, seed=0)
    >>> len(train) + len(valid), {en for _, en in train} & {en for _, en in valid}
    (4, set())
    """
    rng = random.Random(seed)
    english = sorted({en for _, en in pairs})
    held_out = set(rng.sample(english, num_valid))
    pairs = rng.sample(pairs, len(pairs))
    train = [pair for pair in pairs if pair[1] not in held_out]
    return train, [pair for pair in pairs if pair[1] in held_out]


if __name__ == "__main__":
    main()
