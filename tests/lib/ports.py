# SPDX-License-Identifier: Apache-2.0
"""A port for who has to name one before somebody listens there, or to come back to it."""

import random
import socket
from pathlib import Path


def free_port():
    """Not one that the system gives to whoever connects somewhere, or listens at any: that would be taken in between."""
    first = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    for port in random.sample(range(10000, max(first, 20000)), 200):
        with socket.socket() as s:
            try:
                s.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue
    raise AssertionError("no port is free")
