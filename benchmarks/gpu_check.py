"""What needs a GPU, in one go of under eight minutes: kernels, decoding speed, memory, engines. Random weights.

    python benchmarks/gpu_check.py                    # everything that this machine has
    python benchmarks/gpu_check.py --only kernels decode

Each check prints one line of numbers or why it was left out; the exit code is 1 when a check failed. Sizes are those of
the published models (width, heads, vocabulary), with fewer layers, so that no checkpoint is needed.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import torch

from dare_eval.decoding import decode
from dare_eval.networks import AttentionMask, build_network, save_network
from dare_eval.spec import DecodeSpec

LLADA = {
    "model_type": "llada", "d_model": 4096, "n_heads": 32, "n_kv_heads": 32, "n_layers": 8, "mlp_hidden_size": 12288,
    "vocab_size": 126464, "embedding_size": 126464, "max_sequence_length": 4096, "rope_theta": 500000.0,
    "mask_token_id": 126336, "eos_token_id": 126081, "pad_token_id": 126081, "init_std": 0.02,
}  # fmt: skip
SDAR = {
    "model_type": "sdar", "architectures": ["SDARForCausalLM"], "hidden_size": 2048, "intermediate_size": 6144,
    "num_hidden_layers": 8, "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 151936,
    "max_position_embeddings": 32768, "mask_token_id": 151669, "pad_token_id": 151643, "eos_token_id": 151643,
    "rms_norm_eps": 1e-6, "rope_theta": 1000000.0, "hidden_act": "silu", "tie_word_embeddings": False, "block_size": 4,
}  # fmt: skip


class LeftOut(Exception):
    """A check that this machine cannot run."""


def network(config: dict, attn_backend: str = "auto"):
    """Return a random network on the GPU in bfloat16."""
    made = build_network(config, generator=torch.Generator().manual_seed(0)).to(torch.bfloat16).cuda().eval()
    made.attn_backend = attn_backend
    return made


def rows(count: int, length: int, vocab: int) -> list[list[int]]:
    """Return random prompts."""
    generator = torch.Generator().manual_seed(1)
    return torch.randint(1, vocab, (count, length), generator=generator).tolist()


def kernels() -> dict:
    """Attention back ends against the dense one: largest difference of logits, and milliseconds per pass."""
    small = {**LLADA, "n_layers": 2}
    found, reference = {}, None
    ids_BT = torch.tensor(rows(2, 1024, 126000)).cuda()
    keep_BT = torch.ones_like(ids_BT, dtype=torch.bool)
    keep_BT[1, :100] = False
    for name in ("sdpa", "flex", "varlen", "flash_attention_2"):
        if name == "flash_attention_2" and importlib.util.find_spec("flash_attn") is None:
            found[name] = "not installed"
            continue
        made = network(small, name)
        with torch.no_grad():
            logits = made(ids_BT, mask=AttentionMask.padding(keep_BT))[keep_BT].float()
            torch.cuda.synchronize()
            started = time.perf_counter()
            for _ in range(5):
                made(ids_BT, mask=AttentionMask.padding(keep_BT))
            torch.cuda.synchronize()
        reference = logits if reference is None else reference
        gap = float((logits - reference).abs().max())
        if gap > 0.5:
            raise AssertionError(f"{name} differs from sdpa by {gap}")
        found[name] = {"max_diff": round(gap, 4), "ms": round((time.perf_counter() - started) / 5 * 1000, 2)}
        del made
    return found


def speed() -> dict:
    """Tokens per second and peak memory of decoding, per cache and policy, batch 8."""
    made, found = network(LLADA), {}
    prompts = rows(8, 512, 126000)
    for cache in ("none", "prefix", "dual"):
        for rule in ({"policy": "quota", "steps": 128}, {"policy": "threshold", "threshold": 0.9}):
            spec = DecodeSpec.build("llada", gen_length=256, block_length=32, cache=cache, **rule)
            torch.cuda.reset_peak_memory_stats()
            started = time.perf_counter()
            results = decode(made, prompts, spec)
            torch.cuda.synchronize()
            wall_s = time.perf_counter() - started
            found[f"{cache}/{rule['policy']}"] = {
                "tokens_per_s": round(8 * 256 / wall_s, 1),
                "nfe": round(sum(r.nfe for r in results) / 8, 1),
                "peak_gib": round(torch.cuda.max_memory_allocated() / 2**30, 2),
            }
    return found


def checkpoint(folder: Path) -> Path:
    """Write a random SDAR checkpoint with a word-level tokenizer."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    save_network(build_network(SDAR, generator=torch.Generator().manual_seed(0)).to(torch.bfloat16), folder)
    words = Tokenizer(models.WordLevel({f"w{n}": n for n in range(SDAR["vocab_size"])}, unk_token="w0"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    PreTrainedTokenizerFast(tokenizer_object=words, eos_token="w151643", mask_token="w151669").save_pretrained(folder)
    return folder


def sglang() -> dict:
    """SGLang's offline engine with our plugin: tokens and step maps beside the native decoder; weights sent anew."""
    if importlib.util.find_spec("sglang") is None:
        raise LeftOut("sglang is not installed: pip install 'dare[sglang]'")
    from dare_eval.engines.ends import EndIds
    from dare_eval.engines.sglang_clients import start
    from dare_eval.engines.sglang_settings import SGLangOptions, server_arguments, write_config
    from dare_eval.networks import load_network

    folder = checkpoint(Path(tempfile.mkdtemp()) / "sdar")
    ends = EndIds(eos_id=151643, eot_id=None, stop_ids=(151643,))
    spec = DecodeSpec.build(
        "sdar", gen_length=64, block_length=4, policy="quota", steps=32, cache="block", dtype="bfloat16"
    )
    file = write_config(folder / "algorithm.yaml", spec, ends)
    options = SGLangOptions(max_running_requests=16, mem_fraction_static=0.5)
    engine = start(server_arguments(str(folder), spec, file, options), ends)
    prompts = rows(16, 40, 151000)
    started = time.perf_counter()
    theirs = engine.generate(prompts, spec, list(range(16)))
    wall_s = time.perf_counter() - started
    made = load_network(str(folder), dtype="bfloat16", device="cuda")
    ours = decode(made, prompts, spec)
    same = sum(a.tokens == b.tokens and a.step_map == b.step_map for a, b in zip(ours, theirs, strict=True))
    engine.load_tensors(made.state_dict().items(), 1)
    name, value = next(iter(made.state_dict().items()))
    engine.verify(name, value.flatten()[:8].float().tolist())
    return {"same_rows": f"{same}/16", "tokens_per_s": round(16 * 64 / wall_s, 1), "weights": "sent and compared"}


def lmdeploy() -> dict:
    """LMDeploy as rollouts use it: starts empty, takes weights, decodes beside the native decoder, sleeps, wakes."""
    if importlib.util.find_spec("lmdeploy") is None:
        raise LeftOut("lmdeploy is not installed: pip install 'dare[lmdeploy]'")
    from dare_eval.networks import load_network
    from dare_train.rl.backends import BackendFacts, Request
    from dare_train.rl.colocated import LMDeployRollout

    folder = checkpoint(Path(tempfile.mkdtemp()) / "sdar")
    spec = DecodeSpec.build(
        "sdar", gen_length=64, block_length=4, policy="quota", steps=32, cache="block", dtype="bfloat16"
    )
    made = load_network(str(folder), dtype="bfloat16", device="cuda")
    options = {"max_batch_size": 16}
    rollout = LMDeployRollout(
        BackendFacts(network=made, folder=str(folder), attn_backend="auto", spec=spec, options=options)
    )
    prompts = rows(16, 40, 151000)
    ours = decode(made, prompts, spec)
    same, wall_s = [], 0.0
    for version in range(2):  # the second after sleeping, with weights sent anew
        rollout.wake()
        rollout.sync(made.state_dict().items(), version)
        started = time.perf_counter()
        theirs = rollout.generate(Request(prompts=prompts, seeds=list(range(16)), spec=spec))
        wall_s = time.perf_counter() - started
        same.append(sum(a.tokens == b.tokens for a, b in zip(ours, theirs, strict=True)))
        rollout.sleep()
    return {"same_rows": [f"{count}/16" for count in same], "tokens_per_s": round(16 * 64 / wall_s, 1)}


CHECKS: dict[str, Callable[[], dict]] = {"kernels": kernels, "decode": speed, "sglang": sglang, "lmdeploy": lmdeploy}


def main() -> int:
    """Run the checks named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="+", choices=CHECKS, default=list(CHECKS))
    parser.add_argument("--out", type=Path, help="write the numbers as JSON")
    options = parser.parse_args()
    if not torch.cuda.is_available():
        print("no GPU here: nothing was checked")
        return 0
    numbers, failed = {"device": torch.cuda.get_device_name(0)}, 0
    for name in options.only:
        started = time.perf_counter()
        try:
            numbers[name] = CHECKS[name]()
        except LeftOut as why:
            numbers[name] = str(why)
        except Exception:
            numbers[name], failed = traceback.format_exc(), failed + 1
        print(f"{name} ({time.perf_counter() - started:.0f} s): {json.dumps(numbers[name])}", flush=True)
        torch.cuda.empty_cache()
    if options.out:
        options.out.write_text(json.dumps(numbers, indent=1))
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
