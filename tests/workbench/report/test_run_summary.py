import math

from keras_drill.workbench.report import RunSummary


def test_curves_prefer_the_perplexity_to_the_loss_that_regularizers_are_part_of():
    run = RunSummary("a", history={"loss": [7.0], "perplexity": [30.0], "val_loss": [3.0]})
    assert run.train_curve == [30.0]
    assert run.valid_curve == [math.exp(3.0)]


def test_a_loss_too_large_for_a_perplexity_is_infinite():
    assert RunSummary("a", history={"loss": [1e4, math.nan]}).train_curve[0] == math.inf


def test_kept_epoch_is_the_best_finite_one_unless_given():
    history = {"val_loss": [math.nan, 3.0, 2.5, math.inf]}
    assert RunSummary("a", history=history).kept_epoch == 3
    assert RunSummary("a", history=history, best_epoch=2).kept_epoch == 2
    assert RunSummary("a").kept_epoch is None
