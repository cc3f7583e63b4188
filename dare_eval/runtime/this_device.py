"""The machine that plans, described like the devices of ``report.devices``: listed GPUs by name, others measured."""

from __future__ import annotations

import dataclasses
import os
import time

from dare_eval.report.devices import DEVICES, Device
from dare_eval.report.plan_cost import GIB

_SIDE = 768
_TRIES = 3


def this_device() -> Device:
    """Return the first visible GPU, or the CPU with its throughput from a few matrix products (under a second)."""
    import torch

    if not torch.cuda.is_available():
        rate = _measured("cpu", torch.float32)
        memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / GIB
        return Device(f"this CPU ({torch.get_num_threads()} threads, measured)", rate, rate, memory, None, (0.2, 0.9))
    facts = torch.cuda.get_device_properties(0)
    memory = facts.total_memory / GIB
    plain = facts.name.lower().replace(" ", "")
    for name, device in DEVICES.items():
        if name.partition("-")[0] in plain:
            return dataclasses.replace(device, name=facts.name, memory_gib=memory)
    half, single = (_measured("cuda", dtype) for dtype in (torch.bfloat16, torch.float32))
    return Device(f"{facts.name} (measured)", half, single, memory, None, (0.2, 0.9))


def _measured(place: str, dtype: object) -> float:
    """Return the TFLOPS of a square matrix product, the best of a few."""
    import torch

    side = _SIDE if place == "cpu" else 8 * _SIDE
    matrix = torch.ones(side, side, device=place, dtype=dtype)  # type: ignore[call-overload]
    best = float("inf")
    for _ in range(_TRIES + 1):
        started = time.perf_counter()
        float((matrix @ matrix)[0, 0])
        best = min(best, time.perf_counter() - started)
    return float(2 * side**3 / best / 1e12)
