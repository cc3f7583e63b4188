"""From work to hours and GiB: floating point operations, reads of the weights, and what a device reaches of its peak.

Ranges, not points: the low end takes the least work at the highest share of the peak, the high end the most work at
the lowest. Two floors count: arithmetic, and reading every weight once per batched forward. Leaves out start-up,
scoring and engines other than the native one.
"""

from __future__ import annotations

from dataclasses import dataclass

from dare_eval.report.devices import Device
from dare_eval.report.forwards import Work

GIB = 2**30
BYTES = {"float32": 4, "bfloat16": 2, "float16": 2, "float64": 8}


@dataclass(frozen=True, slots=True)
class Size:
    """What of a network decides its cost."""

    total: int
    """Parameters stored."""
    active: int
    """Parameters of the layers that one token passes; of experts those that are chosen."""
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    width: int
    widest: int
    """Largest hidden width of a layer, for its activations."""
    vocab: int


@dataclass(frozen=True, slots=True)
class Range:
    """A low and a high end."""

    low: float
    high: float

    def __add__(self, other: Range) -> Range:
        return Range(self.low + other.low, self.high + other.high)

    def scaled(self, low: float, high: float | None = None) -> Range:
        """Return the range with its ends multiplied."""
        return Range(self.low * low, self.high * (low if high is None else high))


def flops(size: Size, work: Work, *, guided: bool = False) -> float:
    """Return floating point operations of one row: layers, attention, logits of candidates; guidance doubles them."""
    attention = 4.0 * size.layers * size.heads * size.head_dim * work.pairs
    found = 2.0 * size.active * work.columns + attention + 2.0 * size.vocab * size.width * work.candidates
    return 2.0 * found if guided else found


def hours(
    size: Size, rows: int, batch: int, least: Work, most: Work, device: Device, dtype: str, guided: bool
) -> Range:
    """Return how long ``rows`` rows take in batches of ``batch`` on one ``device``."""
    peak = device.tflops(dtype) * 1e12
    low = rows * flops(size, least, guided=guided) / (peak * device.reached[1])
    high = rows * flops(size, most, guided=guided) / (peak * device.reached[0])
    if device.bandwidth_gbs is not None:
        rate = device.bandwidth_gbs * 1e9
        batches = -(-rows // max(batch, 1))
        low = max(low, batches * least.nfe * size.active * BYTES[dtype] / rate)
        high = max(high, batches * most.nfe * size.total * BYTES[dtype] / (0.5 * rate))
    return Range(low / 3600, high / 3600)


def memory_gib(size: Size, batch: int, width: float, block: int, cached: bool, dtype: str) -> Range:
    """Return the memory of decoding a batch of canvases of ``width`` columns: weights, cache, activations, logits.

    The high end keeps several activations of the widest layer, float32 logits of a whole block twice, and room that
    the allocator wastes.
    """
    item = BYTES[dtype]
    weights = size.total * item
    cache = 2 * batch * width * size.layers * size.kv_heads * size.head_dim * item if cached else 0.0
    activations = batch * width * (4 * size.width + 2 * size.widest) * item
    logits = 4.0 * batch * block * size.vocab
    return Range((weights + cache) / GIB, (weights + 2 * cache + 2 * activations + 2 * logits) * 1.1 / GIB)
