import json

import pytest
import tensorflow as tf

from keras_drill.distribute import is_chief, strategy
from keras_drill.ops.private_interfaces import means_over_rows


def test_one_device_is_its_own_chief():
    for name in ("none", "mirrored"):
        assert strategy(name).num_replicas_in_sync == 1
        assert is_chief(strategy(name)) and not means_over_rows(strategy(name))


@pytest.mark.parametrize("name", ["parameter-server", "ps"])
def test_parameter_servers_are_refused_and_what_to_use_is_said(name):
    with pytest.raises(ValueError, match="use 'multi-worker'"):
        strategy(name)


def test_an_unknown_name_is_refused():
    with pytest.raises(ValueError, match=r"`name` must be one of .*mirrored.*Received: name='horo"):
        strategy("horovod")


@pytest.mark.parametrize(
    "text",
    [
        "", "{", "[]", "3", '{"cluster": {"worker": ["a:1"]}}',
        '{"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": 1}}',
        '{"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": -1}}',
        '{"cluster": {"worker": ["a:1"]}, "task": {"type": "chief", "index": 0}}',
    ],
)  # fmt: skip
def test_tf_config_must_name_the_workers_and_this_one(text, monkeypatch):
    monkeypatch.setenv("TF_CONFIG", text)
    with pytest.raises(ValueError, match="TF_CONFIG must be"):
        strategy("multi-worker")


def test_tf_config_without_parameter_servers(monkeypatch):
    config = {
        "cluster": {"worker": ["a:1"], "ps": ["b:1"]},
        "task": {"type": "worker", "index": 0},
    }
    monkeypatch.setenv("TF_CONFIG", json.dumps(config))
    with pytest.raises(ValueError, match="parameter servers"):
        strategy("multi-worker")


@pytest.mark.parametrize(
    ("jobs", "kind", "index", "chief"),
    [
        (("worker",), "worker", 0, True),
        (("worker",), "worker", 1, False),
        (("worker", "chief"), "chief", 0, True),
        (("worker", "chief"), "worker", 0, False),
        (("worker", "evaluator"), "evaluator", 0, False),
    ],
)
def test_one_process_of_a_cluster_is_chief(jobs, kind, index, chief):
    class Strategy:
        cluster_resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(
            tf.train.ClusterSpec({job: ["a:1", "b:1"] for job in jobs}),
            task_type=kind,
            task_id=index,
        )

    assert is_chief(Strategy()) is chief
