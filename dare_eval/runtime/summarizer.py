"""``ReportSummarizer``: ends a run with our table, ``report.json``, one panel per failure and an honest exit code.

The run enters the store (``DARE_DB``), finished or incomplete. Upstream's summary files are written as always; only
its printing is replaced. The process ends with exit code 3 when any model has no complete result on any data set of
the config.

    summarizer = dict(type=ReportSummarizer, summary_groups=[...])
"""

from __future__ import annotations

import contextlib
import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

from opencompass.summarizers import DefaultSummarizer
from opencompass.utils import dataset_abbr_from_cfg, model_abbr_from_cfg

from dare_eval.errors import DareError, IncompleteError, SetupError
from dare_eval.panels import show_error
from dare_eval.records.summary import ResultRow, write_report
from dare_eval.runtime.failures import Failure
from dare_eval.runtime.groups import benchmark_groups
from dare_eval.runtime.manifests import finish_manifest
from dare_eval.runtime.report_rows import PairReport, group_rows, pair_report, records_of
from dare_eval.runtime.report_table import output_console, show_failures, show_table

if TYPE_CHECKING:
    from rich.console import Console


class ReportSummarizer(DefaultSummarizer):
    """Summarizer of every config of this project; takes ``dataset_abbrs`` and ``summary_groups`` like upstream's.

    Without groups of its own, a benchmark that is split into several data sets gets its average.
    """

    def summarize(self, output_path: str | None = None, time_str: str = "") -> None:
        """Write and show the report; exits with 3 when something is missing, 5 when it cannot be written."""
        try:
            self._report(output_path, time_str)
        except OSError as error:
            refused = SetupError(
                f"the report cannot be written: {error.strerror}",
                seen=error.filename or self.work_dir,
                remedy="free disk space or repair the permissions, then run the same command again with -r",
            )
            show_error(refused)
            raise SystemExit(refused.exit_code) from error

    def _report(self, output_path: str | None, time_str: str) -> None:
        work_dir = Path(self.work_dir)
        self._upstream_files(output_path, time_str)
        pairs = [(model_abbr_from_cfg(m), dataset_abbr_from_cfg(d)) for m, d in self._combinations()]
        reports = [pair_report(work_dir, model, dataset) for model, dataset in pairs]
        wanted = self.summary_groups or benchmark_groups(cfg for _, cfg in self._combinations())
        groups = group_rows(wanted, {(one.model, one.dataset): one.rows[0] for one in reports})
        report = write_report(work_dir, [*_stored(reports), *groups])
        missing = [one for one in reports if not one.complete]
        console = output_console()
        show_table(console, reports, groups)
        show_failures(one.failure or _unexplained(one) for one in missing)
        console.print(f"report: {report}")
        # last: a run that is killed before its table was seen is continued by the same command, not begun anew
        finish_manifest(work_dir, "incomplete" if missing else "finished", _decoding_s(work_dir, reports))
        _register(work_dir, console)
        if missing:
            raise SystemExit(IncompleteError.exit_code)

    def _combinations(self) -> list[tuple[Any, Any]]:
        combined = self.cfg.get("model_dataset_combinations") or [
            {"models": self.model_cfgs, "datasets": self.dataset_cfgs}
        ]
        return [(m, d) for one in combined for m in one["models"] for d in one["datasets"]]

    def _upstream_files(self, output_path: str | None, time_str: str) -> None:
        """Write upstream's summary files; its own table on the terminal is left to ours."""
        try:
            with contextlib.redirect_stdout(io.StringIO()):
                super().summarize(output_path, time_str)
        except (AssertionError, KeyError) as error:  # models with unlike metrics; our report does not depend on it
            self.logger.warning(f"upstream's summary files were not written: {error}")


def _register(work_dir: Path, console: Console) -> None:
    """Put the run into the store; a store that cannot take it is said, and loses nothing: an index run adds it."""
    from rich.text import Text
    from sqlalchemy.exc import SQLAlchemyError

    from dare_eval.records.store import Store

    try:
        Store().register_evaluation(work_dir, strict=True)
    except (DareError, SQLAlchemyError, OSError) as error:
        what = error.what if isinstance(error, DareError) else str(error)
        console.print(Text(f"not in the store: {what}; to add it: dare-eval index {work_dir}", style="yellow"))


def _stored(reports: list[PairReport]) -> list[ResultRow]:
    """Return all rows, upstream's number as a row of its own."""
    rows = []
    for report in reports:
        rows += report.rows
        value = report.upstream.get("value")
        if value is not None:
            rows.append(_stock_row(report.rows[0], str(report.upstream["metric"]), float(value)))
    return rows


def _stock_row(head: ResultRow, metric: str, value: float) -> ResultRow:
    return ResultRow(
        model=head.model,
        dataset=head.dataset,
        metric=f"stock {metric}",
        value=value,
        low=None,
        high=None,
        n=head.n,
        expected=head.expected,
        unrecorded=head.unrecorded,
        decode_spec=head.decode_spec,
        labels=["number of the stock evaluator"],
    )


def _unexplained(report: PairReport) -> Failure:
    head = report.rows[0]
    return Failure(
        model=report.model,
        dataset=report.dataset,
        stage="score",
        cause="the result is incomplete" if head.n else "there is no result",
        seen=f"{head.n} of {head.expected} items scored, {head.errors} failed, {head.unscored} not scored",
        remedy="run the same command again: only what is missing runs",
    )


def _decoding_s(work_dir: Path, reports: list[PairReport]) -> float | None:
    spent = [record.wall_s for one in reports for record in records_of(work_dir, one.model, one.dataset)]
    known = [wall_s for wall_s in spent if wall_s is not None]
    return sum(known) if known else None
