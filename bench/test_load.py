# SPDX-License-Identifier: Apache-2.0
"""The load generator against servers that misbehave: every request must end as a reply or as a failure of one kind.

Usage: test_load.py PROGRAM
"""
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
import unittest

PROGRAM = sys.argv.pop(1)


def reply(status, body=b""):
    return b"HTTP/1.1 %d x\r\nContent-Length: %d\r\n\r\n%s" % (status, len(body), body)


class Server:
    """Answers the n-th request of all with answer(n, request): bytes, a list of pieces, or None to hang up."""

    def __init__(self, answer):
        self.answer, self.count, self.lock = answer, 0, threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(client,), daemon=True).start()

    def serve(self, client):
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with client:
            try:
                while self.serve_one(client):
                    pass
            except ConnectionError:
                pass  # the generator hangs up on what it refuses

    def serve_one(self, client):
        request = b""
        while not request.endswith(b"\r\n\r\n"):
            more = client.recv(4096)
            if not more:
                return False
            request += more
        with self.lock:
            self.count += 1
            answer = self.answer(self.count, request[:-4])
        if answer is None:
            return False
        for piece in [answer] if isinstance(answer, bytes) else answer:
            client.sendall(piece)
        return True

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.listener.close()


def load(port, *arguments):
    done = subprocess.run([PROGRAM, "--port", str(port), *arguments], stdout=subprocess.PIPE, check=True, timeout=60,
                          env=dict(os.environ, BROKER_API_TOKEN="0123456789abcdef"))
    return json.loads(done.stdout)


class LoadTest(unittest.TestCase):
    def run_load(self, answer, *arguments):
        with Server(answer) as server:
            result = load(server.port, *arguments)
        ended = sum(result["statuses"].values()) + sum(result["failures"].values())
        self.assertEqual(result["requests"], ended)
        return result

    def test_a_claim_has_a_token_and_a_track_id_of_its_own(self):
        seen = []
        self.run_load(lambda n, request: seen.append(request) or reply(201), "--requests", "50", "--connections", "3")
        headers = [dict(line.split(b": ", 1) for line in request.split(b"\r\n")[1:]) for request in seen]
        self.assertTrue(all(request.startswith(b"POST /v1/allocate HTTP/1.1\r\n") for request in seen))
        self.assertEqual({h[b"Authorization"] for h in headers}, {b"Bearer 0123456789abcdef"})
        self.assertEqual(len({h[b"X-Track-ID"] for h in headers}), 50)
        self.assertEqual({len(h[b"X-Track-ID"]) for h in headers}, {36})

    def test_fixed_requests_are_all_the_same(self):
        seen = set()
        self.run_load(lambda n, request: seen.add(request) or reply(200), "--requests", "20", "--connections", "4",
                      "--mode", "fixed")
        self.assertEqual(len(seen), 1)

    def test_replies_in_single_bytes_are_counted_whole(self):
        def answer(n, request):
            whole = reply(201, b'{"sandbox_id":"s-%d"}' % n)
            return [whole[i:i + 1] for i in range(len(whole))]

        result = self.run_load(answer, "--requests", "20", "--connections", "2", "--check-unique")
        self.assertEqual((result["claims"], result["ids"], result["ids_repeated"], result["errors"]), (20, 20, 0, 0))

    def test_until_empty_stops_at_the_first_409(self):
        result = self.run_load(lambda n, _: reply(201 if n <= 10 else 409), "--until-empty", "--connections", "4")
        self.assertEqual((result["claims"], result["errors"]), (10, 0))
        self.assertLessEqual(result["statuses"]["409"], 4)
        self.assertLessEqual(result["claim_seconds"], result["seconds"])

    def test_a_refusal_is_an_error(self):
        result = self.run_load(lambda n, _: reply(503 if n % 5 == 0 else 201), "--requests", "20")
        self.assertEqual((result["statuses"], result["errors"]), ({"201": 16, "503": 4}, 4))

    def test_an_id_given_twice_is_found(self):
        result = self.run_load(lambda n, _: reply(201, b'{"sandbox_id":"s-%d"}' % (n % 9)), "--requests", "10",
                               "--check-unique")
        self.assertEqual((result["ids"], result["ids_repeated"], result["ids_missing"]), (10, 1, 0))

    def test_a_list_has_each_claim_with_its_track(self):
        seen = {}

        def answer(n, request):
            seen[re.search(rb"X-Track-ID: (\S+)", request).group(1)] = b"s-%d" % n
            return reply(201 if n != 3 else 503, b'{"sandbox_id":"s-%d"}' % n)

        with tempfile.TemporaryDirectory() as folder:
            self.run_load(answer, "--requests", "10", "--list", folder + "/claims")
            with open(folder + "/claims", "rb") as f:
                lines = [tuple(line.split()) for line in f]
        self.assertEqual(sorted(lines), sorted((t, s) for t, s in seen.items() if s != b"s-3"))

    def test_a_reply_without_id_is_found(self):
        result = self.run_load(lambda n, _: reply(201, b"{}"), "--requests", "3", "--check-unique")
        self.assertEqual((result["ids"], result["ids_missing"]), (0, 3))

    def test_a_connection_that_was_closed_is_opened_again(self):
        result = self.run_load(lambda n, _: None if n % 4 == 0 else reply(201), "--requests", "20")
        self.assertEqual((result["claims"], result["failures"]["closed"], result["errors"]), (15, 5, 5))

    def test_half_a_reply_is_no_reply(self):
        with Server(lambda n, _: reply(201, b"x" * 9)[:-1] if n == 1 else reply(201)) as server:
            result = load(server.port, "--seconds", "1")
        self.assertEqual((result["claims"], result["failures"]["timeout"], result["errors"]), (0, 1, 1))

    def test_what_is_not_http_is_malformed(self):
        result = self.run_load(lambda n, _: b"hello\r\n\r\n" if n == 2 else reply(201), "--requests", "5")
        self.assertEqual((result["claims"], result["failures"]["malformed"]), (4, 1))

    def test_two_replies_to_one_request_are_malformed(self):
        result = self.run_load(lambda n, _: reply(201) + reply(201), "--requests", "2")
        self.assertEqual((result["claims"], result["failures"]["malformed"]), (0, 2))

    def test_a_reply_that_is_too_large_is_refused(self):
        result = self.run_load(lambda n, _: reply(201, b"x" * 20000), "--requests", "1")
        self.assertEqual((result["claims"], result["errors"]), (0, 1))

    def test_in_the_open_loop_a_stall_counts_for_all_that_were_due(self):
        def answer(n, request):
            if n == 1:
                threading.Event().wait(0.25)  # the server stalls; 50 more are due meanwhile
            return reply(201)

        closed = self.run_load(answer, "--requests", "80")
        opened = self.run_load(answer, "--requests", "80", "--rate", "200")
        self.assertEqual((opened["claims"], opened["errors"]), (80, 0))
        self.assertGreaterEqual(opened["seconds"], 79 / 200)
        self.assertGreater(opened["latency_us"]["p50"], 10_000)
        self.assertGreater(opened["latency_us"]["p50"], closed["latency_us"]["p50"])


if __name__ == "__main__":
    unittest.main()
