import dataclasses
import re
from xml.etree import ElementTree

import numpy as np
import pytest

pytest.importorskip("sacrebleu")

from keras_drill.metrics import count_words
from keras_drill.workbench.report.page.write_page import write_page
from keras_drill.workbench.tasks.sequence_to_sequence.sections import (
    AttentionMap,
    EvaluatedSystem,
    EvaluatedTranslations,
    attention_section,
    differences_section,
    examples_section,
    length_section,
    scores_section,
    summarize_scores,
    translation_sections,
    word_accuracy_section,
)
from tests.metrics.test_text_scores import made_up
from tests.workbench.report.test_write_report import _HOSTILE, _Page

HYPOTHESES, REFERENCES = made_up()
BETTER = [*REFERENCES[:20], *HYPOTHESES[20:]]
SOURCES = [f"Satz {text}" for text in REFERENCES]


def attention(source, target, seed=0):
    words, written = tuple(source.split()), tuple(target.split())
    weights = np.random.default_rng(seed).dirichlet(np.ones(len(words)), size=len(written))
    return AttentionMap(words, written, weights)


@pytest.fixture(scope="module")
def evaluated():
    looked = {place: attention(SOURCES[place], HYPOTHESES[place]) for place in (2, 5)}
    return EvaluatedTranslations.evaluate(
        SOURCES,
        REFERENCES,
        [
            EvaluatedSystem("tied", HYPOTHESES, "weight tying", 8.25, looked),
            EvaluatedSystem("drill", BETTER, "DRILL, depth 4", 7.5, {5: looked[5]}),
            EvaluatedSystem("third", [*HYPOTHESES[:-1], ""], "softmax"),
        ],
        count_words(REFERENCES),
    )


def text_of(node):
    return node if isinstance(node, str) else "".join(node.itertext())


def rows_of(section, number=0):
    """The cells of a table of a section, the header first."""
    table = list(section.iter("table"))[number]
    return [[text_of(cell) for cell in row] for row in table.iter("tr")]


def test_scores_are_in_the_table_with_their_differences(evaluated):
    section = scores_section(evaluated)
    header, tied, drill, third = rows_of(section)
    bleu = evaluated.comparison.bootstrap.bleu
    low, high = bleu["tied"].interval
    assert tied[1] == f"{bleu['tied'].score:.2f} ± {(high - low) / 2:.1f}"
    assert header[1:5] == ["BLEU", "BLEU difference", "chrF", "chrF difference"]
    difference = bleu["drill"].score - bleu["tied"].score
    assert drill[2].startswith(f"+{difference:.2f}p ") and tied[2] == "–"
    assert tied[-1] == "8.25" and third[-1] == "–"
    bold = [text_of(each) for each in section.iter("strong")]
    assert {drill[1], f"+{difference:.2f}", "7.50"} <= set(bold)
    assert not any(each.startswith("−") for each in bold)  # the third is not clearly worse
    for signature in (evaluated.comparison.bootstrap.bleu_signature, "nc:6"):
        assert signature in text_of(section)


def test_the_outcome_is_one_sentence(evaluated):
    bleu = evaluated.comparison.bootstrap.bleu
    difference = bleu["drill"].score - bleu["tied"].score
    said = "".join(map(text_of, summarize_scores(evaluated)))
    assert said == (
        f"Of 3 runs, drill has the highest BLEU: {bleu['drill'].score:.2f}, {difference:.2f} above "
        f"tied ({bleu['tied'].score:.2f})."
    )
    chance = dataclasses.replace(bleu["drill"], p_value=0.2)
    bootstrap = dataclasses.replace(evaluated.comparison.bootstrap, bleu=bleu | {"drill": chance})
    comparison = dataclasses.replace(evaluated.comparison, bootstrap=bootstrap)
    unsure = dataclasses.replace(evaluated, comparison=comparison)
    assert "the difference may be due to chance" in "".join(map(text_of, summarize_scores(unsure)))


def test_bins_are_drawn_and_in_the_table(evaluated):
    section = length_section(evaluated.comparison.by_length)
    header, *rows = rows_of(section)
    assert header == ["words in the source", "sentences", "tied", "drill", "third"]
    assert [row[0] for row in rows] == [bin.label for bin in evaluated.comparison.by_length]
    assert sum(int(row[1]) for row in rows) == len(SOURCES)
    plots = [svg for svg in section.iter("svg") if svg.get("role") == "img"]
    assert len(plots) == 2 and all(
        "BLEU of tied, drill, third" in p.get("aria-label") for p in plots
    )


def test_words_are_by_frequency_with_precision_and_recall_below(evaluated):
    accuracies = evaluated.comparison.by_frequency
    section = word_accuracy_section(accuracies)
    header, *rows = rows_of(section)
    assert header == [
        "training count", "words", "different", "tied", "drill", "third", "drilldifference",
        "thirddifference",
    ]  # fmt: skip
    drill = accuracies.overall.systems["drill"]
    assert rows[-1][:2] == ["all", f"{accuracies.overall.wanted:,}"]
    assert rows[-1][4] == f"{100 * drill.f1:.1f}"
    low, high = (f"{100 * end:+.1f}" for end in drill.difference_interval)
    assert rows[-1][6] == f"{100 * drill.difference:+.1f}{low} to {high}"
    assert f"{100 * drill.difference:+.1f}" in [text_of(each) for each in section.iter("strong")]
    assert len(rows) == len(accuracies.bins) + 1
    _, *folded = rows_of(section, 1)
    assert folded[-1][3:5] == [f"{100 * drill.precision:.1f}", f"{100 * drill.recall:.1f}"]


def shown(references, hypothesis, source="Quelle"):
    """The lines of the only example of a page: those of the texts, and the system's as HTML."""
    references = [references]
    system = EvaluatedSystem("x", [hypothesis])
    evaluated = EvaluatedTranslations.evaluate([source], references, [system])
    *plain, marked = examples_section(evaluated).iter("dd")
    inside = ElementTree.tostring(marked, encoding="unicode", method="html")
    inside = re.sub(r"^<dd[^>]*>|</dd>$", "", inside)
    return [text_of(each) for each in plain], re.sub(r"<span class=.gap.*?</span>", "[…]", inside)


@pytest.mark.parametrize(
    ("reference", "hypothesis", "marked"),
    [
        ("A red dog.", "A red dog.", "A red dog."),
        ("A red dog.", "A blue dog.", "A <mark>blue</mark> dog."),
        ("A red dog.", "A dog.", "A […]dog."),
        ("A dog.", "A big red dog.", "A <mark>big red</mark> dog."),
        ("A dog runs.", "A dog", "A dog […]"),
        ("A dog.", "One dog!", "<mark>One</mark> dog<mark>!</mark>"),
        ("A small dog runs", "dog runs a", "[…]dog runs <mark>a</mark>"),
        ("A dog", "", "[…]"),
        ("", "  ", '<span class="note">(nothing)</span>'),
        ("a", "<b>a</b>", "<mark>&lt;b&gt;a&lt;/b&gt;</mark>"),
        ("der Hund", "der כלב groß", "der <mark><bdi>כלב</bdi> groß</mark>"),
    ],
)
def test_what_differs_from_the_reference_is_marked(reference, hypothesis, marked):
    assert shown(reference, hypothesis)[1] == marked


def test_of_several_references_all_are_shown_and_the_nearest_is_compared():
    plain, marked = shown(["A cat sits.", "The dog runs."], "The dog sits.")
    assert plain == ["Quelle", "A cat sits.", "The dog runs."]
    assert marked == "The dog <mark>sits</mark>."


def test_examples_are_spread_over_the_test_set(evaluated):
    section = examples_section(evaluated, number=3)
    assert [text_of(each) for each in section.iter("figcaption")] == [
        "sentence 1", "sentence 27", "sentence 53",
    ]  # fmt: skip
    assert "3 of the 53 sentences" in text_of(section)
    assert len(list(section.iter("dd"))) == 3 * 5


def test_the_sentences_that_differ_most_are_shown_with_their_scores(evaluated):
    section = differences_section(evaluated)
    heads = [text_of(each) for each in section.iter("h3")]
    assert heads == ["drill ahead of tied", "tied ahead of third"]
    best = evaluated.comparison.differences["drill"][0]
    first = next(section.iter("figure"))
    names = [text_of(each) for each in first.iter("dt")]
    scores = [f"tiedchrF {best.score_a:.1f}", f"drillchrF {best.score_b:.1f}"]
    assert names == ["source", "reference", *scores]
    assert text_of(next(first.iter("figcaption"))) == f"sentence {best.index + 1}"


def test_equal_systems_are_said_to_be_equal():
    systems = [EvaluatedSystem(name, HYPOTHESES) for name in "ab"]
    evaluated = EvaluatedTranslations.evaluate(SOURCES, REFERENCES, systems)
    assert "All sentences have equal scores." in text_of(differences_section(evaluated))


def test_attention_is_a_table_of_filled_cells(evaluated):
    section = attention_section(evaluated)
    captions = [text_of(each) for each in section.iter("caption")]
    assert captions == [
        "Attention of tied in sentence 3",
        "Attention of tied in sentence 6",
        "Attention of drill in sentence 6",
    ]
    looked = evaluated.systems[0].attention[2]
    header, *rows = rows_of(section)
    assert header == ["", *looked.source_words]
    assert [row[0] for row in rows] == list(looked.target_words)
    np.testing.assert_allclose(
        [[float(cell) for cell in row[1:]] for row in rows], looked.weights, atol=0.0051
    )
    filled = [each.get("style") for each in next(section.iter("tbody")).iter("i")]
    opacities = [float(style.removeprefix("opacity: ")) for style in filled]
    np.testing.assert_allclose(opacities, looked.weights.ravel(), rtol=0.01)


def test_attention_must_fit_its_words():
    with pytest.raises(
        ValueError, match=r"`weights` must have the shape .* = \(1, 2\).* Received: "
    ):
        AttentionMap(("a", "b"), ("c",), np.ones((2, 1)))


def test_only_what_there_is_has_a_section(evaluated):
    def heads(evaluated):
        return [text_of(section.find("h2")) for section in translation_sections(evaluated)]

    assert heads(evaluated) == [
        "Scores of the texts", "By length of the source", "Words by frequency",
        "Texts side by side", "Where the models differ most", "Attention",
    ]  # fmt: skip
    alone = EvaluatedTranslations.evaluate(
        SOURCES, REFERENCES, [EvaluatedSystem("tied", HYPOTHESES)]
    )
    assert heads(alone) == ["Scores of the texts", "By length of the source", "Texts side by side"]
    header, _ = rows_of(scores_section(alone))
    assert "perplexity" not in header and "BLEU difference" not in header
    said = "".join(map(text_of, summarize_scores(alone)))
    assert said == f"tied reaches a BLEU of {alone.comparison.scores['tied'].bleu:.2f}."


STRANGE = [
    _HOSTILE, "\x00\x1b\ud800 end", "", "שלום to \u202eyou", "$\\frac{1}{$ x_1", "x" * 5003, "a\nb",
    "w " * 3001,
]  # fmt: skip


@pytest.mark.slow
def test_any_text_can_be_shown(tmp_path):
    systems = [
        EvaluatedSystem(
            _HOSTILE, STRANGE[::-1], _HOSTILE, attention={0: attention(_HOSTILE, "a b")}
        ),
        EvaluatedSystem("$\\frac{1}{$", STRANGE, attention={3: attention(*STRANGE[3:5])}),
    ]
    printable = [text.replace("\ud800", "") for text in STRANGE]  # sacrebleu takes these as well
    evaluated = EvaluatedTranslations.evaluate(STRANGE, printable, systems, {"end": 3})
    path = write_page(tmp_path / "page.html", "x", summarize_scores(evaluated), [
        *translation_sections(evaluated)
    ])  # fmt: skip
    text = path.read_text(encoding="utf-8")
    page = _Page(text)
    assert not {tag for tag, _ in page.elements} & {"script", "img"}
    assert "//" not in text.replace("//evil.example/x", "")
    assert page.texts.count(_HOSTILE) >= 6 and "��\\ud800 end" in page.text
    assert "<bdi>\u202eyou</bdi>" in text and {"dir": "ltr"} in page.having("dd")
    assert "(nothing)" in page.texts
    assert "x" * 1000 + "…" in page.text and "x" * 1001 not in page.text
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert len(page.having("caption")) == len(page.having("table"))


def test_a_text_that_is_mostly_from_the_right_is_set_from_the_right():
    evaluated = EvaluatedTranslations.evaluate(
        ["כל שלום to"], ["hi"], [EvaluatedSystem("x", ["hi"])]
    )
    source, *others = examples_section(evaluated).iter("dd")
    assert source.get("dir") == "rtl" and {each.get("dir") for each in others} == {"ltr"}


@pytest.mark.parametrize("names", [[], ["a", "a"]])
def test_systems_need_different_names(names):
    with pytest.raises(ValueError, match=r"`systems` must be one or several .* Received: "):
        EvaluatedTranslations.evaluate(
            SOURCES, REFERENCES, [EvaluatedSystem(name, HYPOTHESES) for name in names]
        )
