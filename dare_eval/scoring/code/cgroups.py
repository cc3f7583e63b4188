"""A control group that caps the processes of all fork servers together, where this user may make one.

The zygote's own count acts first and gives the better message; the group is the kernel's word behind it. One group of a
fixed name, so that hosts that are killed cannot leave a pile of them. Version 1 and version 2 hierarchies; anything
that does not work is no error, only one net less.
"""

from __future__ import annotations

from pathlib import Path

_ROOT = Path("/sys/fs/cgroup")
_NAME = "dare-sandbox"


def create(processes: int, name: str = _NAME) -> Path | None:
    """Make the group, for at most ``processes`` processes; returns its folder, or None where that is not possible."""
    for parent in _parents():
        group = parent / name
        try:
            group.mkdir(exist_ok=True)
        except OSError:
            continue
        try:
            (group / "pids.max").write_text(str(processes))
        except OSError:
            remove(group)
            continue
        return group
    return None


def remove(group: Path) -> None:
    """Remove the group if it is empty; else another worker uses it and will try as well."""
    try:
        group.rmdir()
    except OSError:
        return


def _parents() -> list[Path]:
    """Return the folders of the group this process is in, as far as they hold the count of processes."""
    try:
        lines = Path("/proc/self/cgroup").read_text().splitlines()
    except OSError:
        return []
    found = []
    for number, controllers, path in (line.split(":", 2) for line in lines):
        if "pids" in controllers.split(","):
            found.append(_ROOT / "pids" / path.lstrip("/"))
        elif number == "0" and (_ROOT / "cgroup.controllers").exists():
            found.append(_ROOT / path.lstrip("/"))
    return [folder for folder in found if folder.is_dir()]
