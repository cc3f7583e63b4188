"""SGLang as a decoder: the offline engine in this process, or a server by HTTP; both return ``DecodeResult``.

    decoder = connect("http://HOST:30000", ends)
    results = decoder.generate(prompts, spec, seeds)

The server must run our algorithm (``sglang_settings.command_line`` prints its arguments). Not run on a GPU: the
offline engine is held against the package's signatures, the server against one that speaks its protocol.
"""

from __future__ import annotations

import contextlib
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from dare_eval.engines.buckets import BUCKET_BYTES, buckets
from dare_eval.engines.counts import check_version
from dare_eval.engines.ends import EndIds
from dare_eval.engines.http import HttpClient, Payload, need, need_mapping
from dare_eval.engines.patience import HttpOptions
from dare_eval.engines.sglang_broadcast import check_taken
from dare_eval.engines.sglang_names import ALGORITHM, ATTEMPT, VERSION
from dare_eval.engines.sglang_replies import Sent, check_label, result_of
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
        return self.client.post_all("/generate", [_named_anew(row) for row in rows])

    def do(self, name: str, /, **arguments: Any) -> Any:
        """Post to the path of that name."""
        return self.client.post(f"/{name}", arguments, empty=True)

    def version(self) -> str:
        """Return the server's version; raises ``SetupError`` when it does not run our algorithm."""
        info = need_mapping(self.client.get("/server_info"))
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

    def __init__(self, arguments: Mapping[str, Any], version: str = VERSION) -> None:
        try:
            import sglang
        except ImportError as error:
            raise SetupError(
                "sglang is not installed", seen=str(error), remedy="pip install 'dare[sglang]', or give a server's url"
            ) from error
        self._version = str(sglang.__version__)
        check_version("SGLang", self._version, version)
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
    label: str | None = None
    """Name of these weights, as a server tells it with every reply; None until the first one."""

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
                # The algorithm draws its random numbers from the first part of the request's name: all ranks see the
                # same one, and a row's place in the batch does not matter.
                "rid": [f"dare-{self.weights}-{seed}{ATTEMPT}{row}" for row, seed in enumerate(seeds)],
            }
        )
        wall_s = (time.perf_counter() - started) / max(len(prompts), 1)
        for reply in replies:
            self.label = check_label(reply, self.label)
        return [
            result_of(reply, Sent(prompt_length=len(prompt), spec=spec, ends=self.ends, wall_s=wall_s))
            for reply, prompt in zip(replies, prompts, strict=True)
        ]

    def load_folder(self, folder: Path, version: int, label: str | None = None) -> None:
        """Take the weights of a checkpoint folder that the engine can read too; a server gives them the ``label``."""
        more = {} if label is None else {"weight_version": label}
        check_taken(self.calls.do("update_weights_from_disk", model_path=str(folder), **more), f"weights of {folder}")
        self.weights, self.label = version, label

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
        if len(held) != len(values) or not all(  # NaN is near nothing
            abs(a - b) <= tolerance * max(1.0, abs(b)) for a, b in zip(held, values, strict=True)
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


def _named_anew(row: dict[str, Any]) -> Payload:
    """Return a row that has a name of its own at every attempt: a server refuses one that it is still working on."""

    def body() -> dict[str, Any]:
        return {**row, "rid": f"{row['rid']}-{uuid.uuid4().hex[:12]}"}

    return body


def _flat(reply: Any) -> list[float]:
    values = reply[0] if isinstance(reply, list) and reply and isinstance(reply[0], list) else reply
    values = need(values, "parameter") if isinstance(values, Mapping) else values
    while values and isinstance(values[0], list):
        values = [one for row in values for one in row]
    return [float(one) for one in values or []]


def connect(url: str, ends: EndIds, options: HttpOptions | None = None, version: str = VERSION) -> SGLangDecoder:
    """Return a decoder behind a server; raises ``SetupError`` when it is away, another release or another algorithm."""
    calls = ServerCalls(HttpClient(url, options))
    check_version("SGLang", calls.version(), version)
    return SGLangDecoder(calls, ends)


def start(arguments: Mapping[str, Any], ends: EndIds, version: str = VERSION) -> SGLangDecoder:
    """Start the offline engine with the keywords that ``server_arguments`` returns."""
    return SGLangDecoder(OfflineCalls(arguments, version), ends)
