"""What accelerators can do on paper: dense matrix throughput, memory and its bandwidth, as their vendors state them.

Numbers are peaks; ``report.plan_cost`` divides by what real runs reach. A device that is not listed is described by
``--device-tflops`` and ``--mem-gib``.
"""

from __future__ import annotations

from dataclasses import dataclass

from dare_eval.errors import unknown


@dataclass(frozen=True, slots=True)
class Device:
    """Peaks of one device."""

    name: str
    half_tflops: float
    """bfloat16 and float16, dense, float32 accumulation."""
    single_tflops: float
    """float32 without reduced-precision modes."""
    memory_gib: float
    bandwidth_gbs: float | None = None
    """Memory bandwidth in 10^9 bytes per second; None where it is not known: reading weights is then not counted."""
    reached: tuple[float, float] = (0.25, 0.65)
    """Share of the peak that runs reach, low and high."""

    def tflops(self, dtype: str) -> float:
        """Return the peak for a compute type."""
        return self.half_tflops if dtype in ("bfloat16", "float16") else self.single_tflops


DEVICES = {
    device.name: device
    for device in (
        Device("a100-40", 312, 19.5, 40, 1555),
        Device("a100-80", 312, 19.5, 80, 2039),
        Device("h100", 989, 67, 80, 3350),
        Device("h200", 989, 67, 141, 4800),
        Device("b200", 2250, 75, 180, 8000),
        Device("l40s", 362, 91.6, 48, 864),
        Device("rtx4090", 165, 82.6, 24, 1008),
        Device("mi300x", 1307, 163, 192, 5300),
    )
}


def find_device(name: str) -> Device:
    """Return a listed device; raises ``UsageError`` with the nearest name."""
    if name not in DEVICES:
        raise unknown("device", name, [*DEVICES, "here"], remedy="--device-tflops X --mem-gib Y describe any other")
    return DEVICES[name]
