"""Rollouts by an SGLang server (block families): weights go through a folder that both sides see.

    rollout:
      backend: sglang
      options: {url: "http://HOST:30000", folder: /shared/rollout}

At each sync the first process writes a checkpoint under its original names and asks the server to read it; one tensor
is compared afterwards, so that a rollout never runs on other weights than were sent. Adapters arrive merged. Two
folders are used in turn: a server that reads the old one is not disturbed. The server is started with the arguments
that docs/engines.md shows. Leaves out trajectories other than step maps: an algorithm that needs the states of all
passes, or goes on from a state, is refused.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dare_eval.engines.ends import EndIds
from dare_eval.engines.http import HttpOptions
from dare_eval.engines.sglang_clients import SGLangDecoder, connect
from dare_eval.errors import UsageError, unknown
from dare_eval.networks import resolve_model_path

if TYPE_CHECKING:
    from torch import Tensor

    from dare_eval.decoding import DecodeResult
    from dare_train.rl.backends import BackendFacts, Named, Request

OPTIONS = ("url", "folder", "timeout_s", "retries", "backoff_s", "longest_wait_s", "concurrency")
COMPARED = 16
"""Values of one weight that are compared after a sync."""


class SGLangRollout:
    """One server that decodes for all processes."""

    traces = False

    def __init__(self, facts: BackendFacts) -> None:
        for name in facts.options:
            if name not in OPTIONS:
                raise unknown("option of the sglang rollout", name, OPTIONS)
        if not facts.folder or not {"url", "folder"} <= set(facts.options):
            raise UsageError(
                "the sglang rollout needs a server, a shared folder and a base checkpoint",
                seen=f"base {facts.folder!r}, options {sorted(facts.options)}",
                allowed="rollout.options = {url: http://HOST:PORT, folder: PATH}",
            )
        config = facts.network.config
        stops = tuple({config.eos_id, *config.stop_ids})
        self.base, self.place = resolve_model_path(facts.folder), Path(str(facts.options["folder"]))
        http = {name: value for name, value in facts.options.items() if name not in ("url", "folder")}
        self.decoder: SGLangDecoder = connect(
            str(facts.options["url"]),
            EndIds(eos_id=config.eos_id, eot_id=config.eot_id, stop_ids=stops),
            HttpOptions(**http),
        )
        self.version = -1

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
        first, name, values = _is_first(), "", list[float]()
        folder = self.place / f"weights-{version % 2}"
        state: dict[str, Tensor] = {}
        for key, value in named:
            if not first:
                continue
            state[key] = value.detach().cpu().contiguous()
            if not values:
                name, values = key, state[key].flatten()[:COMPARED].float().tolist()
        if first:
            self._write(state, folder)
            self.decoder.load_folder(folder.resolve(), version)
            self.decoder.verify(name, values)
        _wait()
        self.decoder.weights = self.version = version

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


def _is_first() -> bool:
    from torch import distributed

    return not distributed.is_initialized() or distributed.get_rank() == 0


def _wait() -> None:
    from torch import distributed

    if distributed.is_initialized():
        distributed.barrier()
