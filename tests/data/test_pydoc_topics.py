import re

from keras_drill.data import EncodedText, Vocabulary, WordTokenizer, pydoc_topics


def test_splits_share_no_paragraph_and_are_the_same_each_time(tmp_path):
    corpus = pydoc_topics(tmp_path / "a")
    splits = {name: list(lines) for name, lines in corpus.splits.items()}
    paragraphs = [line for lines in splits.values() for line in lines]
    assert len(set(paragraphs)) == len(paragraphs)
    again = pydoc_topics(tmp_path / "b")
    assert {name: list(lines) for name, lines in again.splits.items()} == splits


def test_it_is_prose(tmp_path):
    corpus = pydoc_topics(tmp_path)
    for name, least in (("train", 20_000), ("valid", 3_000), ("test", 3_000)):
        lines = [line.decode() for line in corpus.splits[name]]
        assert sum(len(line.split()) for line in lines) > least
        for line in lines:
            assert line == line.strip() and "  " not in line
            assert not re.search(r'>>>|::=|"|^\.\. ', line)


def test_few_unknown_words(tmp_path):
    corpus, tokenizer = pydoc_topics(tmp_path), WordTokenizer()
    vocabulary = Vocabulary.build(corpus.train, tokenizer, min_count=2)
    test = EncodedText.encode(corpus.test, tokenizer, vocabulary)
    assert (test.ids == vocabulary.unknown_id).mean() < 0.1
