"""A root folder that holds the interpreter's library and nothing else of the machine, read-only.

Benchmark files, home folders, keys, sockets and the folder of this project do not exist in it; neither does any
program to execute. ``/box`` is where each program gets an empty memory file system of its own.
"""

from __future__ import annotations

import importlib.util
import os
import sysconfig
from collections.abc import Iterable
from pathlib import Path

from . import linux

BOX = "/box"
_SYSTEM_LIBRARIES = ("/usr/lib", "/usr/lib64", "/lib", "/lib64")
_DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom")
_FILES = ("/etc/ld.so.cache", "/etc/localtime", "/usr/share/zoneinfo")


def enter(staging: str, packages: Iterable[str]) -> None:
    """Build the root on the empty folder ``staging`` and move into it; needs a mount and a PID namespace of its own.

    ``packages`` are the site packages a program may import. Raises ``OSError`` where the kernel refuses.
    """
    shown = [path for name in packages for path in package_paths(name)]
    linux.mount("tmpfs", staging, "tmpfs", linux.NO_SUID | linux.NO_DEV, "size=1m,mode=755")
    library = sysconfig.get_path("stdlib")
    for path in (*_SYSTEM_LIBRARIES, *_interpreter_libraries(), library):
        _show(staging, path)
    for path in _site_folders(library):
        _mask(staging, path)
    for path in shown:
        _show(staging, path)
    for path in (*_DEVICES, *_FILES):
        _show(staging, path)
    for name in ("box", "proc", "old"):
        (Path(staging) / name).mkdir()
    for name in ("tmp", "dev/shm"):
        if not (Path(staging) / name).exists():
            (Path(staging) / name).symlink_to(BOX)
    _show_processes(staging)
    _move_in(staging)


def package_paths(name: str) -> list[str]:
    """Return the folder or file of an installed package, and its ``.libs`` folder; nothing when it is absent."""
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.origin:
        return []
    main = Path(spec.origin).parent if spec.submodule_search_locations else Path(spec.origin)
    return [str(path) for path in (main, main.parent / f"{name}.libs") if path.exists()]


def _interpreter_libraries() -> list[str]:
    """Return the library folder of an interpreter that brings its own shared libraries (conda, uv)."""
    base = sysconfig.get_config_var("base")
    own = Path(sysconfig.get_path("stdlib")).parent
    return [] if base in ("/usr", "/usr/local") else [str(own)]


def _site_folders(library: str) -> list[str]:
    parent = Path(library).parent
    found = [Path(library) / "site-packages", Path(library) / "dist-packages", *parent.glob("python*/*-packages")]
    return [str(path) for path in {*found, Path("/usr/lib/python3/dist-packages")} if path.is_dir()]


def _show(root: str, path: str) -> None:
    source, target = Path(path), Path(root + path)
    if not source.exists() or target.is_symlink() or _inside_shown(root, path):
        return
    if source.is_symlink() and source.is_dir() and source.parent == Path("/"):
        target.symlink_to(source.readlink())  # /lib -> usr/lib
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        target.mkdir(exist_ok=True)
    else:
        target.touch()
    linux.mount(path, str(target), "", linux.BIND | linux.RECURSIVE)
    # At once: a later mkdir below this path must fail rather than write to the machine's folder.
    linux.set_mount_flags(str(target), linux.READ_ONLY | linux.NO_SUID, recursive=True)


def _inside_shown(root: str, path: str) -> bool:
    """Return whether a mount already shows ``path``."""
    source, target = Path(path), Path(root + path)
    return target.exists() and target.samefile(source)


def _mask(root: str, path: str) -> None:
    if Path(root + path).is_dir():
        linux.mount("tmpfs", root + path, "tmpfs", linux.NO_SUID | linux.NO_DEV, "size=1m,mode=755")


def _show_processes(root: str) -> None:
    try:
        linux.mount("proc", f"{root}/proc", "proc", linux.NO_SUID | linux.NO_DEV)
    except PermissionError:  # a container that masks parts of /proc forbids a fresh one; its own serves as well
        linux.mount("/proc", f"{root}/proc", "", linux.BIND | linux.RECURSIVE)


def _move_in(root: str) -> None:
    os.chdir(root)
    linux.pivot_root(".", "old")
    os.chdir("/")
    linux.unmount("/old")
    Path("/old").rmdir()
    forbid_nested_namespaces()
    linux.set_mount_flags("/", linux.READ_ONLY | linux.NO_SUID, recursive=True)


def forbid_nested_namespaces() -> bool:
    """Set this user namespace's limit of further ones to none; returns whether the kernel agreed."""
    try:
        Path("/proc/sys/user/max_user_namespaces").write_text("0")
    except OSError:
        return False  # /proc is the container's own and read-only: the program still has no capability to use
    return True
