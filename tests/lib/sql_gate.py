# SPDX-License-Identifier: Apache-2.0
"""A gate before the database server, which can lose an answer or hold a question: what the front does with calls of AWS, for SQL.

It sees neither statements nor answers, which are TLS; but a client that has asked waits for an answer, so each time that it speaks after the server has spoken is
a call: two to sign in, then one for each statement."""

import socket
import threading

from lib.ports import free_port

# What is held is lost, too: who asked was killed meanwhile.
KINDS = ("cut_before", "cut_after", "hold_before", "hold_after")


class Rule:
    def __init__(self, kind, skip):
        self.kind, self.skip, self.hits, self.holding, self.released = kind, skip, 0, False, threading.Event()


class SqlGate:
    def __init__(self, port):
        self.to, self.lock, self.rule, self.calls, self.number = ("127.0.0.1", port), threading.Lock(), None, 0, 0
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

    @staticmethod
    def hold(rule):
        rule.holding = True
        rule.released.wait(600)
        rule.holding = False

    def serve(self, client):
        server = socket.create_connection(self.to)
        state = {"is_turn": False, "lost": None}  # the server has spoken; the rule that its next words are for
        ended = threading.Event()

        def answers():
            while data := server.recv(65536):
                rule = state["lost"]
                if rule and rule.kind == "cut_after":
                    break
                if rule:
                    state["lost"] = None
                    self.hold(rule)
                state["is_turn"] = True
                client.sendall(data)

        def questions():
            while data := client.recv(65536):
                rule = self.strikes() if state["is_turn"] else None
                state["is_turn"] = False
                if rule and rule.kind == "hold_before":
                    self.hold(rule)
                if rule and rule.kind.endswith("before"):
                    break
                if rule:
                    state["lost"] = rule
                server.sendall(data)

        def pump(run):
            try:
                run()
            except OSError:
                pass
            ended.set()

        for run in (answers, questions):
            threading.Thread(target=pump, args=(run,), daemon=True).start()
        ended.wait()
        for end in (client, server):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            end.close()

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
