"""Which cases of parametrized tests run, by the options of the root's `conftest.py`."""

import zlib
from types import SimpleNamespace

import pytest

from conftest import pytest_collection_modifyitems


class Item(SimpleNamespace):
    __hash__ = object.__hash__


NAMES = [
    "tests/a.py::test_one",
    *(f"tests/a.py::test_many[{case}]" for case in range(7)),
    *(f"tests/conformance/b.py::test_layers[{case}]" for case in range(5)),
]


def selected(**options):
    items, left_out = [Item(nodeid=name) for name in NAMES], []
    hook = SimpleNamespace(pytest_deselected=lambda items: left_out.extend(items))
    options = {"cases": None, "other_cases": None, "shard": None, **options}
    pytest_collection_modifyitems(SimpleNamespace(getoption=options.get, hook=hook), items)
    assert len(items) + len(left_out) == len(NAMES)
    return [item.nodeid for item in items]


def test_without_an_option_all_run():
    assert selected() == NAMES


ONE = zlib.crc32(b"tests/a.py::test_many") % 7


@pytest.mark.parametrize("count, cases", [(1, [ONE]), (2, [0, 6]), (3, [0, 3, 6]), (11, range(7))])
def test_cases_are_spread_from_the_first_to_the_last(count, cases):
    many = [f"tests/a.py::test_many[{case}]" for case in cases]
    assert selected(cases=count) == [NAMES[0], *many, *NAMES[8:]]


@pytest.mark.parametrize("count", [1, 2, 11])
def test_the_other_cases_are_those_that_are_left(count):
    some = set(selected(cases=count))
    assert selected(other_cases=count) == [name for name in NAMES if name not in some]


@pytest.mark.parametrize("parts", [1, 7])
def test_every_test_is_in_one_shard_with_its_file(parts):
    shards = [selected(shard=f"{part}/{parts}") for part in range(1, parts + 1)]
    assert sorted(name for shard in shards for name in shard) == sorted(NAMES)
    for shard in shards:
        for file in ("tests/a.py", "tests/conformance/b.py"):
            assert sum(name.startswith(file) for name in shard) in (0, 8 if "a.py" in file else 5)
    assert len(list(filter(None, shards))) == min(parts, 2)


@pytest.mark.parametrize("shard", ["0/6", "7/6", "1/0", "2", "a/b"])
def test_a_shard_that_does_not_exist_is_refused(shard):
    with pytest.raises(pytest.UsageError, match=f"from 1 to N. Received: {shard}"):
        selected(shard=shard)
