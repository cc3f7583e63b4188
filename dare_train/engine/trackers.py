"""Training curves in TensorBoard, W&B or trackio beside the run folder's own metrics.jsonl; none by default."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from dare_eval.errors import SetupError


class Tracker(Protocol):
    """Takes numbers of one step."""

    def log(self, step: int, numbers: Mapping[str, float]) -> None:
        """Record ``numbers`` at ``step``."""
        ...

    def close(self) -> None:
        """Flush and end."""
        ...


class TensorBoard:
    """Writes event files below the run folder."""

    def __init__(self, name: str, folder: Path, config: Mapping[str, Any]) -> None:
        self.writer = _module("torch.utils.tensorboard", "tensorboard").SummaryWriter(str(folder / "tensorboard"))

    def log(self, step: int, numbers: Mapping[str, float]) -> None:
        """Record ``numbers`` at ``step``."""
        for key, value in numbers.items():
            self.writer.add_scalar(key, value, step)

    def close(self) -> None:
        """Flush and end."""
        self.writer.close()


class Hosted:
    """W&B and trackio, which share one interface."""

    def __init__(self, module: str, name: str, folder: Path, config: Mapping[str, Any]) -> None:
        self.module = _module(module, module)
        self.module.init(project="dare", name=name, config=dict(config))

    def log(self, step: int, numbers: Mapping[str, float]) -> None:
        """Record ``numbers`` at ``step``."""
        self.module.log(dict(numbers), step=step)

    def close(self) -> None:
        """Flush and end."""
        self.module.finish()


@contextlib.contextmanager
def open_trackers(names: Sequence[str], folder: Path, config: Mapping[str, Any]) -> Iterator[list[Tracker]]:
    """Yield the named trackers, open; raises ``SetupError`` with the extra when a package is missing."""
    found: list[Tracker] = []
    try:
        for name in names:
            if name == "tensorboard":
                found.append(TensorBoard(folder.name, folder, config))
            else:
                found.append(Hosted(name, folder.name, folder, config))
        yield found
    finally:
        for tracker in found:
            tracker.close()


def _module(name: str, package: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise SetupError(
            f"tracking needs the package {package}", seen=str(error), remedy="pip install 'dare[track]'"
        ) from error
