"""Length-prefixed JSON messages over a stream socket."""

from __future__ import annotations

import json
import socket
import struct
from typing import Any

MAX_BYTES = 64 * 2**20
"""A longer message is refused: no test needs it, and the receiver's memory is not the sender's to spend."""

_HEAD = struct.Struct("!I")


class Closed(Exception):
    """The other side is gone, or sent something that is no message."""


def send(sock: socket.socket, message: Any) -> None:
    """Send one message."""
    body = json.dumps(message, separators=(",", ":")).encode()
    if len(body) > MAX_BYTES:
        raise ValueError(f"a message of {len(body)} bytes; {MAX_BYTES} are allowed")
    sock.sendall(_HEAD.pack(len(body)) + body)


def receive(sock: socket.socket) -> Any:
    """Return the next message; raises ``Closed`` when there is none."""
    (size,) = _HEAD.unpack(_exactly(sock, _HEAD.size))
    if size > MAX_BYTES:
        raise Closed(f"announced {size} bytes")
    try:
        return json.loads(_exactly(sock, size))
    except ValueError as error:
        raise Closed("not a message") from error


def _exactly(sock: socket.socket, size: int) -> bytes:
    parts = []
    while size:
        try:
            part = sock.recv(min(size, 2**20))
        except OSError as error:
            raise Closed(str(error)) from error
        if not part:
            raise Closed("end of stream")
        parts.append(part)
        size -= len(part)
    return b"".join(parts)
