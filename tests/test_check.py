"""``dare-eval check`` and ``env`` see what is wrong, and say what repairs it."""

from __future__ import annotations

import json
from importlib import metadata

from dare_eval import checks


def test_check_passes_here_and_lists_every_part(cli):
    done = cli("dare-eval", "check", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    found = {finding["name"]: finding for finding in json.loads(done.stdout)}
    assert {"python", "versions", "imports", "shipped checkpoints", "HumanEval rows", "gpu"} <= set(found)
    assert "opencompass.cli.main" in found["imports"]["seen"]


def test_package_that_dies_at_import_is_a_finding_with_a_remedy(tmp_path, monkeypatch):
    (tmp_path / "broken_at_import.py").write_text("raise ImportError('pyarrow requires NumPy 2.0 or newer')\n")
    (tmp_path / "kills_python.py").write_text("import os\nos._exit(7)\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    broken, killed = list(checks.check_imports(("broken_at_import",))), list(checks.check_imports(("kills_python",)))
    assert "NumPy 2.0" in broken[0].seen and "constraints.txt" in broken[0].remedy
    assert killed[0].status == "failed" and "7" in killed[0].seen


def test_version_outside_its_range_names_the_install_command(monkeypatch):
    monkeypatch.setattr(metadata, "requires", lambda _: ["numpy<1", "no-such-package>=2", "pytest; extra == 'dev'"])
    seen = {finding.name: finding for finding in checks.check_versions()}
    assert set(seen) == {"numpy", "no-such-package"}
    assert "numpy<1" in seen["numpy"].remedy and "not installed" in seen["no-such-package"].seen


def test_data_folder_that_does_not_exist_fails(monkeypatch, tmp_path):
    monkeypatch.setenv("DARE_DATA", str(tmp_path / "nowhere"))
    assert [finding.status for finding in checks.check_data()] == ["ok", "failed"]
    monkeypatch.setenv("DARE_DATA", str(tmp_path))
    assert "gsm8k" in list(checks.check_data())[1].seen


def test_env_prints_versions_and_settings(cli):
    done = cli("dare-eval", "env", env={"DARE_CACHE": "/tmp/some-cache"})
    assert done.returncode == 0
    assert f"opencompass: {metadata.version('opencompass')}" in done.stdout
    assert "DARE_CACHE=/tmp/some-cache" in done.stdout
