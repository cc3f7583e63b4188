"""From a model's name to a folder with its files.

Order: the environment variable ``DARE_MODEL_<NAME>``, a local folder, a checkpoint shipped in the package, a hub id
(left to huggingface_hub, which answers from its cache when offline).
"""

from __future__ import annotations

import os
import re
from pathlib import Path

from dare_eval.errors import DataError, nearest

ASSETS = Path(__file__).resolve().parent.parent / "assets"
WANTED_FILES = ["*.json", "*.safetensors", "*.txt", "*.model", "*.jinja"]


def variable_names(name: str) -> list[str]:
    """Return the environment variables that redirect ``name``: for the whole name and for its last part."""
    plain = [re.sub(r"[^A-Z0-9]", "_", part.upper()) for part in (name, name.rstrip("/").rsplit("/", 1)[-1])]
    return [f"DARE_MODEL_{part}" for part in dict.fromkeys(plain)]


def packaged_models() -> dict[str, Path]:
    """Return the checkpoints below ``dare_eval/assets`` by folder name."""
    return {file.parent.name: file.parent for file in sorted(ASSETS.rglob("config.json"))}


def resolve_model_path(name_or_path: str, *, redirected: bool = True, download: bool = True) -> Path:
    """Return the local folder of a model; raises ``DataError`` with the remedy when there is none.

    ``redirected`` False leaves the environment variables out, ``download`` False looks only at what is here already.
    """
    for variable in variable_names(name_or_path):
        if redirected and os.environ.get(variable):
            where = f"{variable} = {os.environ[variable]}"
            return _resolve(os.environ[variable], where, download, f"correct or unset {variable}")
    remedy = f"set {variable_names(name_or_path)[0]} to the folder"
    return _resolve(name_or_path, name_or_path, download, remedy)


def _resolve(name: str, seen: str, download: bool, remedy: str) -> Path:
    folder = Path(name).expanduser()
    if folder.is_dir():
        return folder
    if folder.is_file():
        raise DataError("the model path is a file", seen=seen, allowed="the folder that holds config.json")
    packaged = packaged_models()
    if name in packaged:
        return packaged[name]
    if re.fullmatch(r"[A-Za-z0-9][\w.-]*/[\w.-]+", name):
        return _from_hub(name, seen, download, remedy)
    hint = nearest(name, packaged)
    raise DataError(
        f"no model at '{name}'" + (f"; did you mean '{hint}'?" if hint else ""),
        seen=seen,
        allowed="a folder, a hub id (owner/name) or one of: " + (", ".join(packaged) or "(no packaged model)"),
        remedy=remedy,
    )


def _from_hub(name: str, seen: str, download: bool, remedy: str) -> Path:
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(name, allow_patterns=WANTED_FILES, local_files_only=not download))
    except (LocalEntryNotFoundError, HfHubHTTPError, OSError) as error:
        raise DataError(
            f"'{name}' is neither a local folder nor reachable on the hub",
            seen=seen,
            allowed="a folder with config.json, or a hub id that is cached or downloadable",
            remedy=f"download it where there is a network and {remedy}",
        ) from error
