# SPDX-License-Identifier: Apache-2.0
"""What stands before the database server in test_every_call_of_an_instance.py counts calls, not turns: on a busy machine there are more of these."""

import select
import socket
import ssl
import struct

import pytest

from lib.mariadb import MariaDb
from lib.sql_gate import SqlGate, read_packet

PROTOCOL_41, TLS, SECURE = 0x200, 0x800, 0x8000


@pytest.fixture
def gate(tmp_path):
    database = MariaDb(tmp_path)
    made = SqlGate(database)
    made.certificate = database.certificate.cert
    yield made
    made.close()
    database.close()


def packet(number, payload):
    return len(payload).to_bytes(3, "little") + bytes([number]) + payload


def test_a_server_that_speaks_before_the_login_has_come_makes_no_call_of_it(gate):
    host, port = gate.host.split(":")
    end = socket.create_connection((host, int(port)))
    assert read_packet(end)[4] == 10  # the protocol's version
    wishes = struct.pack("<IIB23x", PROTOCOL_41 | TLS | SECURE, 1 << 24, 45)
    end.sendall(packet(1, wishes))
    with ssl.create_default_context(cafile=gate.certificate).wrap_socket(end, server_hostname=host) as client:
        assert client.version() == "TLSv1.3"
        select.select([client], [], [], 60)  # it gives out tickets when TLS is there
        client.sendall(packet(2, wishes + b"nobody\0\0"))
        assert client.recv(65536)[4] in (0xfe, 0xff)  # how else to sign in, or not at all
    assert gate.calls == 2
