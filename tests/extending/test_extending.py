"""docs/extending.md is true: each part comes from an outside package through an entry point, in the promised size."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.extending.outside import SOURCES, install, run_python

ROOT = Path(__file__).resolve().parents[2]
BUDGET = {
    "decoder.py": 50,
    "family.py": 150,
    "scorer.py": 100,
    "benchmark.py": 100,
    "parity_gen.py": 100,
    "algorithm.py": 80,
}

DECODE = """
import json, sys
from dare_eval.decoding import decode
from dare_eval.networks import load_network, resolve_model_path
from dare_eval.spec import DecodeSpec
spec = DecodeSpec.build("llada", gen_length=16, block_length=16, policy="every_other")
network = load_network(resolve_model_path("tiny-sudoku")).eval()
results = decode(network, [[5, 6, 7, 8] * 5, [9, 8, 7] * 4], spec)
json.dump([{"nfe": r.nfe, "step_map": list(r.step_map), "tokens": len(r.tokens)} for r in results], sys.stdout)
"""

FAMILY = """
import json, sys
from pathlib import Path
import torch
from dare_eval.decoding import decode
from dare_eval.networks import build_network, load_network, save_network
from dare_eval.spec import DecodeSpec
raw = {"model_type": "spiral", "architectures": ["SpiralForMaskedLM"], "vocab_size": 64, "hidden_size": 32,
       "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2, "intermediate_size": 48,
       "max_position_embeddings": 128}
network = build_network(raw, generator=torch.Generator().manual_seed(0))
folder = Path(sys.argv[1])
save_network(network, folder)
again = load_network(folder)
same = all(torch.equal(a, b) for a, b in zip(network.state_dict().values(), again.state_dict().values(), strict=True))
spec = DecodeSpec.build("spiral", gen_length=8, block_length=4, steps=4, cache="dual")
rows = decode(again.eval(), [[1, 2, 3], [4, 5, 6, 7]], spec)
json.dump({"same": same, "family": again.config.family, "nfe": [row.nfe for row in rows]}, sys.stdout)
"""

SCORE = """
import json, sys
from dare_eval.scoring import score
found = [score("parity", text, "7") for text in ("I say odd", "even", "no idea at all")]
json.dump([[one.correct, one.extracted, one.rule] for one in found], sys.stdout)
"""

LISTED = """
import json, sys
from dare_eval.presets.catalog import RunText, benchmarks
from dare_eval.presets.listing import benchmark_lines
[name] = benchmarks(["parity"])
line = next(line for line in benchmark_lines() if line["benchmark"] == name)
json.dump([line, str(RunText(["llada-8b-instruct"], [name], "runs/x"))], sys.stdout)
"""

PRESET = """
import json, sys
from dare_train.rl.algorithm import find_algorithm
json.dump(find_algorithm("halves_third").describe()["corruptor"], sys.stdout)
"""

RECORDED = """
models = [dict(type="dare_eval.models.replay.ReplayModel", abbr="recorded", path={path!r}, batch_size=4)]
"""


@pytest.fixture
def outside(tmp_path):
    folder = tmp_path / "site"
    folder.mkdir()
    return install(folder)


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """What each part does in an interpreter that has the package."""
    codes = {"decoder": DECODE, "family": FAMILY, "scorer": SCORE, "benchmark": LISTED, "preset": PRESET}
    env = install(tmp_path_factory.mktemp("site"))
    return run_python(codes, env, str(tmp_path_factory.mktemp("made") / "checkpoint"))


def test_decoding_rule(found):
    for row in found["decoder"]:
        assert row["nfe"] == len(set(row["step_map"])) < 16
        assert sorted(i for i, step in enumerate(row["step_map"]) if step == 0) == list(range(0, 16, 2))


def test_family(found):
    assert found["family"] == {"same": True, "family": "spiral", "nfe": [4, 4]}


def test_scorer(found):
    right, wrong, none = found["scorer"]
    assert right == [True, "odd", "last_word"]
    assert wrong == [False, "even", "last_word"]
    assert none == [False, None, "no_answer"]


def test_benchmark_by_name_through_opencompass(outside, found, tmp_path):
    recordings = tmp_path / "answers.jsonl"
    rows = [{"item": f"parity-{n}", "gen_length": 8, "output": "odd" if n % 2 else "even"} for n in range(6)]
    rows[5]["output"] = "even"
    recordings.write_text("".join(json.dumps(row) + "\n" for row in rows))
    line, written = found["benchmark"]
    assert line["config"] == "outside_dllm.parity_gen:parity_datasets" and line["about"] == "from outside-dllm"
    config = tmp_path / "parity.py"
    config.write_text(written.replace("runs/x", str(tmp_path / "runs")) + RECORDED.format(path=str(recordings)))
    command = [str(Path(sys.executable).parent / "opencompass"), str(config)]
    done = subprocess.run(command, env=outside, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
    [report] = (tmp_path / "runs").glob("*/report.json")
    row = next(row for row in json.loads(report.read_text()) if row["dataset"] == "parity")
    assert (row["n"], row["expected"]) == (6, 6)
    assert row["value"] == pytest.approx(100 * 5 / 6, abs=0.01)


def test_algorithm_trains_from_one_file_and_one_yaml(outside, found, tmp_path):
    """Two passes per rollout, its own constant from the YAML, the name known to the command line."""
    command = [str(Path(sys.executable).parent / "dare-train"), "rl", "--config", str(SOURCES / "halves.yaml")]
    run = tmp_path / "run"
    done = subprocess.run(
        [*command, "--output-dir", str(run)],
        env=outside,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]
    manifest = json.loads((run / "manifest.json").read_text())
    method = manifest["models"][0]["config"]["resolved_method"]
    assert method["corruptor"] == {"part": "Halves", "share": 0.4}
    assert method["updates_per_rollout"] == 2
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    losses = [line["loss"] for line in lines if "loss" in line]
    assert len(losses) == 4 and any(line.get("ratio", 1.0) != 1.0 for line in lines), "the second pass is off-policy"
    assert found["preset"] == {"part": "Halves", "share": 0.33}


def test_name_taken_by_a_built_in_part_is_refused(outside, tmp_path):
    info = next((tmp_path / "site").glob("*.dist-info")) / "entry_points.txt"
    info.write_text(info.read_text().replace("every_other", "quota"))
    code = "from dare_eval.spec import DecodeSpec; DecodeSpec.build('llada', gen_length=4)"
    done = subprocess.run([sys.executable, "-c", code], env=outside, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "'quota'" in done.stderr and "outside_dllm.decoder" in done.stderr


@pytest.mark.parametrize("name", sorted(BUDGET))
def test_sizes_and_the_page_shows_these_files(name):
    source = (SOURCES / name).read_text()
    assert source.count("\n") <= BUDGET[name]
    page = (ROOT / "docs" / "extending.md").read_text()
    shown = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert source in shown, f"docs/extending.md shows another {name}"


def test_the_page_shows_the_recipe_that_trains():
    page = (ROOT / "docs" / "extending.md").read_text()
    shown = re.findall(r"^```yaml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert (SOURCES / "halves.yaml").read_text() in shown
