"""The reproducibility report as JUnit XML, which every CI system shows: one test case per number."""

from __future__ import annotations

from collections.abc import Sequence
from xml.etree import ElementTree

from dare_eval.report.judge import NEW, Judgement
from dare_eval.report.reproducibility import RunReport, titles


def to_junit(reports: Sequence[RunReport]) -> str:
    """Return JUnit XML: a suite per run, a failure per number that is off or missing, numbers without record skipped.

    A case's time is what decoding took per item, in seconds.
    """
    root = ElementTree.Element("testsuites", name="dare-eval report")
    for title, report in zip(titles(reports), reports, strict=True):
        cases = report.judgements
        suite = ElementTree.SubElement(
            root,
            "testsuite",
            name=_safe(title),
            tests=str(len(cases)),
            failures=str(len(report.bad)),
            errors="0",
            skipped=str(sum(one.verdict == NEW for one in cases)),
        )
        for one in cases:
            _case(suite, one)
    ElementTree.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + ElementTree.tostring(root, encoding="unicode") + "\n"


def _case(suite: ElementTree.Element, one: Judgement) -> None:
    wall_s = one.found.row.wall_s if one.found is not None else None
    case = ElementTree.SubElement(
        suite,
        "testcase",
        classname=_safe(f"{one.model}.{one.dataset}"),
        name=_safe(one.metric),
        time=f"{wall_s or 0.0:.6f}",
    )
    if not one.good:
        problem = ElementTree.SubElement(case, "failure", type=_safe(one.verdict), message=_safe(one.reason))
        problem.text = "\n".join(_safe(str(change)) for change in one.changed) or _safe(one.reason)
    elif one.verdict == NEW:
        ElementTree.SubElement(case, "skipped", message=_safe(one.reason))
    else:
        ElementTree.SubElement(case, "system-out").text = _safe(f"{one.verdict}: {one.reason}")


def _safe(text: str) -> str:
    """Return ``text`` without characters that XML cannot hold; they are escaped, not dropped."""
    return "".join(
        mark if mark in "\t\n" or mark.isprintable() else mark.encode("unicode_escape").decode() for mark in text
    )
