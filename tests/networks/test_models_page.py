"""The examples of docs/models.md run in order, as shown."""

from __future__ import annotations

from tests.docs_commands import FENCE


def test_the_examples_of_the_page_run(root, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = (root / "docs" / "models.md").read_text()
    examples = [body for language, body in FENCE.findall(page) if language == "python"]
    assert len(examples) == 4
    for example in examples:
        exec(compile(example, "docs/models.md", "exec"), {})
