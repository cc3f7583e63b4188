"""SGLang as a decoder: the offline engine in this process, or a server by HTTP; both return ``DecodeResult``.

    decoder = connect("http://HOST:30000", ends)
    results = decoder.generate(prompts, spec, seeds)

The server must run our algorithm (``sglang_settings.command_line`` prints its arguments). Not run on a GPU: the
offline engine is held against the package's signatures, the server against one that speaks its protocol.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from dare_eval.engines.buckets import BUCKET_BYTES, buckets
from dare_eval.engines.ends import EndIds
from dare_eval.engines.http import HttpClient, HttpOptions, need
from dare_eval.engines.sglang_broadcast import check_taken
from dare_eval.engines.sglang_names import ALGORITHM
from dare_eval.engines.sglang_replies import Sent, result_of
from dare_eval.engines.sglang_settings import engine_spec, sampling_parameters
from dare_eval.errors import SetupError, UsageError
from dare_eval.spec import DecodeSpec

if TYPE_CHECKING:
    from torch import Tensor

    from dare_eval.decoding import DecodeResult


class Calls(Protocol):
    """What both forms of the engine can do."""

    def generate(self, payload: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """Answer a batch: ``input_ids``, ``sampling_params`` and ``rid``, one per row."""
        ...

    def do(self, name: str, /, **arguments: Any) -> Any:
        """Call one of the control functions by its name."""
        ...

    def version(self) -> str:
        """Return the engine's version."""
        ...


class ServerCalls:
    """By HTTP."""

    def __init__(self, client: HttpClient) -> None:
        self.client = client

    def generate(self, payload: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """One request per row: the server batches them, and a lost one is repeated alone."""
        rows = [dict(zip(payload, values, strict=True)) for values in zip(*payload.values(), strict=True)]
        return self.client.post_all("/generate", rows)

    def do(self, name: str, /, **arguments: Any) -> Any:
        """Post to the path of that name."""
        return self.client.post(f"/{name}", arguments)

    def version(self) -> str:
        """Return the server's version; raises ``SetupError`` when it does not run our algorithm."""
        info = self.client.get("/server_info")
        running = info.get("dllm_algorithm")
        if running != ALGORITHM:
            raise SetupError(
                "the server does not run our decoding algorithm",
                seen=f"dllm_algorithm = {running!r}",
                allowed=ALGORITHM,
                remedy="start it with the arguments of docs/engines.md",
            )
        return str(need(info, "version"))


class OfflineCalls:
    """In this process; SGLang starts processes of its own."""

    def __init__(self, arguments: Mapping[str, Any]) -> None:
        try:
            import sglang
        except ImportError as error:
            raise SetupError(
                "sglang is not installed", seen=str(error), remedy="pip install 'dare[sglang]', or give a server's url"
            ) from error
        self._version = str(sglang.__version__)
        self.engine = sglang.Engine(**arguments)

    def generate(self, payload: Mapping[str, Any]) -> list[Mapping[str, Any]]:
        """One call for the batch."""
        replies: list[Mapping[str, Any]] = self.engine.generate(**payload)
        return replies

    def do(self, name: str, /, **arguments: Any) -> Any:
        """Call the engine's method of that name."""
        return getattr(self.engine, name)(**arguments)

    def version(self) -> str:
        """Return the package's version."""
        return self._version


@dataclass(slots=True)
class SGLangDecoder:
    """Decodes with an engine that holds one checkpoint."""

    calls: Calls
    ends: EndIds
    weights: int = 0
    """Version of the weights that the engine holds."""

    def generate(
        self,
        prompts: Sequence[list[int]],
        spec: DecodeSpec,
        seeds: Sequence[int],
        texts: Sequence[str] | None = None,
    ) -> list[DecodeResult]:
        """Decode ``prompts`` and return one result per prompt, in order; equal prompts need different seeds.

        ``texts`` (the rendered prompts) are for engines that take no token ids; this one does.
        """
        if len(set(zip(map(tuple, prompts), seeds, strict=True))) < len(prompts):
            raise UsageError("two rows have the same prompt and seed, so they would be copies")
        spec = engine_spec(spec)
        started = time.perf_counter()
        replies = self.calls.generate(
            {
                "input_ids": [list(prompt) for prompt in prompts],
                "sampling_params": [sampling_parameters(spec, len(prompt), self.ends) for prompt in prompts],
                # The algorithm draws its random numbers from the request's name: all ranks see the same one.
                "rid": [f"dare-{self.weights}-{seed}-{row}" for row, seed in enumerate(seeds)],
            }
        )
        wall_s = (time.perf_counter() - started) / max(len(prompts), 1)
        return [
            result_of(reply, Sent(prompt_length=len(prompt), spec=spec, ends=self.ends, wall_s=wall_s))
            for reply, prompt in zip(replies, prompts, strict=True)
        ]

    def load_folder(self, folder: Path, version: int) -> None:
        """Take the weights of a checkpoint folder that the engine can read too."""
        check_taken(self.calls.do("update_weights_from_disk", model_path=str(folder)), f"weights of {folder}")
        self.weights = version

    def load_tensors(self, named: Iterable[tuple[str, Tensor]], version: int, limit: int = BUCKET_BYTES) -> None:
        """Take weights from memory, bucket by bucket, under their original names (offline engine only)."""
        with self.session():
            for last, bucket in buckets(named, limit):
                reply = self.calls.do("update_weights_from_tensor", named_tensors=bucket, flush_cache=last)
                check_taken(reply, f"weights from {bucket[0][0]} on")
        self.weights = version

    @contextlib.contextmanager
    def session(self) -> Iterator[None]:
        """Open the engine for weights from memory: it refuses them otherwise, and lays them out at the end."""
        check_taken(self.calls.do("begin_weight_update"), "beginning of new weights")
        yield
        check_taken(self.calls.do("end_weight_update"), "end of new weights")

    def verify(self, name: str, values: Sequence[float], tolerance: float = 1e-2) -> None:
        """Compare the first values of one weight with what was sent; raises ``SetupError`` when they differ."""
        reply = self.calls.do("get_weights_by_name", name=name, truncate_size=len(values))
        held = _flat(reply)[: len(values)]
        if len(held) != len(values) or any(
            abs(a - b) > tolerance * max(1.0, abs(b)) for a, b in zip(held, values, strict=True)
        ):
            raise SetupError(
                f"the engine holds other values of {name} than were sent",
                seen=f"{held[:4]} instead of {list(values)[:4]}",
                remedy="restart the engine from the newest checkpoint",
            )

    def sleep(self) -> None:
        """Give weights and cache back until :meth:`wake`."""
        self.calls.do("release_memory_occupation", tags=["kv_cache", "weights"])

    def wake(self) -> None:
        """Take memory again; weights must be sent afterwards."""
        self.calls.do("resume_memory_occupation", tags=["weights", "kv_cache"])


def _flat(reply: Any) -> list[float]:
    values = reply[0] if isinstance(reply, list) and reply and isinstance(reply[0], list) else reply
    values = need(values, "parameter") if isinstance(values, Mapping) else values
    while values and isinstance(values[0], list):
        values = [one for row in values for one in row]
    return [float(one) for one in values or []]


def connect(url: str, ends: EndIds, options: HttpOptions | None = None) -> SGLangDecoder:
    """Return a decoder behind a server; raises ``SetupError`` when it is away or runs another algorithm."""
    calls = ServerCalls(HttpClient(url, options))
    calls.version()
    return SGLangDecoder(calls, ends)


def start(arguments: Mapping[str, Any], ends: EndIds) -> SGLangDecoder:
    """Start the offline engine with the keywords that ``server_arguments`` returns."""
    return SGLangDecoder(OfflineCalls(arguments), ends)
