"""A port for a server of a test's own."""

import socket


def free_port() -> int:
    """Return a TCP port on the loopback address that nobody listens on now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port
