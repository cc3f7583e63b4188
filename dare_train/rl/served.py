"""Rollouts by an SGLang server (block families): weights go through a shared folder, or by broadcast.

    rollout:
      backend: sglang
      options: {url: "http://HOST:30000", folder: /shared/rollout}
      # or:    {url: "http://HOST:30000", meet: "ADDRESS:PORT", ranks: 8}

At each sync the first process hands over all weights under their original names, adapters merged; one tensor is
compared afterwards, and every reply names the weights that decoded it, so that a rollout never runs on other weights
than were sent. With ``folder`` it writes a checkpoint and asks the server to read it; two folders are used in turn, so
a server that reads the old one is not disturbed. With ``meet`` (an address of the first process that the server
reaches) trainer and server form a group and the weights are broadcast: ``ranks`` is the server's tensor parallelism,
``link`` the group's backend (nccl). The server is started with the arguments that docs/engines.md shows. Leaves out
trajectories other than step maps: an algorithm that needs the states of all passes, or goes on from a state, is
refused.
"""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dare_eval.engines.ends import ends_of
from dare_eval.engines.patience import HttpOptions
from dare_eval.engines.rules import rules_text
from dare_eval.engines.sglang_broadcast import WeightGroup, WeightPeers
from dare_eval.engines.sglang_clients import SGLangDecoder, connect
from dare_eval.engines.sglang_names import VERSION
from dare_eval.engines.sglang_settings import engine_spec
from dare_eval.errors import UsageError, unknown
from dare_eval.networks import resolve_model_path

if TYPE_CHECKING:
    from torch import Tensor

    from dare_eval.decoding import DecodeResult
    from dare_eval.spec import DecodeSpec
    from dare_train.rl.backends import BackendFacts, Named, Request

PLACES = ("url", "folder", "meet", "ranks", "link", "version")
OPTIONS = (*PLACES, "timeout_s", "retries", "backoff_s", "longest_wait_s", "concurrency", "key_env")
COMPARED = 16
"""Values of one weight that are compared after a sync."""


class SGLangRollout:
    """One server that decodes for all processes."""

    traces = False
    recorders = ("final", "step_map")
    rules = staticmethod(rules_text)
    """What a server fixes when it starts: the same for rollouts and held-out answers."""

    @staticmethod
    def check(spec: DecodeSpec) -> None:
        """Raise ``UsageError`` for a spec that the engine cannot honour."""
        engine_spec(spec)

    def __init__(self, facts: BackendFacts) -> None:
        for name in facts.options:
            if name not in OPTIONS:
                raise unknown("option of the sglang rollout", name, OPTIONS)
        if not facts.folder or "url" not in facts.options or ("folder" in facts.options) == ("meet" in facts.options):
            raise UsageError(
                "the sglang rollout needs a base checkpoint, a server, and a shared folder or a place to meet",
                seen=f"base {facts.folder!r}, options {sorted(facts.options)}",
                allowed="rollout.options = {url: http://HOST:PORT, folder: PATH} or {url: ..., meet: ADDRESS:PORT}",
            )
        self.base, self.place = resolve_model_path(facts.folder), Path(str(facts.options.get("folder", "")))
        self.peers = _peers(facts.options)
        self.group: WeightGroup | None = None
        http = {name: value for name, value in facts.options.items() if name not in PLACES}
        self.decoder: SGLangDecoder = connect(
            str(facts.options["url"]),
            ends_of(facts.network.config, facts.spec),
            HttpOptions(**http),
            str(facts.options.get("version", VERSION)),
        )
        self.name, self.version = _agreed(uuid.uuid4().hex[:12]), -1

    def generate(self, request: Request) -> list[DecodeResult]:
        """Decode every row; its random numbers follow from weights version and seed."""
        if request.record or request.committed is not None:
            raise UsageError(
                "an engine returns step maps only, not the state of every pass",
                remedy="rollout.backend = inprocess for this algorithm",
            )
        return self.decoder.generate(request.prompts, request.spec, request.seeds)

    def sync(self, named: Named, version: int) -> None:
        """Hand over the weights; every process calls it, because reading a sharded weight is a common act."""
        sent: list[tuple[str, list[float]]] = []
        label = f"{self.name}-{version}"
        if not _is_first():
            for _ in named:
                pass
        else:
            if self.peers is None:
                state = {name: value.detach().cpu().contiguous() for name, value in _noted(named, sent)}
                folder = self.place / f"weights-{version % 2}"
                self._write(state, folder)
                self.decoder.load_folder(folder.resolve(), version, label)
            else:
                self.group = self.group or WeightGroup(self.decoder.calls, self.peers)
                with self.decoder.session():
                    self.group.send(_noted(named, sent), label=label)
            self.decoder.verify(*sent[0])
        _wait()
        self.decoder.weights, self.decoder.label, self.version = version, label, version

    def sleep(self) -> None:
        """Ask the server to give memory back."""
        if _is_first():
            self.decoder.sleep()

    def wake(self) -> None:
        """Ask the server to take memory again; weights follow by :meth:`sync`."""
        if _is_first():
            self.decoder.wake()

    def _write(self, state: dict[str, Any], folder: Path) -> None:
        from dare_eval.networks.saving import write_shards

        folder.mkdir(parents=True, exist_ok=True)
        write_shards(state, folder)
        for path in self.base.iterdir():
            if path.is_file() and path.suffix in (".json", ".txt", ".model", ".jinja") and "index" not in path.name:
                shutil.copyfile(path, folder / path.name)


def _peers(options: Mapping[str, Any]) -> WeightPeers | None:
    if "meet" not in options:
        return None
    address, _, port = str(options["meet"]).rpartition(":")
    ranks = options.get("ranks", 1)
    if not address or not port.isdigit() or not isinstance(ranks, int) or ranks < 1:
        raise UsageError(
            "no place to meet the server",
            seen=f"meet = {options['meet']}, ranks = {ranks}",
            allowed="ADDRESS:PORT, >= 1",
        )
    return WeightPeers(address=address, port=int(port), ranks=ranks, backend=str(options.get("link", "nccl")))


def _noted(named: Named, sent: list[tuple[str, list[float]]]) -> Iterator[tuple[str, Tensor]]:
    """Pass weights on and keep the first values of the first one."""
    for name, value in named:
        if not sent:
            sent.append((name, value.detach().flatten()[:COMPARED].float().tolist()))
        yield name, value


def _agreed(name: str) -> str:
    """Return the first process's name for its weights."""
    from torch import distributed

    if not distributed.is_initialized():
        return name
    names = [name]
    distributed.broadcast_object_list(names, src=0)
    return names[0]


def _is_first() -> bool:
    from torch import distributed

    return not distributed.is_initialized() or distributed.get_rank() == 0


def _wait() -> None:
    from torch import distributed

    if distributed.is_initialized():
        distributed.barrier()
