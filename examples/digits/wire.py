"""Messages over TCP: a one-byte tag, a length, and a vector of doubles."""

import socket
import struct
import time
from array import array

HEADER = struct.Struct("!cI")
PULL, PUSH, WEIGHTS, DONE = b"?", b"g", b"w", b"."


def send(connection, tag, vector=()):
    """Sends one message."""
    body = array("d", vector).tobytes()
    connection.sendall(HEADER.pack(tag, len(body)) + body)


def receive(connection):
    """Returns the next message as (tag, vector). Raises ConnectionError at the end."""
    tag, length = HEADER.unpack(_exactly(connection, HEADER.size))
    vector = array("d")
    vector.frombytes(_exactly(connection, length))
    return tag, vector


def _exactly(connection, count):
    parts = []
    while count:
        part = connection.recv(count)
        if not part:
            raise ConnectionError("the other side closed the connection")
        parts.append(part)
        count -= len(part)
    return b"".join(parts)


def connect(address, timeout=20.0):
    """Connects. Retries for `timeout` seconds, because the peer may still be starting."""
    deadline = time.monotonic() + timeout
    while True:
        try:
            connection = socket.create_connection(address, timeout=5)
            connection.settimeout(None)
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return connection
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)
