"""Every statistic against scipy or statsmodels on random inputs, to 1e-9, and against known values."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import optimize, stats

from dare_eval.records import stats as ours

SEEDS = range(12)
TIGHT = {"rel": 1e-9, "abs": 1e-9}


@given(st.integers(1, 5000), st.floats(0, 1), st.sampled_from([0.8, 0.9, 0.95, 0.99]))
@settings(max_examples=200, deadline=None)
def test_wilson_equals_scipy(n, share, level):
    right = round(share * n)
    found = ours.wilson(right, n, level=level)
    expected = stats.binomtest(right, n).proportion_ci(confidence_level=level, method="wilson")
    assert found.low == pytest.approx(expected.low, **TIGHT) and found.high == pytest.approx(expected.high, **TIGHT)
    assert 0 <= found.low <= found.value <= found.high <= 1 and found.n == n


def test_wilson_known_value():
    found = ours.wilson(81, 263)  # Newcombe 1998, Statist. Med. 17:857-872, table I
    assert (found.low, found.high) == (pytest.approx(0.2553, abs=5e-5), pytest.approx(0.3662, abs=5e-5))


@pytest.mark.parametrize("seed", SEEDS)
def test_clustered_equals_statsmodels(seed):
    api = pytest.importorskip("statsmodels.api")
    draw = np.random.default_rng(seed)
    labels = draw.integers(0, 15, 80)
    x = draw.random(80) + 0.3 * draw.random(15)[labels]
    fit = api.OLS(x, np.ones((80, 1))).fit(cov_type="cluster", cov_kwds={"groups": labels}, use_t=True)
    found = ours.clustered(x, labels.tolist())
    low, high = fit.conf_int()[0]
    assert (found.value, found.low, found.high) == pytest.approx((fit.params[0], low, high), **TIGHT)


def test_clustered_with_one_item_a_cluster_is_the_t_interval():
    x = np.random.default_rng(0).random(40)
    found = ours.clustered(x, list(range(40)))
    expected = stats.ttest_1samp(x, 0).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), **TIGHT)


def test_clustered_refuses_one_cluster():
    with pytest.raises(ValueError, match="two clusters"):
        ours.clustered([0.0, 1.0], ["a", "a"])


@pytest.mark.parametrize("seed", SEEDS)
def test_bootstrap_equals_scipy(seed):
    x = np.random.default_rng(seed).random(5 + 37 * seed)
    found = ours.bootstrap(x, seed=seed)
    expected = stats.bootstrap(
        (x,), np.mean, n_resamples=10_000, method="percentile", rng=np.random.default_rng(seed), batch=100
    ).confidence_interval
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high), **TIGHT)


def test_bootstrap_of_clusters_of_one_is_the_plain_bootstrap():
    x = np.random.default_rng(1).random(60)
    assert ours.bootstrap(x, clusters=list(range(60))) == ours.bootstrap(x)


def test_bootstrap_of_clusters_is_wider_when_repeats_agree():
    questions = np.random.default_rng(2).random(30).round()
    repeated = np.repeat(questions, 8)
    plain = ours.bootstrap(repeated)
    grouped = ours.bootstrap(repeated, clusters=np.repeat(np.arange(30), 8).tolist())
    single = ours.bootstrap(questions)
    assert grouped.high - grouped.low > 2 * (plain.high - plain.low)
    assert (grouped.low, grouped.high) == pytest.approx((single.low, single.high), **TIGHT)


@given(st.integers(0, 400), st.integers(0, 400))
@settings(max_examples=200, deadline=None)
def test_mcnemar_equals_the_exact_binomial(wins, losses):
    found = ours.mcnemar(wins, losses)
    expected = stats.binomtest(wins, wins + losses, 0.5).pvalue if wins + losses else 1.0
    assert found == pytest.approx(expected, **TIGHT)


@pytest.mark.parametrize("seed", SEEDS)
def test_mcnemar_equals_statsmodels(seed):
    tables = pytest.importorskip("statsmodels.stats.contingency_tables")
    table = np.random.default_rng(seed).integers(0, 60, (2, 2))
    assert ours.mcnemar(int(table[0, 1]), int(table[1, 0])) == pytest.approx(tables.mcnemar(table).pvalue, **TIGHT)


def _score_by_search(wins, losses, n, delta):
    """Tango's statistic with the constrained likelihood maximised numerically instead of in closed form."""

    def minus_log(loss_rate):
        win_rate = loss_rate + delta
        rest = 1 - win_rate - loss_rate
        terms = ((wins, win_rate), (losses, loss_rate), (n - wins - losses, rest))
        return -sum(count * math.log(max(rate, 1e-300)) for count, rate in terms if count)

    low, high = max(0.0, -delta), (1 - delta) / 2
    best = optimize.minimize_scalar(minus_log, bounds=(low, high), method="bounded", options={"xatol": 1e-13}).x
    return (wins - losses - n * delta) / math.sqrt(n * (2 * best + delta - delta**2))


@pytest.mark.parametrize(("wins", "losses", "n"), [(12, 2, 50), (1, 30, 200), (5, 5, 10), (40, 37, 1319), (3, 0, 20)])
def test_tango_interval_inverts_the_constrained_score(wins, losses, n):
    low, high = ours.tango_interval(wins, losses, n)
    z = stats.norm.ppf(0.975)
    assert _score_by_search(wins, losses, n, low) == pytest.approx(z, abs=1e-5)
    assert _score_by_search(wins, losses, n, high) == pytest.approx(-z, abs=1e-5)


@given(st.integers(1, 300), st.data())
@settings(max_examples=200, deadline=None)
def test_tango_interval_holds_the_estimate_and_mirrors(n, data):
    wins = data.draw(st.integers(0, n))
    losses = data.draw(st.integers(0, n - wins))
    low, high = ours.tango_interval(wins, losses, n)
    assert -1 <= low <= (wins - losses) / n <= high <= 1
    assert ours.tango_interval(losses, wins, n) == pytest.approx((-high, -low), abs=1e-9)


def test_tango_interval_covers_the_truth():
    draw = np.random.default_rng(5)
    table = draw.multinomial(80, [0.12, 0.05, 0.83], size=2000)
    inside = sum(low <= 0.07 <= high for low, high in (ours.tango_interval(int(w), int(s), 80) for w, s, _ in table))
    assert 0.93 < inside / 2000 < 0.97


def test_paired_binary_counts_both_ways():
    found = ours.paired_binary([True, False, False, True], [True, True, True, False])
    assert (found.delta, found.wins, found.losses, found.n) == (0.25, 2, 1, 4)
    assert found.p == ours.mcnemar(2, 1)


@pytest.mark.parametrize("seed", SEEDS)
def test_paired_bootstrap_interval_equals_scipy_on_the_differences(seed):
    draw = np.random.default_rng(seed)
    a, b = draw.random(200), draw.random(200)
    found = ours.paired_bootstrap(a, b, seed=seed)
    expected = stats.bootstrap(
        (b - a,), np.mean, n_resamples=10_000, method="percentile", rng=np.random.default_rng(seed), batch=500
    )
    low, high = expected.confidence_interval
    assert (found.low, found.high) == pytest.approx((low, high), **TIGHT)
    tails = (expected.bootstrap_distribution <= 0).sum(), (expected.bootstrap_distribution >= 0).sum()
    assert found.p == pytest.approx(min(1, 2 * (1 + min(tails)) / 10_001), **TIGHT)


def test_paired_bootstrap_keeps_the_global_generator_and_repeats_itself():
    state = np.random.get_state()[1].copy()
    a, b = np.linspace(0, 1, 50), np.linspace(0.1, 0.9, 50)
    assert ours.paired_bootstrap(a, b) == ours.paired_bootstrap(a, b)
    assert (np.random.get_state()[1] == state).all()


def test_paired_bootstrap_without_a_difference_is_not_significant():
    same = ours.paired_bootstrap([0.1 + 0.2, 0.5], [0.3, 0.5])
    assert same.p == 1.0 and (same.wins, same.losses) == (0, 0)


def test_paired_bootstrap_rejects_at_its_level():
    draw = np.random.default_rng(8)
    p_values = []
    for number in range(400):
        a, b = draw.random(60), draw.random(60)
        p_values.append(ours.paired_bootstrap(a, b, resamples=1000, seed=number).p)
    assert 0.02 < np.mean(np.array(p_values) < 0.05) < 0.085


@pytest.mark.parametrize("seed", SEEDS)
def test_holm_equals_statsmodels(seed):
    multitest = pytest.importorskip("statsmodels.stats.multitest")
    p_values = np.random.default_rng(seed).random(1 + seed).tolist()
    p_values += p_values[:2]
    assert ours.holm(p_values) == pytest.approx(multitest.multipletests(p_values, method="holm")[1].tolist(), **TIGHT)
    assert ours.holm([]) == []


@pytest.mark.parametrize(("n", "rate"), [(164, 0.5), (1319, 0.76), (30, 0.2), (5000, 0.35)])
def test_minimum_detectable_effect_has_its_power_in_statsmodels(n, rate):
    power = pytest.importorskip("statsmodels.stats.power")
    effect = ours.minimum_detectable_effect(n, rate=rate) / math.sqrt(rate * (1 - rate))
    found = power.NormalIndPower().power(effect, nobs1=n, alpha=0.025, ratio=1, alternative="larger")
    assert found == pytest.approx(0.8, **TIGHT)


@pytest.mark.parametrize(("n", "points"), [(164, 15.5), (198, 14.1), (500, 8.9), (1319, 5.5), (5000, 2.8)])
def test_minimum_detectable_effect_of_known_benchmarks(n, points):
    assert 100 * ours.minimum_detectable_effect(n) == pytest.approx(points, abs=0.06)


@pytest.mark.parametrize(("n", "spread"), [(50, 0.5), (1319, 0.3), (7, 2.0)])
def test_detectable_effect_has_its_power_in_statsmodels(n, spread):
    power = pytest.importorskip("statsmodels.stats.power")
    effect = ours.detectable_effect(n, spread) / spread
    found = power.NormalIndPower(ddof=0).power(effect, nobs1=n, alpha=0.025, ratio=0, alternative="larger")
    assert found == pytest.approx(0.8, **TIGHT)


@given(st.integers(1, 8), st.data())
@settings(deadline=None)
def test_pass_at_k_is_the_share_of_subsets(n, data):
    c, k = data.draw(st.integers(0, n)), data.draw(st.integers(1, n))
    answers = [True] * c + [False] * (n - c)
    subsets = list(itertools.combinations(answers, k))
    assert ours.pass_at_k(n, c, k) == pytest.approx(sum(any(s) for s in subsets) / len(subsets), **TIGHT)


def test_pass_at_k_says_nothing_with_too_few_answers():
    assert ours.pass_at_k(2, 1, 3) is None


def test_majority_breaks_ties_by_first_and_ignores_unparsed():
    assert ours.majority_at_k(["7", None, "8", "8", "7"], [True, False, False, False, True], 5) is True
    assert ours.majority_at_k([None, None, "8"], [False, False, True], 2) is False
    assert ours.majority_at_k([None, None, "8"], [False, False, True], 3) is True
    assert ours.majority_at_k(["7"], [True], 2) is None


def test_weighted_mean():
    assert ours.weighted_mean([(10, 10), (0, 2)]) == pytest.approx(10 / 12)
    assert ours.weighted_mean([]) is None and ours.weighted_mean([(0, 0)]) is None


def test_no_average_over_a_partial_set():
    assert ours.whole_average({"gsm8k": 80.0}, ["gsm8k", "math"]) == ours.Average(None, ("math",))
    assert ours.whole_average({"gsm8k": 80.0, "math": 40.0}, ["gsm8k", "math"]).value == 60.0
    assert ours.whole_average({"gsm8k": 80.0, "math": None}, ["gsm8k", "math"]).missing == ("math",)
    assert ours.whole_average({}, []).value is None
