# SPDX-License-Identifier: Apache-2.0
"""A gate before the database server, which can lose an answer or hold a question: what the front does with calls of AWS, for SQL.

It ends the TLS of both sides, with the server's own certificate, so it sees packets. Each packet of the client that is answered is a call: two to sign in, then
one or two for each statement. How many records of TLS they come in, and who speaks first, depends on how busy the machine is."""

import select
import socket
import ssl
import threading

from lib.ports import free_port

# What is held is lost, too: who asked was killed meanwhile.
KINDS = ("cut_before", "cut_after", "hold_before", "hold_after")
UNANSWERED = (0x01, 0x18, 0x19)  # COM_QUIT, COM_STMT_SEND_LONG_DATA, COM_STMT_CLOSE


class Rule:
    def __init__(self, kind, skip):
        self.kind, self.skip, self.hits, self.holding, self.released = kind, skip, 0, False, threading.Event()

    def lose(self):
        """At once, or when it is released."""
        if self.kind.startswith("hold"):
            self.holding = True
            self.released.wait(600)
            self.holding = False
        raise ConnectionError


def packets(data):
    """Those that are whole, and what is left: three bytes of size, one that numbers them within a command."""
    whole = []
    while len(data) >= 4 and len(data) >= (end := 4 + int.from_bytes(data[:3], "little")):
        whole.append(data[:end])
        data = data[end:]
    return whole, data


def read_packet(end):
    """One, before there is TLS."""
    data = b""
    while not packets(data)[0]:
        got = end.recv(4 if len(data) < 4 else 4 + int.from_bytes(data[:3], "little") - len(data))
        if not got:
            raise ConnectionError
        data += got
    return data


def read(end):
    """What has come. None: nothing; empty: it has ended."""
    try:
        return end.recv(65536)
    except ssl.SSLWantReadError:
        return None


def send(end, data):
    while data:
        try:
            data = data[end.send(data):]
        except ssl.SSLWantWriteError:
            select.select([], [end], [])


class SqlGate:
    def __init__(self, mariadb):
        self.to, self.lock, self.rule, self.calls = ("127.0.0.1", mariadb.port), threading.Lock(), None, 0
        self.inside, self.outside = mariadb.certificate.context(), ssl.create_default_context(cafile=mariadb.certificate.cert)
        self.listener = socket.create_server(("127.0.0.1", free_port()))
        self.host = "localhost:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def strikes(self):
        """A call begins: the rule that means it, or None."""
        with self.lock:
            self.calls += 1
            rule = self.rule
            if not rule or rule.hits:
                return None
            rule.skip -= 1
            if rule.skip >= 0:
                return None
            rule.hits = 1
            return rule

    def ask(self, packet):
        """The rule that the packet's answer meets, or None."""
        is_command = packet[3] == 0
        rule = None if is_command and packet[4] in UNANSWERED else self.strikes()
        if rule and rule.kind.endswith("before"):
            rule.lose()
        return rule

    def serve(self, client):
        ends = [client, socket.create_connection(self.to)]
        try:
            self.greet(ends)
            self.relay(*ends)
        except OSError:
            pass
        for end in ends:
            end.close()

    def greet(self, ends):
        """Until both sides have TLS."""
        ends[0].sendall(read_packet(ends[1]))
        request = read_packet(ends[0])
        rule = self.ask(request)
        ends[1].sendall(request)
        ends[1] = self.outside.wrap_socket(ends[1], server_hostname="localhost")
        if rule:
            rule.lose()
        ends[0] = self.inside.wrap_socket(ends[0], server_side=True)

    def relay(self, client, server):
        asked, rule = b"", None
        for end in (client, server):
            end.setblocking(False)
        while True:
            said, data = read(server), read(client)
            if b"" in (said, data):
                return
            if said and rule:
                rule.lose()
            send(client, said or b"")
            whole, asked = packets(asked + (data or b""))
            for packet in whole:
                rule = self.ask(packet)
                send(server, packet)
            if said is None and data is None:
                select.select([client, server], [], [])

    # As the front has it.

    def fault(self, kind, skip):
        assert kind in KINDS
        with self.lock:
            self.rule = Rule(kind, skip)

    def clear(self):
        with self.lock:
            if self.rule:
                self.rule.released.set()
            self.rule = None

    def close(self):
        self.clear()
        self.listener.close()
