"""``dare-eval stability RUN``: when answers formed, what was spent after that, and what was right and then lost."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dare_eval.records.intervals import Interval
    from dare_eval.records.items import ItemRecord
    from dare_eval.records.runs import Run
    from dare_eval.report.stability import Judge, Read, Stability

READABLE = ("gsm8k", "math", "choice", "countdown", "sudoku", "list_ops")
"""Kinds whose answers are read again after every forward; programs would have to run, instructions lack their rows."""


def stability(
    run: Annotated[str, typer.Argument(help="Run folder, run id or checkpoint name.")],
    model: Annotated[str | None, typer.Option(help="Only this model.")] = None,
    bench: Annotated[str | None, typer.Option(help="Only this data set.")] = None,
    items: Annotated[int | None, typer.Option(min=1, help="Only the first N items of each data set.")] = None,
    db: Annotated[str | None, typer.Option(help="Store for run and checkpoint names; default DARE_DB.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print everything as JSON, item by item.")] = False,
) -> None:
    """Read each answer again as it stood after every forward, from step maps or recorded x0 predictions.

    Writes stability.json into the run's folder, where the board finds it. x0 predictions are kept by runs whose model
    config says record_x0=True; without them the committed tokens are read. Example: dare-eval stability runs/mine
    """
    from dare_eval.errors import DataError
    from dare_eval.records.locate import locate
    from dare_eval.records.run_damage import run_damage
    from dare_eval.report.stability_file import write_stability

    found = locate(run, db).run
    results = list(_results(found, model, bench, items))
    for note in run_damage(found, [(one.model, one.dataset) for one in results]):
        typer.echo(note, err=True)
    if not any(one.n for one in results):
        raise DataError(
            "no item of this run has a step map",
            seen=found.folder,
            allowed="runs of native models that generate",
            remedy="dare-eval run makes such runs; replayed and remote models do not say when they wrote what",
        )
    path = write_stability(found.folder, results)
    if as_json:
        typer.echo(path.read_text(encoding="utf-8"), nl=False)
    else:
        _show(results)
        typer.echo(f"items: {path}")


def _results(run: Run, model: str | None, bench: str | None, items: int | None) -> Iterator[Stability]:
    from dare_eval.errors import unknown
    from dare_eval.report.stability import stability as measure

    pairs = run.results()
    for name, known, kind in ((model, {m for m, _ in pairs}, "model"), (bench, {d for _, d in pairs}, "data set")):
        if name is not None and name not in known:
            raise unknown(f"{kind} of this run", name, known)
    for maker, dataset in pairs:
        if model in (None, maker) and bench in (None, dataset):
            records = sorted(run.items(maker, dataset).records, key=lambda one: (one.index, one.repeat))[:items]
            chosen = {record.question_id for record in records}
            others = [one for one in _other_seeds(run, maker, dataset) if one.question_id in chosen]
            yield measure(maker, dataset, records, _reader(run, maker), _judge(run, maker, dataset), others)


def _other_seeds(run: Run, model: str, dataset: str) -> Iterator[ItemRecord]:
    """Yield the answers of the run's models that differ from ``model`` in their seed alone."""
    mine = _measurement(run, model, dataset)
    for other, where in run.results():
        if other != model and where == dataset and mine is not None and _measurement(run, other, dataset) == mine:
            yield from run.items(other, dataset).records


def _measurement(run: Run, model: str, dataset: str) -> tuple[Any, Any] | None:
    known = run.settings(model, dataset)
    spec, weights = known.get("decode_spec"), known.get("weight_hash")
    if not spec or weights is None:
        return None
    return weights, {key: value for key, value in spec.items() if key != "seed"}


def _reader(run: Run, model: str) -> Read | None:
    """Return what turns token ids into text: the checkpoint's tokenizer; None where it is not on this machine."""
    from dare_eval.errors import DareError
    from dare_eval.models.tokens import load_tokenizer
    from dare_eval.networks import read_config, resolve_model_path

    entry = run.manifest.model(model) if run.manifest else None
    try:
        place = resolve_model_path(entry.model_id if entry else "")
        tokenizer: Any = load_tokenizer(place, read_config(place))
    except DareError as error:
        typer.echo(f"answers of {model} are not read again: {error.what}", err=True)
        return None
    return lambda tokens: str(tokenizer.decode(list(tokens), skip_special_tokens=True))


def _judge(run: Run, model: str, dataset: str) -> Judge | None:
    from dare_eval.report.stability import Answer
    from dare_eval.scoring import score

    kind = str(run.settings(model, dataset).get("scorer") or "").partition("@")[0]
    if kind not in READABLE:
        typer.echo(f"answers on {dataset} are not read again: scorer '{kind or 'unknown'}'", err=True)
        return None

    def judge(text: str, record: Any) -> Answer:
        found = score(kind, text, record.reference)
        return Answer(found.extracted, found.correct)

    return judge


def _show(results: list[Stability]) -> None:
    from rich.table import Table
    from rich.text import Text

    from dare_eval.panels import output_console

    table = Table(title="Answer stability (95 % intervals; forwards counted from 0)", title_justify="left")
    names = ("model", "benchmark", "n", "answer final at", "spent after", "share needed", "right at some forward")
    for name in (*names, "right, then lost", "left to right", "flips over seeds"):
        table.add_column(name, justify="left" if name in ("model", "benchmark") else "right")
    for one in results:
        shares = (one.exit_share, one.oracle_right, one.lost, one.left_to_right, one.flip_rate)
        cells = [one.model, one.dataset, str(one.n), *map(_forwards, (one.last_change, one.spent_after))]
        table.add_row(*map(Text, [*cells, *map(_percent, shares)]))
    output_console().print(table)
    for one in results:
        typer.echo(f"{one.model} on {one.dataset}: from the {one.source}" + _left_out(one))


def _left_out(one: Stability) -> str:
    return f"; {one.unread} items left out: their response does not read as recorded" if one.unread else ""


def _forwards(found: Interval | None) -> str:
    return "-" if found is None else f"{found.value:.2f} [{found.low:.2f}, {found.high:.2f}]"


def _percent(found: Interval | None) -> str:
    return "-" if found is None else f"{100 * found.value:.1f} % [{100 * found.low:.1f}, {100 * found.high:.1f}]"
