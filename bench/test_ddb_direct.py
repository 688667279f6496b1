# SPDX-License-Identifier: Apache-2.0
"""The direct client against a small server: what it sends, and that each sandbox ends as a claim or as an error.

Usage: test_ddb_direct.py PROGRAM
"""
import http.server
import json
import subprocess
import sys
import threading
import unittest
from collections import Counter

PROGRAM = sys.argv.pop(1)
BODY = ('{"ClientRequestToken":"@TOKEN@","a":"SBX#@SANDBOX@","b":"@UPDATED@","c":"@TRACK@","d":"@TRACK@","e":"@EVENT@",'
        '"f":"@SLICE@","g":"@LAST@"}')
THROTTLED = b'{"__type":"x#TransactionCanceledException","CancellationReasons":[{"Code":"ThrottlingError"}]}'


class Server(http.server.ThreadingHTTPServer):
    """Answers the n-th request of all with answer(n): a status, THROTTLED, or None to hang up."""

    daemon_threads = True

    def __init__(self, answer):
        super().__init__(("127.0.0.1", 0), Requests)
        self.answer, self.bodies, self.targets, self.lock = answer, [], set(), threading.Lock()
        threading.Thread(target=self.serve_forever, args=(0.01,), daemon=True).start()


class Requests(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        with self.server.lock:
            self.server.bodies.append(json.loads(body))
            self.server.targets.add(self.headers["X-Amz-Target"])
            status = self.server.answer(len(self.server.bodies))
        if status is None:
            self.close_connection = True
            return
        body = status if status == THROTTLED else b"{}"
        self.send_response(400 if status == THROTTLED else status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def run(port, connections, lines):
    return subprocess.run([PROGRAM, str(port), str(connections), "4"], input="\n".join(lines) + "\n", text=True, timeout=60,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)


class DirectTest(unittest.TestCase):
    def claim(self, answer, connections, count):
        server = Server(answer)
        try:
            done = run(server.server_port, connections, [BODY] + [f"id-{i} {1000 + i} last-{i}" for i in range(count)])
        finally:
            server.shutdown()
            server.server_close()
        self.assertEqual(done.returncode, 0, done.stderr)
        server.said = done.stderr
        return json.loads(done.stdout), server

    def test_each_sandbox_is_asked_for_once_with_ids_of_its_own(self):
        result, server = self.claim(lambda n: 200, 4, 100)
        self.assertEqual((result["claims"], result["errors"], result["connections"]), (100, 0, 4))
        self.assertGreater(result["claim_rate"], 0)
        self.assertEqual(server.targets, {"DynamoDB_20120810.TransactWriteItems"})
        self.assertEqual(sorted((b["a"], b["b"], b["g"]) for b in server.bodies),
                         sorted((f"SBX#id-{i}", str(1000 + i), f"last-{i}") for i in range(100)))
        self.assertTrue(all(b["c"] == b["d"] for b in server.bodies))
        self.assertEqual(len({b[name] for b in server.bodies for name in ("c", "e", "ClientRequestToken")}), 300)
        self.assertEqual(Counter(b["f"] for b in server.bodies), {f: 25 for f in ("event", "event.1", "event.2", "event.3")})

    def test_what_is_throttled_is_sent_again_as_it_was(self):
        result, server = self.claim(lambda n: THROTTLED if n % 3 else 200, 1, 4)
        self.assertEqual((result["claims"], result["throttles"], result["errors"]), (4, 8, 0))
        self.assertEqual([server.bodies[3 * i] for i in range(4)], [server.bodies[3 * i + 2] for i in range(4)])

    def test_a_refusal_is_counted_and_told(self):
        result, server = self.claim(lambda n: 400 if n % 2 else 200, 1, 10)
        self.assertEqual((result["claims"], result["refusals"], result["failures"], result["errors"]), (5, 5, 0, 5))
        self.assertIn("refused with 400: {}", server.said)

    def test_a_lost_connection_leaves_the_rest_unasked(self):
        result, _ = self.claim(lambda n: 200 if n <= 3 else None, 1, 10)
        self.assertEqual((result["claims"], result["failures"], result["errors"]), (3, 1, 7))

    def test_input_that_makes_no_sense_is_refused(self):
        for lines in ([BODY], [BODY, "without-time"], [BODY, "id 1"], [BODY, "x" * 50 + " 1 last"]):
            done = run(1, 1, lines)
            self.assertEqual((done.returncode, done.stdout), (1, ""))
            self.assertIn("standard input", done.stderr)

    def test_an_unknown_placeholder_is_refused(self):
        server = Server(lambda n: 200)
        try:
            done = run(server.server_port, 1, ["@WHAT@", "id 1 last"])
        finally:
            server.shutdown()
            server.server_close()
        self.assertEqual((done.returncode, server.bodies), (1, []))
        self.assertIn("placeholder", done.stderr)


if __name__ == "__main__":
    unittest.main()
