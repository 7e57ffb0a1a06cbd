import pytest

from keras_drill.data import (
    DialogCorpus,
    EncodedText,
    PairBatches,
    ParallelCorpus,
    SentencePieceTokenizer,
    Vocabulary,
    WhitespaceTokenizer,
    WordPieceTokenizer,
    WordTokenizer,
)

DIALOGUES = {
    "train": ["a b __eou__ c __eou__ d __eou__ e __eou__", "f __eou__ g", "alone __eou__", ""],
    "validation": ["h __eou__ i __eou__"],
    "test": ["f __eou__ g __eou__", "j __eou__  __eou__ k __eou__"],
}


@pytest.fixture
def folder(tmp_path):
    for split, lines in DIALOGUES.items():
        (tmp_path / f"dialogues_{split}.txt").write_text("".join(f"{line}\n" for line in lines))
    return tmp_path


def pairs_of(corpus):
    return {
        name: [(s.decode(), t.decode()) for s, t in text] for name, text in corpus.splits.items()
    }


def test_each_turn_answers_those_before(folder):
    found = pairs_of(DialogCorpus(folder))
    assert found == {
        "train": [("a b", "c"), ("c", "d"), ("d", "e"), ("f", "g")],
        "valid": [("h", "i")],
        "test": [("f", "g"), ("j", "k")],
    }
    two = pairs_of(DialogCorpus(folder, context_turns=2, separator="<sep>"))["train"]
    assert two == [("a b", "c"), ("a b <sep> c", "d"), ("c <sep> d", "e"), ("f", "g")]
    every = pairs_of(DialogCorpus(folder, context_turns=None))["train"]
    assert every[2] == ("a b __eou__ c __eou__ d", "e")


def test_a_context_has_the_last_turns(tmp_path):
    """Against contexts that are cut from all turns."""
    turns = [f"t{number}" for number in range(31)]
    (tmp_path / "train.txt").write_text(" | ".join(turns) + "\n")
    for number in (1, 2, 5, 31, 100):
        corpus = DialogCorpus({"train": tmp_path / "train.txt"}, "|", number, "|")
        expected = [
            (" | ".join(turns[:place][-number:]), turns[place]) for place in range(1, len(turns))
        ]
        assert pairs_of(corpus)["train"] == expected


def test_repeated_dialogues_are_dropped_from_the_training_text_alone(folder):
    corpus = DialogCorpus(folder, drop_repeated=True)
    assert corpus.num_dropped == 1
    found = pairs_of(corpus)
    assert found["train"] == [("a b", "c"), ("c", "d"), ("d", "e")]
    kept = DialogCorpus(folder)
    assert kept.num_dropped == 0
    for split in ("valid", "test"):
        assert found[split] == pairs_of(kept)[split]
        assert corpus.splits[split].source.fingerprint() == kept.splits[split].source.fingerprint()
    assert corpus.splits["train"].source.fingerprint() != kept.splits["train"].source.fingerprint()


def test_sides_are_told_apart(folder):
    options = [{}, {"context_turns": 2}, {"context_turns": None}, {"separator": "|"}]
    corpora = [DialogCorpus(folder, **some) for some in options]
    prints = [c.splits["train"].source.fingerprint() for c in corpora]
    prints += [c.splits["train"].target.fingerprint() for c in corpora[:1]]
    assert len(set(prints)) == 5
    again = DialogCorpus(folder).splits["train"]
    assert again.source.fingerprint() == prints[0]


def test_two_columns_are_pairs(tmp_path):
    (tmp_path / "train.tsv").write_text("Hi .\tHello .\nBye .\t\n")
    assert pairs_of(ParallelCorpus(tmp_path))["train"] == [("Hi .", "Hello ."), ("Bye .", "")]


TOKENIZERS = {
    "whitespace": lambda lines: WhitespaceTokenizer(),
    "words": lambda lines: WordTokenizer(),
    "bpe": lambda lines: SentencePieceTokenizer.train(lines, 31, symbols=["__eou__"]),
    "word pieces": lambda lines: WordPieceTokenizer.train(lines, 41, symbols=["__eou__"]),
}


@pytest.mark.parametrize("shared", [True, False])
@pytest.mark.parametrize("tokenizer", TOKENIZERS)
def test_one_tokenizer_for_both_sides_or_one_each(folder, tokenizer, shared):
    train = DialogCorpus(folder, context_turns=None).splits["train"]
    texts = [[*train.source, *train.target]] * 2 if shared else [train.source, train.target]
    special = ["<pad>", "<unk>", "<eos>", "<sos>"]
    sides, vocabularies = [], []
    for side, text in zip((train.source, train.target), texts, strict=True):
        made = TOKENIZERS[tokenizer](text)
        words = made.tokenize(list(text)).flat_values.numpy().tolist()
        tokens = sorted({word.decode() for word in words})
        vocabularies.append(Vocabulary([*special, *tokens]))
        sides.append(EncodedText.encode(side, made, vocabularies[-1]))
    assert "__eou__" in vocabularies[0].tokens
    assert ("__eou__" in vocabularies[1].tokens) == shared
    separator = vocabularies[0].tokens.index("__eou__")
    assert (sides[0].ids == separator).sum() == 0 + 1 + 2 + 0
    batches = PairBatches(*sides, end_id=2, start_id=3, batch_size=2)
    assert sum(labels.shape[0] for _, labels, _ in batches.dataset()) == 4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"context_turns": 0}, "`context_turns` must be at least 1"),
        ({"turn_end": ""}, "`turn_end` must not be empty"),
        ({"separator": "a b"}, "`separator` must be one word.*separator='a b'"),
        ({"separator": ""}, "`separator` must be one word"),
    ],
)
def test_wrong_options(folder, options, message):
    with pytest.raises(ValueError, match=message):
        DialogCorpus(folder, **options)


def test_a_text_without_dialogues(folder):
    corpus = DialogCorpus(folder, turn_end="</turn>")
    with pytest.raises(ValueError, match=r"'</turn>' after each turn, but no.*dialogues_train"):
        list(corpus.splits["train"].source)
