"""Decides what of earlier work counts: stale files are moved aside, damaged ones salvaged, unfinished runs continued.

Nothing is deleted. A file made with other settings is renamed ``*.stale`` and the log says which setting differs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from opencompass.utils import get_logger

from dare_eval.errors import DataError
from dare_eval.inferencers.item_store import SUFFIX, item_files, load_items, move_aside, store_items, usable
from dare_eval.inferencers.rows import Row
from dare_eval.records.items import ItemRecord
from dare_eval.records.manifest import read_manifest
from dare_eval.records.runs import TIMESTAMP
from dare_eval.runtime.predictions import part_files, read_entries
from dare_eval.runtime.sidecars import differences, digest, read_sidecar, sidecar

_LOOK_BACK = 50
_DECODE_FIELDS = ("nfe", "generated_tokens", "wall_s", "stop", "unrecorded")


def drop_stale(output: Path, settings: dict[str, Any], label: str) -> bool:
    """Move ``output`` aside when it was made with other settings; returns whether a matching one stands there."""
    if not output.exists():
        return False
    before = read_sidecar(output)
    if before["fingerprint"] == digest(settings):
        return True
    changed = list(differences(before["settings"], settings)) if before["settings"] else ["its settings are not known"]
    get_logger().warning(f"{label}: {output.name} is stale and was moved aside: {'; '.join(changed[:4])}")
    move_aside(output)
    move_aside(sidecar(output))
    return False


def settle_predictions(target: Path, settings: dict[str, Any], rows: list[Row], label: str) -> None:
    """Leave only whole predictions and items of these settings in the folder of ``target``."""
    fingerprint = digest(settings)
    for path in item_files(target.parent, target.stem):
        if not usable(path, fingerprint):
            get_logger().warning(f"{label}: items of other settings in {path.name} were moved aside")
            move_aside(path)
    for output in [*([target] if target.exists() else []), *part_files(target)]:
        if drop_stale(output, settings, label) and not (found := read_entries(output)).whole:
            kept = _keep_salvaged(target, found.entries if output == target else [], rows, fingerprint)
            get_logger().warning(f"{label}: {output.name} is damaged; {kept} whole items are kept, the rest runs again")
            move_aside(output)


def adopt_unfinished(work_dir: Path, target: Path, fingerprint: str) -> int:
    """Copy finished items of the newest run of the same settings beside ``work_dir`` if that run never finished.

    Returns the number of items adopted. A finished run is left alone: a new run was asked for.
    """
    here = {record.item_id for record in load_items(target.parent, target.stem, fingerprint)}
    for sibling in _siblings(work_dir):
        folder = sibling / target.parent.relative_to(work_dir)
        found = [record for record in load_items(folder, target.stem, fingerprint) if record.error is None]
        if found:
            if _finished(sibling):
                return 0
            fresh = [record for record in found if record.item_id not in here]
            if fresh:
                store_items(target.parent / f"{target.stem}{SUFFIX}", fresh, fingerprint)
                get_logger().info(f"continuing {sibling.name}: {len(fresh)} decoded items of {target.stem} are kept")
            return len(fresh)
    return 0


def _keep_salvaged(target: Path, entries: list[dict[str, Any]], rows: list[Row], fingerprint: str) -> int:
    """Store the whole entries of a damaged file as items and return how many items are kept in all."""
    kept = {record.item_id for record in load_items(target.parent, target.stem, fingerprint) if record.error is None}
    salvaged = [_item_of(entry, row) for entry, row in zip(entries, rows, strict=False) if row.item_id not in kept]
    if salvaged:
        store_items(target.parent / f"{target.stem}{SUFFIX}", salvaged, fingerprint)
    return len(kept) + len(salvaged)


def _item_of(entry: dict[str, Any], row: Row) -> ItemRecord:
    return ItemRecord(
        item_id=row.item_id,
        question_id=row.question_id,
        index=row.index,
        repeat=row.repeat,
        response=str(entry["prediction"]),
        **{name: value for name, value in (entry.get("decode") or {}).items() if name in _DECODE_FIELDS},
    )


def _siblings(work_dir: Path) -> list[Path]:
    folder = work_dir.parent
    if not TIMESTAMP.fullmatch(work_dir.name) or not folder.is_dir():
        return []
    runs = [path for path in folder.iterdir() if TIMESTAMP.fullmatch(path.name) and path.name != work_dir.name]
    return sorted(runs, key=lambda path: path.name, reverse=True)[:_LOOK_BACK]


def _finished(run: Path) -> bool:
    try:
        return read_manifest(run).status == "finished"
    except DataError:  # no manifest: killed before it was planned, or another version: not known to be finished
        return False
