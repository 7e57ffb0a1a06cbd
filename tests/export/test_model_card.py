import json

from keras_drill.export import ModelCard

CARD = ModelCard(
    name="cats",
    description="A tied softmax.",
    trained="2026-01-31 13:45 UTC",
    licence="Apache-2.0",
    data={"corpus": "a|b", "lines": 36718},
    figures={"test_perplexity": 61.8999},
    weights={"kept in": "int8"},
    limits=["It knows cats only."],
    options={"head": {"kind": "tied", "depth": 3, "names": ["x", "y"]}},
    versions={"keras": "3.15"},
)


def test_a_card_is_read_by_people_and_by_programs(tmp_path):
    CARD.write(str(tmp_path))
    page = (tmp_path / "model_card.md").read_text(encoding="utf-8")
    for line in (
        "# cats",
        "Trained: 2026-01-31 13:45 UTC. Licence: Apache-2.0.",
        "| corpus | a\\|b |",
        "| lines | 36,718 |",
        "| test_perplexity | 61.9 |",
        "- It knows cats only.",
        '| head.names | ["x", "y"] |',
    ):
        assert line in page.split("\n")
    told = json.loads((tmp_path / "model_card.json").read_text(encoding="utf-8"))
    assert ModelCard(**told) == CARD
