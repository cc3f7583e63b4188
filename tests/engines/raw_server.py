"""A server that answers with bytes as they are given, on a real socket: what no HTTP library would send."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field


@dataclass
class Raw:
    """Where it listens and what it was asked."""

    url: str
    asked: list[bytes] = field(default_factory=list)


Answer = bytes | Callable[[socket.socket], None]


@contextlib.contextmanager
def answering(*answers: Answer, family: socket.AddressFamily = socket.AF_INET) -> Iterator[Raw]:
    """Give the n-th connection the n-th answer (the last one again and again), then close it."""
    host = "127.0.0.1" if family == socket.AF_INET else "::1"
    with socket.socket(family) as listener:
        listener.bind((host, 0))
        listener.listen(16)
        port = listener.getsockname()[1]
        made = Raw(f"http://{host if family == socket.AF_INET else f'[{host}]'}:{port}")
        over = threading.Event()
        thread = threading.Thread(target=_serve, args=(listener, answers, made, over), daemon=True)
        thread.start()
        yield made
        over.set()
        with contextlib.suppress(OSError):
            socket.create_connection((host, port), timeout=1).close()
        thread.join(timeout=5)


def _serve(listener: socket.socket, answers: tuple[Answer, ...], made: Raw, over: threading.Event) -> None:
    number = 0
    while True:
        connection, _ = listener.accept()
        with connection:
            if over.is_set():
                return
            made.asked.append(_request(connection))
            answer = answers[min(number, len(answers) - 1)]
            number += 1
            with contextlib.suppress(OSError):
                connection.sendall(answer) if isinstance(answer, bytes) else answer(connection)


def _request(connection: socket.socket) -> bytes:
    """Return one request, its body included."""
    data = b""
    while b"\r\n\r\n" not in data:
        part = connection.recv(65536)
        if not part:
            return data
        data += part
    head, _, body = data.partition(b"\r\n\r\n")
    length = next(
        (int(line.split(b":")[1]) for line in head.split(b"\r\n") if line.lower().startswith(b"content-length")), 0
    )
    while len(body) < length:
        body += connection.recv(65536)
    return head + b"\r\n\r\n" + body


def reply(body: bytes, status: str = "200 OK", **headers: str) -> bytes:
    """Return a whole response; ``headers`` with underscores for dashes."""
    lines = {"Content-Length": str(len(body)), "Content-Type": "application/json", "Connection": "close"}
    lines |= {name.replace("_", "-"): value for name, value in headers.items()}
    head = "".join(f"{name}: {value}\r\n" for name, value in lines.items() if value)
    return f"HTTP/1.1 {status}\r\n{head}\r\n".encode() + body


def dripping(body: bytes, pause_s: float) -> Callable[[socket.socket], None]:
    """Return an answer that comes byte by byte."""

    def send(connection: socket.socket) -> None:
        connection.sendall(f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n".encode())
        for one in body:
            connection.sendall(bytes([one]))
            time.sleep(pause_s)

    return send
