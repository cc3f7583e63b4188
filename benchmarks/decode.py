"""Speed and memory of decoding against a plain version, as ratios of one run on one machine.

    python benchmarks/decode.py                       # the full table: minutes on two cores
    python benchmarks/decode.py --quick               # a small model, seconds: does the benchmark itself work?

The model has LLaDA layout, width 512, 8 layers, vocabulary 32k, random weights with a head scaled so that
confidences spread, float32 on the CPU; prompt 256, gen_length 128, block 32, 128 steps or threshold 0.9. The plain
version decodes the same weights with the same cache and rule as published code does (``published.py``): keys cached
before rotation, logits for every column it forwards, a float64 softmax over the vocabulary at each step. Both must
return identical tokens. Its ``body`` is the time of its forwards without head, softmax and bookkeeping; ours computes
less (the last layer only where logits are wanted), so the table shows the ratio to both bodies.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import resource
import time
from dataclasses import dataclass
from pathlib import Path

import torch
from published import Past, PublishedBody
from torch import Tensor

from dare_eval.decoding import decode
from dare_eval.networks import build_network
from dare_eval.spec import DecodeSpec

CACHES, POLICIES = ("none", "prefix", "dual", "block"), ("quota", "threshold")


@dataclass(frozen=True)
class Size:
    """Model and run sizes."""

    width: int = 512
    layers: int = 8
    vocab: int = 32000
    prompt: int = 256
    length: int = 128
    block: int = 32
    threshold: float = 0.9
    head_std: float = 0.3


QUICK = Size(width=64, layers=2, vocab=512, prompt=16, length=16, block=8, head_std=0.9)


def make_network(size: Size, *, causal: bool):
    """Return a random network in LLaDA layout; block-causal for the block cache."""
    config = {
        "model_type": "llada", "d_model": size.width, "n_heads": 8, "n_kv_heads": 8, "n_layers": size.layers,
        "mlp_hidden_size": 3 * size.width, "vocab_size": size.vocab, "embedding_size": size.vocab,
        "max_sequence_length": 4096, "rope_theta": 500000.0, "init_std": 1.6 / size.width**0.5,
        "mask_token_id": size.vocab - 1, "eos_token_id": size.vocab - 2, "pad_token_id": size.vocab - 2,
    }  # fmt: skip
    if causal:
        config["block_size"] = size.block
    network = build_network(config, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        network.get_parameter("model.transformer.wte.weight").normal_(generator=torch.Generator().manual_seed(1))
        head = network.get_parameter("model.transformer.ff_out.weight")
        head.normal_(0.0, size.head_std, generator=torch.Generator().manual_seed(2))
        head[-1] = 0.0  # the mask is never likely, so the plain version cannot stall on it
    return network.eval()


class Plain:
    """Decoding as published code does it: logits of each column passed, float64 softmax, one loop per block."""

    def __init__(self, network, spec: DecodeSpec, clock=time.perf_counter) -> None:
        self.body, self.mask_id, self.spec, self.clock = PublishedBody(network), network.config.mask_id, spec, clock
        self.past: Past | None = None
        self.body_s = 0.0

    @torch.no_grad()
    def decode(self, prompts: list[list[int]]) -> Tensor:
        """Return the canvas; prompts are equally long and end at a block border."""
        start = len(prompts[0])
        ids_BT = torch.full((len(prompts), start + self.spec.gen_length), self.mask_id)
        ids_BT[:, :start] = torch.tensor(prompts)
        if self.spec.cache == "block":
            block_T = torch.arange(start) // self.spec.block_length
            self._pass(ids_BT, 0, start, keep=start, mask=block_T[:, None] >= block_T)
        for first in range(start, ids_BT.shape[1], self.spec.block_length):
            self._fill(ids_BT, first, first + self.spec.block_length)
        return ids_BT

    def _fill(self, ids_BT: Tensor, a: int, e: int) -> None:
        index = 0
        while (ids_BT[:, a:e] == self.mask_id).any():
            lo, hi = self._columns(ids_BT.shape[1], a, e, index)
            keep = {"prefix": a, "dual": hi}.get(self.spec.cache) if index == 0 else None
            logits_BTV = self.body.head(self._pass(ids_BT, lo, hi, keep=keep))
            tokens_BT = logits_BTV.argmax(-1)
            probs_BTV = logits_BTV.double().softmax(-1)
            score_BT = probs_BTV.gather(-1, tokens_BT[..., None])[..., 0]
            open_BT = (ids_BT[:, lo:hi] == self.mask_id) & (torch.arange(lo, hi) >= a) & (torch.arange(lo, hi) < e)
            score_BT = score_BT.masked_fill(~open_BT, -torch.inf)
            best_BT = torch.zeros_like(open_BT).scatter(-1, score_BT.argmax(-1, keepdim=True), True)
            if self.spec.policy == "threshold":
                best_BT |= score_BT >= self.spec.threshold
            ids_BT[:, lo:hi] = torch.where(best_BT & open_BT, tokens_BT, ids_BT[:, lo:hi])
            index += 1
        if self.spec.cache == "block":
            self._pass(ids_BT, a, e, keep=e)

    def _columns(self, width: int, a: int, e: int, index: int) -> tuple[int, int]:
        if self.spec.cache in ("prefix", "dual") and index:
            return a, width if self.spec.cache == "prefix" else e
        if self.spec.cache == "block":
            return a, e
        return 0, width

    def _pass(self, ids_BT: Tensor, lo: int, hi: int, *, keep: int | None = None, mask: Tensor | None = None) -> Tensor:
        """Return the hidden states of columns lo to hi; ``keep``: how many columns stay cached from now on."""
        started = self.clock()
        past = self.past if lo else None
        hidden_BTD, present = self.body(ids_BT[:, lo:hi], past, columns=slice(lo, hi), mask=mask)
        self.body_s += self.clock() - started
        if keep is not None:
            self.past = [(key[:, :, :keep], value[:, :, :keep]) for key, value in present]
        return hidden_BTD


CLOCKS = {"wall": time.perf_counter, "cpu": time.process_time}


class BodyClock:
    """Adds up the time of the network's body during a run."""

    def __init__(self, network, clock) -> None:
        self.network, self.clock, self.spent_s, self._body = network, clock, 0.0, network.body

    def __enter__(self) -> BodyClock:
        """Put the stop watch around the body."""

        def timed(*args, **kwargs):
            started = self.clock()
            hidden = self._body(*args, **kwargs)
            self.spent_s += self.clock() - started
            return hidden

        self.network.body = timed
        return self

    def __exit__(self, *_) -> None:
        """Take it off again."""
        del self.network.body


@dataclass
class Row:
    """One line of the table."""

    cache: str
    policy: str
    batch: int
    nfe: float
    ours_s: float
    plain_s: float
    body_s: float
    plain_body_s: float
    tokens_per_s: float
    speedup: float
    over_body: float
    over_plain_body: float


def spec_for(size: Size, cache: str, policy: str) -> DecodeSpec:
    """Return the spec of a line; the random model's EOS is no end."""
    rule = {"steps": size.length} if policy == "quota" else {"threshold": size.threshold}
    return DecodeSpec.build(
        "llada", gen_length=size.length, block_length=size.block, policy=policy, cache=cache, **rule
    )


def prompts_for(size: Size, batch: int) -> list[list[int]]:
    """Return random prompts."""
    generator = torch.Generator().manual_seed(3)
    return torch.randint(1, size.vocab - 2, (batch, size.prompt), generator=generator).tolist()


def measure(network, size: Size, cache: str, policy: str, batch: int, options) -> Row:
    """Time both versions on the same prompts, alternating; the best of the repeated runs of each counts."""
    now, repeat = CLOCKS[options.clock], options.repeat
    spec, prompts = spec_for(size, cache, policy), prompts_for(size, batch)
    ours, plain, body, plain_body = [], [], [], []
    for _ in range(repeat):
        with BodyClock(network, now) as clock:
            started = now()
            results = decode(network, prompts, spec)
            ours.append(now() - started)
            body.append(clock.spent_s)
        started = now()
        published = Plain(network, spec, now)
        canvas_BT = published.decode(prompts)
        plain.append(now() - started)
        plain_body.append(published.body_s)
        same = [result.response for result in results] == canvas_BT[:, size.prompt :].tolist()
        assert same, f"{cache}/{policy}/{batch}: the plain version returned other tokens"
    best = min(range(repeat), key=ours.__getitem__)
    return Row(
        cache=cache,
        policy=policy,
        batch=batch,
        nfe=sum(result.nfe for result in results) / batch,
        ours_s=ours[best],
        plain_s=min(plain),
        body_s=body[best],
        plain_body_s=min(plain_body),
        tokens_per_s=batch * size.length / ours[best],
        speedup=min(plain) / ours[best],
        over_body=ours[best] / body[best],
        over_plain_body=ours[best] / min(plain_body),
    )


def peak_above_gib(run) -> float:
    """Return by how much the peak resident memory of ``run()`` exceeds what was resident before (Linux)."""
    Path("/proc/self/clear_refs").write_text("5")
    before = _status("VmRSS")
    run()
    return (_status("VmHWM") - before) / 2**20


def _status(key: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(key)).split()[1])


def measure_memory(size: Size) -> dict[str, float]:
    """Return peak memory above the weights of both versions, in GiB, and their ratio; one pass over one block."""
    network = make_network(size, causal=False)
    spec, prompts = spec_for(dataclasses.replace(size, threshold=0.0), "none", "threshold"), prompts_for(size, 1)
    decode(network, [prompts[0][:8]], spec)
    ours = peak_above_gib(lambda: decode(network, prompts, spec))
    plain = peak_above_gib(lambda: Plain(network, spec).decode(prompts))
    return {"ours_gib": ours, "plain_gib": plain, "ratio": ours / plain}


def show(rows: list[Row]) -> None:
    """Print the table."""
    heads = ("tok/s", "ours s", "plain s", "speed-up")
    print(
        f"{'cache':7} {'policy':10} {'batch':>5} {'NFE':>7} " + " ".join(f"{h:>8}" for h in heads),
        f"{'/its body':>10} {'/our body':>9}",
    )
    for r in rows:
        print(
            f"{r.cache:7} {r.policy:10} {r.batch:5d} {r.nfe:7.1f} {r.tokens_per_s:8.1f} {r.ours_s:8.2f} "
            f"{r.plain_s:8.2f} {r.speedup:8.2f} {r.over_plain_body:10.2f} {r.over_body:8.2f}"
        )
    by = {(r.cache, r.policy, r.batch): r for r in rows}
    for cache in CACHES:
        small, large = by.get((cache, "threshold", 1)), by.get((cache, "threshold", 8))
        if small and large:
            ratio = large.tokens_per_s / small.tokens_per_s
            print(f"{cache}: batch 8 gives {ratio:.2f} x the throughput of batch 1 (threshold)")


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a small model instead of the published sizes")
    parser.add_argument("--caches", nargs="+", default=CACHES, choices=CACHES)
    parser.add_argument("--policies", nargs="+", default=POLICIES, choices=POLICIES)
    parser.add_argument("--batches", nargs="+", type=int, default=[1, 8])
    parser.add_argument("--repeat", type=int, default=1, help="runs per line; the best counts")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--clock", choices=CLOCKS, default="wall", help="cpu: process time, for a busy machine")
    parser.add_argument("--memory", action="store_true", help="peak memory at vocabulary 126k and canvas 1024 instead")
    parser.add_argument("--out", type=Path, help="write the numbers as JSON")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    size = QUICK if options.quick else Size()
    if options.memory:
        large = dataclasses.replace(size, vocab=126464, prompt=992, length=32) if not options.quick else size
        found = measure_memory(large)
        print(", ".join(f"{key} {value:.3f}" for key, value in found.items()))
    else:
        found = []
        for cache in options.caches:
            network = make_network(size, causal=cache == "block")
            for policy in options.policies:
                for batch in options.batches:
                    found.append(measure(network, size, cache, policy, batch, options))
                    show(found[-1:])
        print("\nall")
        show(found)
        found = [dataclasses.asdict(row) for row in found]
    print(f"peak memory of the process {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20:.2f} GiB")
    if options.out:
        options.out.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
