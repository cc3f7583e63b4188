import numpy as np
import pytest

from dare_eval.report.aup import Setting, aup, aup_interval, points_of


def settings(seed=0, n=200):
    draw = np.random.default_rng(seed)
    hard = draw.random(n)
    return [
        Setting(
            (hard < 0.7 - 0.02 * step).tolist(), [64.0] * n, (64 / (1 + step) * (0.9 + 0.2 * draw.random(n))).tolist()
        )
        for step in range(3)
    ]


def test_order_of_points_does_not_matter_and_one_point_is_a_rectangle():
    points = [(1.0, 70.0), (2.0, 69.0), (4.0, 68.0)]
    assert aup(points, 70.0) == aup(points[::-1], 70.0)
    assert aup([(2.0, 50.0)], 50.0).value == 100.0


def test_equal_accuracy_at_the_best_gives_the_plain_area():
    assert aup([(1.0, 80.0), (5.0, 80.0)], 80.0).value == pytest.approx(400.0)


def test_points_beyond_the_tolerated_loss_are_left_out_and_said():
    found = aup([(1.0, 70.0), (2.0, 69.0), (9.0, 60.0)], 70.0)
    assert found.beyond and found.kept == 2 and found.value == aup([(1.0, 70.0), (2.0, 69.0)], 70.0).value
    dip = aup([(1.0, 70.0), (2.0, 60.0), (9.0, 69.0)], 70.0)
    assert not dip.beyond and dip.kept == 2
    assert not aup([(1.0, 70.0), (2.0, 65.0)], 70.0).beyond


@pytest.mark.parametrize(("points", "best"), [([], 70.0), ([(1.0, 1.0)], 0.0)])
def test_nothing_to_measure_is_refused(points, best):
    with pytest.raises(ValueError, match="AUP"):
        aup(points, best)


def test_interval_holds_the_value_repeats_itself_and_narrows_with_items():
    found = settings()
    value = aup(points_of(found), 75.0).value
    low, high = aup_interval(found, 75.0)
    assert low < value < high and aup_interval(found, 75.0) == (low, high)
    wide = aup_interval(settings(n=50), 75.0)
    assert wide[1] - wide[0] > high - low


def test_interval_equals_resampling_by_hand():
    found = settings(n=30)
    draw, values = np.random.default_rng(3), []
    for _ in range(2):  # the function draws in chunks of 500
        for picked in draw.integers(0, 30, size=(500, 30)):
            again = [
                Setting(*[np.array(part)[picked].tolist() for part in (s.correct, s.generated_tokens, s.nfe)])
                for s in found
            ]
            values.append(aup(points_of(again), 75.0).value)
    expected = np.percentile(values, [2.5, 97.5])
    assert aup_interval(found, 75.0, resamples=1000, seed=3) == pytest.approx(tuple(expected), rel=1e-9)
