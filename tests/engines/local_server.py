"""A server on a real socket that speaks SGLang's and OpenAI's protocols, backed by in-process decoding on the CPU.

    python -m tests.engines.local_server tiny-bd-countdown '{"gen_length": 8, "block_length": 4, "steps": 6}' 0

Prints its port. ``--faults N:KIND,...`` spoils the N-th answer: ``drop`` (connection closed), ``half`` (cut reply),
``words`` (no JSON), ``empty`` (no content), ``lacks`` (a part missing), ``busy`` (503), ``later`` (429, come back at
once), ``slow`` (one second late), ``cut`` (tokens missing), ``strange`` (tokens outside the vocabulary), ``steps`` (a
step map that cannot be), ``abort`` (given up by the engine), ``die`` (the process ends). ``--key`` wants a key.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import threading
import time
from collections import deque
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

from dare_eval.decoding import DecodeResult, decode
from dare_eval.engines.rules import rules_text
from dare_eval.engines.sglang_names import (
    ALGORITHM,
    ALL_TOKENS,
    ATTEMPT,
    CONTRACT,
    CONTRACT_VERSION,
    REPLAY_STEPS,
    REPLAY_TOKENS,
    RULES,
    STEP_MAPS,
    STOP_LENGTH,
    VERSION,
)
from dare_eval.networks import load_network, resolve_model_path
from dare_eval.spec import DecodeSpec


@dataclasses.dataclass(eq=False)
class Job:
    """A row that waits."""

    ids: list[int]
    spec: DecodeSpec
    seed: int
    result: DecodeResult | None = None


class Served:
    """A network, its tokenizer and its spec; requests that come together decode together."""

    def __init__(self, model: str, settings: dict[str, Any]) -> None:
        from dare_eval.models.tokens import Codec

        self.place = resolve_model_path(model)
        self.network = load_network(str(self.place)).eval()
        family = self.network.config.family
        self.spec = DecodeSpec.build(family, **settings)
        self.codec = Codec(self.place, self.network.config, chat=True, limit=self.network.config.context_length)
        self.model, self.lock, self.version, self.release = model, threading.Lock(), "default", VERSION
        self.working: set[str] = set()
        self.waiting: deque[Job] = deque()

    def decode(self, ids: list[int], spec: DecodeSpec, seed: int) -> DecodeResult:
        """Decode a row together with all that wait by now: whoever gets the network works for the others too."""
        job = Job(ids, spec, seed)
        self.waiting.append(job)
        with self.lock:
            if job.result is None:
                jobs = [self.waiting.popleft() for _ in range(len(self.waiting))]
                for same in {one.spec for one in jobs}:
                    self._decode_together([one for one in jobs if one.spec == same])
        assert job.result is not None
        return job.result

    def _decode_together(self, jobs: list[Job]) -> None:
        seeds = [job.seed for job in jobs]
        for job, result in zip(
            jobs, decode(self.network, [job.ids for job in jobs], jobs[0].spec, row_seeds=seeds), strict=True
        ):
            job.result = result

    def generate(self, body: dict[str, Any]) -> dict[str, Any]:
        ids, wanted = body["input_ids"], body["sampling_params"]
        length = -(-wanted["max_new_tokens"] // self.spec.block_length) * self.spec.block_length
        spec = dataclasses.replace(
            self.spec,
            gen_length=length,
            steps=None if self.spec.steps is None else self.spec.steps * length // self.spec.gen_length,
            temperature=wanted["temperature"],
            top_p=None if wanted["top_p"] >= 1 else wanted["top_p"],
            top_k=None if wanted["top_k"] in (1, ALL_TOKENS) else wanted["top_k"],
            early_stop="none" if wanted["ignore_eos"] else "block",
        )
        seed = int(body["rid"].partition(ATTEMPT)[0].split("-")[2])
        result = self.decode(ids, spec, seed)
        stops = () if wanted["ignore_eos"] else wanted["stop_token_ids"]
        tokens, steps = self._blocks(result, len(ids))
        end = next((place for place, token in enumerate(tokens) if token in stops), None)
        visible = min(wanted["max_new_tokens"], len(tokens) if end is None else end + 1)
        meta = {"id": body["rid"], "completion_tokens": visible, "finish_reason": {"type": "stop"}}
        meta |= {STEP_MAPS: steps[:visible], REPLAY_TOKENS: tokens, REPLAY_STEPS: steps}
        meta |= {STOP_LENGTH: [visible], CONTRACT: [CONTRACT_VERSION], RULES: [rules_text(self.spec)]}
        meta |= {"weight_version": self.version}
        return {"text": self.codec.decode(tokens[:visible]), "output_ids": tokens[:visible], "meta_info": meta}

    def _blocks(self, result: DecodeResult, prompt: int) -> tuple[list[int], list[int]]:
        """Return whole decoded blocks and their 1-based steps, out of the forwards of a result."""
        block, tokens, steps = self.spec.block_length, [], []
        forward = 1 if prompt >= block else 0
        start, size = 0, block - prompt % block
        while start < len(result.response):
            part = slice(start, min(start + size, len(result.response)))
            if min(result.step_map[part]) < 0:
                break
            local = [step - forward + 1 for step in result.step_map[part]]
            tokens, steps = tokens + result.response[part], steps + local
            forward += max(local) + 1
            start, size = part.stop, block
        return tokens, steps

    def chat(self, body: dict[str, Any], prompt: Any) -> dict[str, Any]:
        ids = self.codec.encode(prompt, body["max_tokens"]).ids
        spec = dataclasses.replace(self.spec, temperature=body.get("temperature", 0.0))
        result = self.decode(ids, spec, body.get("seed", 0))
        text = self.codec.decode(result.tokens)
        usage = {"prompt_tokens": len(ids), "completion_tokens": result.generated_tokens}
        finish = "length" if result.stop == "length" else "stop"
        return {"choices": [{"message": {"content": text}, "text": text, "finish_reason": finish}], "usage": usage}

    def answer(self, path: str, body: dict[str, Any]) -> Any:
        if path == "/generate":
            return self.generate(body)
        if path == "/v1/chat/completions":
            turns = [
                {"role": {"user": "HUMAN", "assistant": "BOT"}.get(one["role"], "SYSTEM"), "prompt": one["content"]}
                for one in body["messages"]
            ]
            return self.chat(body, turns)
        if path == "/v1/completions":
            return self.chat(body, body["prompt"])
        if path == "/v1/models":
            return {"data": [{"id": self.model}]}
        if path == "/server_info":
            return {"version": self.release, "dllm_algorithm": ALGORITHM}
        if path == "/update_weights_from_disk":
            with self.lock:
                self.network = load_network(body["model_path"]).eval()
                self.version = body.get("weight_version", self.version)
            return {"success": True, "message": "ok"}
        if path == "/get_weights_by_name":
            value = self.network.get_parameter(body["name"]).detach().flatten()
            return [value[: body["truncate_size"]].tolist()]
        if path in ("/release_memory_occupation", "/resume_memory_occupation"):
            return None
        return {"error": path}


class Handler(BaseHTTPRequestHandler):
    """One connection."""

    protocol_version = "HTTP/1.1"
    served: Served
    faults: ClassVar[dict[int, str]] = {}
    count = 0
    counting = threading.Lock()
    key = ""

    def log_message(self, *_: Any) -> None:
        return

    def do_GET(self) -> None:
        if self._has_key():
            self._reply(200, json.dumps(self.served.answer(self.path, {})).encode())

    def _has_key(self) -> bool:
        if not self.key or self.headers.get("Authorization") == f"Bearer {self.key}":
            return True
        self._reply(401, b'{"error": "Unauthorized"}')
        return False

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with Handler.counting:
            Handler.count += 1
            fault = self.faults.get(Handler.count, "")
        if fault == "die":
            os._exit(9)
        if fault == "drop":
            self.close_connection = True
            return
        if fault == "slow":
            time.sleep(1.0)
        if not self._has_key():
            return
        rid, working = str(body.get("rid", "")), self.served.working
        if rid in working:  # as SGLang does
            self._reply(400, json.dumps({"error": f"Duplicate request ID detected: {rid}"}).encode())
            return
        working.add(rid) if rid else None
        answer = spoiled(self.served.answer(self.path, body), fault)
        working.discard(rid)
        data = b"" if answer is None or fault == "empty" else json.dumps(answer).encode()
        if fault == "words":
            data = b"<html>try later</html>"
        if fault == "busy":
            self._reply(503, b"busy")
        elif fault == "later":
            self._reply(429, b"too many requests", {"Retry-After": "0"})
        elif fault == "half":
            self.send_response(200)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data[: len(data) // 2])
            self.close_connection = True
        else:
            self._reply(200, data)

    def _reply(self, status: int, data: bytes, more: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **(more or {})}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def spoiled(answer: Any, fault: str) -> Any:
    """Return an answer to ``/generate`` with the fault in it."""
    if fault == "lacks":
        return {"meta_info": {}}
    if fault not in ("cut", "strange", "steps", "abort"):
        return answer
    meta = answer["meta_info"]
    if fault == "abort":
        meta["finish_reason"] = {"type": "abort", "message": "Abort in waiting queue"}
    if fault == "cut":
        answer["output_ids"], meta[REPLAY_TOKENS] = answer["output_ids"][:2], meta[REPLAY_TOKENS][:2]
        meta[REPLAY_STEPS] = meta[REPLAY_STEPS][:2]
    if fault == "strange":
        answer["output_ids"][0] = meta[REPLAY_TOKENS][0] = 10**6
    if fault == "steps":
        meta[REPLAY_STEPS][0] = 99
    return answer


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("settings", type=json.loads)
    parser.add_argument("port", type=int)
    parser.add_argument("--faults", default="")
    parser.add_argument("--port-file", type=Path)
    parser.add_argument("--key", default="")
    parser.add_argument("--release", default=VERSION)
    options = parser.parse_args()
    import torch

    torch.set_num_threads(1)
    Handler.served, Handler.key = Served(options.model, options.settings), options.key
    Handler.served.release = options.release
    Handler.faults = {int(n): kind for n, _, kind in (one.partition(":") for one in options.faults.split(",") if one)}
    ThreadingHTTPServer.request_queue_size = 512  # a client's connections come at once, and five would be kept
    server = ThreadingHTTPServer(("127.0.0.1", options.port), Handler)
    if options.port_file:
        part = options.port_file.with_suffix(".part")
        part.write_text(str(server.server_address[1]))
        part.replace(options.port_file)
    server.serve_forever()


if __name__ == "__main__":
    main()
