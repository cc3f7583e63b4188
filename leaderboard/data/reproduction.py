"""Reproducibility: a run judged against another one, and the reports that ``dare-eval report`` left in the run folders.

Judging is ``report.reproducibility``; this file finds what to judge and reads saved JUnit files, also damaged ones.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from dare_eval.errors import DareError
from dare_eval.records.runs import load_run
from dare_eval.report.judge import Change, Judgement
from dare_eval.report.recorded import baseline_of
from dare_eval.report.reproducibility import report_run, verdict_of

REPORT = "report.xml"


@dataclass(frozen=True, slots=True)
class Judged:
    """One run against the numbers of another."""

    verdict: str
    judgements: tuple[Judgement, ...]
    environment: tuple[Change, ...]
    trouble: str | None
    """Why nothing could be judged."""


@dataclass(frozen=True, slots=True)
class SavedCase:
    """One number of a saved report."""

    run: str
    result: str
    metric: str
    verdict: str
    reason: str


@dataclass(frozen=True, slots=True)
class Saved:
    """One report file."""

    path: Path
    cases: tuple[SavedCase, ...]
    trouble: str | None


@functools.lru_cache(maxsize=32)
def judge(folder: str, stamp: str, recorded: str, recorded_stamp: str) -> Judged:
    """Judge the run in ``folder`` against the run in ``recorded``; the stamps (states of the folders) tell versions."""
    del stamp, recorded_stamp
    try:
        report = report_run(load_run(Path(folder)), baseline_of(load_run(Path(recorded))))
    except (DareError, OSError) as error:
        return Judged("not compared", (), (), str(error))
    return Judged(verdict_of([report]), report.judgements, report.environment, None)


def saved_reports(root: Path | None, limit: int = 200) -> list[Saved]:
    """Return the reports below ``root``, newest first, at most ``limit`` of them."""
    if root is None or not root.is_dir():
        return []
    there = [path for path in root.rglob(REPORT) if path.is_file()]  # a link may lead nowhere
    files = sorted(there, key=lambda path: (-path.stat().st_mtime, str(path)))
    return [_read(path) for path in files[:limit]]


def _read(path: Path) -> Saved:
    try:
        root = ElementTree.parse(path).getroot()
    except (ElementTree.ParseError, OSError) as error:
        return Saved(path, (), f"not readable as JUnit XML: {error}")
    return Saved(path, tuple(_cases(root)), None)


def _cases(root: ElementTree.Element) -> Iterator[SavedCase]:
    for suite in root.iter("testsuite"):
        for case in suite.iter("testcase"):
            failed, skipped, said = case.find("failure"), case.find("skipped"), case.find("system-out")
            if failed is not None:
                verdict, reason = failed.get("type") or "off", failed.get("message") or ""
            elif skipped is not None:
                verdict, reason = "not recorded", skipped.get("message") or ""
            else:
                verdict, _, reason = (said.text or "" if said is not None else "").partition(": ")
            names = suite.get("name") or "", case.get("classname") or "", case.get("name") or ""
            yield SavedCase(*names, verdict or "passed", reason)
