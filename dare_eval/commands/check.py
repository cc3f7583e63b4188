"""``dare-eval check`` and ``dare-eval env``: is this machine ready, and what is on it."""

from __future__ import annotations

import json
from typing import Annotated

import typer


def check(
    as_json: Annotated[bool, typer.Option("--json", help="Print the findings as JSON.")] = False,
) -> None:
    """Check packages, imports, data, checkpoints and devices; each failure names its remedy (exit code 5)."""
    from dataclasses import asdict

    from rich.table import Table

    from dare_eval.checks import all_findings
    from dare_eval.errors import SetupError
    from dare_eval.panels import output_console

    findings = list(all_findings())
    failed = [finding for finding in findings if finding.status == "failed"]
    if as_json:
        typer.echo(json.dumps([asdict(finding) for finding in findings], indent=1))
    else:
        table = Table("check", "", "seen", "remedy", title="dare-eval check", title_justify="left")
        colour = {"ok": "green", "note": "yellow", "failed": "red"}
        for finding in findings:
            style = colour[finding.status]
            table.add_row(finding.name, f"[{style}]{finding.status}[/]", finding.seen, finding.remedy)
        output_console().print(table)
    if failed:
        names = ", ".join(finding.name for finding in failed)
        raise SetupError(f"{len(failed)} of {len(findings)} checks failed", seen=names, remedy=failed[0].remedy)


def env() -> None:
    """Print the environment as a block to paste into a report."""
    import os
    import platform
    import sys

    from dare_eval import __version__
    from dare_eval.records.provenance import git_state, package_versions

    git = git_state()
    commit = f"{git['commit']}{' (changed files)' if git['dirty'] else ''}" if git["commit"] else "not a git checkout"
    lines = [
        f"dare: {__version__}, commit {commit}",
        f"python: {sys.version.split()[0]} on {platform.platform()}, {os.cpu_count()} CPUs",
        *(f"{name}: {version}" for name, version in package_versions().items() if name != "dare"),
        *(f"{name}={value}" for name, value in sorted(os.environ.items()) if name.startswith("DARE_")),
    ]
    typer.echo("\n".join(lines))
