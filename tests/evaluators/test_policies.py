"""How answers are read is switched by a run's config, and the metric says so."""

from __future__ import annotations

import pytest

from dare_eval.errors import UsageError
from dare_eval.evaluators.benchmarks import benchmark_of, with_policy
from dare_eval.scoring import SCORERS, score
from dare_eval.scoring.policy import _CHOICES, READ_BY, concerning, metric_under

pytestmark = pytest.mark.xdist_group("opencompass")
GSM8K = {"type": "opencompass.datasets.GSM8KDataset", "eval_cfg": {"evaluator": {"type": "Gsm8kEvaluator"}}}
HUMANEVAL = {"type": "opencompass.datasets.HumanevalDataset", "eval_cfg": {}}
REPLIES = {
    "gsm8k": ["50%", "33.33", "\\boxed{6", "\\boxed{5} and \\boxed{7}"],
    "math": ["\\boxed{50\\%}", "\\boxed{33.33}", "\\boxed{6", "\\boxed{5} and \\boxed{7}", "\\boxed{12 \\text{cm}}"],
    "choice": ["\\boxed{B"],
    "countdown": ["<answer>3+4", "so 3+4 it is, I think", "3+4=8", "<answer>-3+10</answer>", "<answer>(7)(1)</answer>"],
    "sudoku": ["<answer>1234341221434321", "so 1234341221434321 it is"],
    "list_ops": ["<answer>Ben, Ada"],
}
REFERENCES = {
    "gsm8k": ["0.5", "50", "100/3", "6", "7", "5"],
    "math": ["0.5", "50", "100/3", "6", "7", "5", "12"],
    "choice": ["B"],
    "countdown": [{"numbers": n, "target": 7} for n in ([3, 4], [3, 10], [7, 1])],
    "sudoku": [{"puzzle": "1030041020030021", "solution": "1234341221434321"}],
    "list_ops": [{"operation": "reverse", "items": ["Ada", "Ben"]}],
}


@pytest.mark.parametrize("kind", REPLIES)
def test_each_kind_reads_the_switches_the_table_names_and_no_other(kind):
    def verdicts(policy):
        return [score(kind, reply, gold, policy=policy).correct for reply in REPLIES[kind] for gold in REFERENCES[kind]]

    plain = verdicts(None)
    moved = {switch for switch, values in _CHOICES.items() if any(verdicts({switch: v}) != plain for v in values)}
    assert moved == set(READ_BY[kind])


def test_the_table_names_known_kinds_and_switches():
    assert set(READ_BY) <= set(SCORERS.names())
    assert {switch for named in READ_BY.values() for switch in named} == set(_CHOICES)


def test_a_changed_policy_renames_the_metric_and_reaches_the_scorer():
    plain, changed = benchmark_of(GSM8K), benchmark_of(with_policy(GSM8K, {"percent": "ratio", "decimals": "exact"}))
    assert (plain.metric, changed.metric) == ("accuracy", "accuracy (percent=ratio)")
    for benchmark, right in ((plain, False), (changed, True)):
        made = benchmark.inputs({}, "0.5")
        assert score(benchmark.kind, "It is 50%.", made.reference, **made.context).correct is right
    assert "scoring_policy" not in GSM8K["eval_cfg"]


def test_a_policy_that_the_scorer_does_not_read_changes_nothing():
    for policy in ({"percent": "ratio"}, {"untagged": "accept"}):
        changed = benchmark_of(with_policy(HUMANEVAL, policy))
        assert changed == benchmark_of(HUMANEVAL)
    assert concerning("gsm8k", {"untagged": "accept"}) == {}
    assert metric_under("exact", {}) == "exact"


def test_a_data_set_has_the_last_word_and_nonsense_is_refused():
    own = with_policy(with_policy(GSM8K, {"percent": "strict"}), {"percent": "ratio", "boxes": "last"})
    assert benchmark_of(own).metric == "accuracy (boxes=last, percent=strict)"
    with pytest.raises(UsageError, match="did you mean 'percent'"):
        with_policy(GSM8K, {"precent": "ratio"})


@pytest.mark.parametrize(
    ("settings", "metric"),
    [
        ({}, "exact"),
        ({"metric": "won"}, "won"),
        ({"scoring_policy": {"untagged": "accept"}}, "exact (untagged=accept)"),
        ({"scoring_policy": {"percent": "ratio"}}, "exact"),
    ],
)
def test_the_manifest_names_the_metric_of_an_outside_data_set_as_its_evaluator_does(settings, metric):
    from dare_eval.evaluators.score import ScoreEvaluator
    from dare_eval.runtime.manifests import _scored_by

    evaluator = {"type": "dare_eval.evaluators.score.ScoreEvaluator", "kind": "sudoku", **settings}
    outside = {"type": "outside.GridDataset", "eval_cfg": {"evaluator": evaluator}}
    assert _scored_by(outside)["metric"] == metric
    assert ScoreEvaluator(kind="sudoku", **settings).metric == metric


RUN = """
from mmengine.config import read_base
with read_base():
    from dare_eval.configs.datasets.planning.sudoku4_gen import sudoku4_datasets as datasets
models = [dict(type="dare_eval.models.replay.ReplayModel", abbr="said", path="said.jsonl", batch_size=8)]
datasets[0]["size"] = 2
datasets[0]["eval_cfg"]["evaluator"]["presets"] = []
"""


def test_a_run_is_scored_under_the_policy_it_names(workplace):
    import json

    from dare_eval.datasets.sudoku import SudokuDataset

    rows = SudokuDataset.load(size=2, style="tiny")
    said = [{"item": row["id"], "output": f"It is {row['solution']} then"} for row in rows]
    path = workplace.place / "said.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in said))
    file = workplace.config(RUN.replace("said.jsonl", str(path)))
    plain = workplace.run("run", file, program="dare-eval")
    loose = workplace.run("run", file, "--scoring-policy", "untagged=accept", program="dare-eval", folder="loose")
    assert (plain.code, loose.code) == (0, 0), plain.text + loose.text
    assert plain.row("exact")["value"] == 0
    assert loose.row("exact (untagged=accept)")["value"] == 100
    entry = json.loads((loose.run / "manifest.json").read_text())["datasets"][0]
    assert entry["metric"] == "exact (untagged=accept)"
    refused = workplace.run("run", file, "--scoring-policy", "untagged=yes", program="dare-eval")
    assert refused.code == 2
