"""Says what to do when a run has used up its disk or its memory, in place of a library's own words.

Leaves out checkpoints and the finished model, which say themselves that they cannot be written.
"""

from __future__ import annotations

import contextlib
import errno
from collections.abc import Iterator
from pathlib import Path

from dare_eval.errors import SetupError

DISK = {
    getattr(errno, name)
    for name in ("ENOSPC", "EDQUOT", "EFBIG", "EROFS", "EACCES", "EPERM", "EIO", "ENOENT", "ENOTDIR", "EISDIR")
}
"""Faults of files; a connection that breaks is an ``OSError``, too, and none of these."""
CPU_REFUSAL = "can't allocate memory"
"""What torch's allocator for main memory says; it has no error type of its own."""


@contextlib.contextmanager
def explained(folder: Path) -> Iterator[None]:
    """Turn errors of the disk and of memory inside into ``SetupError``; ``folder`` is where the run writes."""
    try:
        yield
    except OSError as error:
        if error.errno not in DISK:
            raise
        raise SetupError(
            f"the run cannot write its files: {error.strerror or error}",
            seen=error.filename or folder,
            allowed="a writable disk with room",
            remedy="free disk space and run the same command: it continues from the last checkpoint",
        ) from error
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        raise SetupError(
            "the memory does not suffice for a training step",
            seen=(str(error) or type(error).__name__).splitlines()[0][:200],
            allowed="a micro-batch whose activations fit; --dry-run estimates them",
            remedy="--set train.micro_batch_size=N (same result), or train.gradient_checkpointing=true",
        ) from error


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether ``error`` is a failed allocation, on the CPU or on a GPU."""
    import torch

    return isinstance(error, MemoryError | torch.OutOfMemoryError) or CPU_REFUSAL in str(error)
