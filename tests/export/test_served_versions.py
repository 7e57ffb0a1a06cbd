import multiprocessing

import pytest

from keras_drill.export.saved_model_version import new_version
from keras_drill.export.served_versions import ServedVersions


@pytest.fixture
def model(tmp_path):
    folder = tmp_path / "model"
    (folder / "variables").mkdir(parents=True)
    (folder / "variables" / "data").write_bytes(b"weights")
    return folder


@pytest.fixture
def served(tmp_path):
    return ServedVersions(tmp_path / "saved_models" / "cats")


def push(served, model, name):
    with served.lock():
        return served.push(model, {"model": name})


def test_versions_are_copies_that_tell_where_they_came_from(served, model):
    assert served.versions() == [] and served.newest() is None
    assert [push(served, model, name) for name in "abc"] == [1, 2, 3]
    assert served.newest() == 3 and served.lineage(2) == {"model": "b"}
    assert (served.folder(2) / "variables" / "data").read_bytes() == b"weights"
    assert not (model / "assets.extra").exists()


def test_the_oldest_are_removed(served, model):
    for name in "abcd":
        push(served, model, name)
    with served.lock():
        assert served.remove_all_but(2) == [1, 2] and served.remove_all_but(2) == []
    assert served.versions() == [3, 4]
    assert {path.name for path in served.directory.iterdir()} == {"3", "4", ".lock"}


def test_a_version_that_is_rolled_back_is_hidden_and_its_number_is_not_given_again(served, model):
    for name in "abc":
        push(served, model, name)
    with served.lock():
        assert served.roll_back() == 3
    assert served.newest() == 2 and served.was_rolled_back("c") == 3
    assert served.was_rolled_back("b") is None
    assert push(served, model, "d") == 4
    with served.lock():
        assert [served.roll_back() for _ in range(4)] == [4, 2, 1, None]
    assert served.versions() == [] and served.rolled_back() == [1, 2, 3, 4]
    with new_version(served.directory, None) as folder:  # `keras-drill export` keeps to it as well
        folder.model.mkdir()
    assert folder.published.name == "5"


def test_a_push_that_fails_leaves_nothing(served, model, monkeypatch):
    push(served, model, "a")

    def fail(*args, **kwargs):
        raise OSError("no space left")

    monkeypatch.setattr("shutil.copytree", fail)
    with pytest.raises(OSError, match="no space"):
        push(served, model, "b")
    assert {path.name for path in served.directory.iterdir()} == {"1", ".lock"}


def push_many(directory, model, name):
    for number in range(7):
        push(ServedVersions(directory), model, f"{name}{number}")


def test_two_that_push_at_once_lose_and_mix_nothing(served, model):
    context = multiprocessing.get_context("fork")
    processes = [
        context.Process(target=push_many, args=(served.directory, model, name)) for name in "ab"
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(60)
        assert process.exitcode == 0
    assert served.versions() == list(range(1, 15))
    pushed = [served.lineage(version)["model"] for version in served.versions()]
    for name in "ab":
        assert [one for one in pushed if one[0] == name] == [f"{name}{n}" for n in range(7)]
