#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Fuzzes the whole HTTP API of a sanitized server from its own OpenAPI document.

    fuzz_api.py [--seconds N] [--seed N] [--rounds N] [--requests N] [--keep-going] [--without ID,...]

The server is LEASEHOLD_BIN, or build-asan/leasehold.

A round is a new server with a seed of its own, and some hundred requests by callers of every kind: nobody, tracks,
operators, those who send events, users, managers, admins, keys, and tokens that are none. Some are sent together, some in
pieces, some callers leave before their answer; now and then the settings are read again. Round after round until the time
is over; `--seed N --rounds 1` repeats one.

A round is good when: the server lives and ends in order when told to; no sanitizer has said anything, leaks included; no
reply is 500; each has a status and a media type that the document declares for its operation; /readyz answers within
READY_MAX_SEC all the time; and the store is sound at the end.
"""

import argparse
import json
import os
import random
import re
import signal
import sys
import tempfile
import time
from collections import Counter, deque
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1]), str(Path(__file__).resolve().parent)]
ROOT = Path(__file__).resolve().parents[2]
os.environ.setdefault("LEASEHOLD_BIN", str(ROOT / "build-asan/leasehold"))

from api_requests import Maker  # noqa: E402
from lib import jwt, ops  # noqa: E402
from lib.http import Broken, Connection  # noqa: E402
from lib.server import ADMIN_TOKEN, QUIET, TRACK_TOKEN, Server, run  # noqa: E402

READY_MAX_SEC = 3.0  # of a sanitized server, on a machine that may be busy
REPLY_MAX_SEC = 60.0
READY_EVERY = 25  # requests
TRACE = 200  # requests that are kept for a report
# Answers that any request may get before it is known which operation it is.
ANY = {400, 408, 414, 431}
STRANGE = ANY | {401, 403, 404, 405, 411, 413, 415, 417, 429, 501, 505}
# Second media types, of which only the summaries speak.
OTHER_KINDS = {"showService": "text/html", "showStatement": "text/csv", "showLeaseStatement": "text/csv"}

ENV = {
    **QUIET,
    "LEASEHOLD_INBOX_TOKENS": ops.INBOX_TOKEN,
    "LEASEHOLD_JWT_SECRET": jwt.SECRET,
    "LEASEHOLD_TIME_SCALE": "360",
    "LEASEHOLD_WAIT_MAX_SEC": "1",
    "LOG_LEVEL": "WARNING",
}
PEOPLE = (("user@example.com", "User"), ("manager@example.com", "Manager"), ("admin@example.com", "Admin"))


class Failure(Exception):
    pass


def tokens():
    people = [jwt.token(email, role) for email, role in PEOPLE]
    people += people[-1:] * 3  # who may do most
    bad = [
        "x", "a.b.c", jwt.token("user@example.com", "Admin", secret="another-secret-0123456789abcdef"),
        jwt.token("user@example.com", "User", lives=-10), jwt.token("nobody@example.com", "User"), "\"" * 3000,
        jwt.sign({"user": {"email": 1, "roles": {}}, "exp": "x"}), jwt.sign([], header={"alg": "none"}),
    ]
    return {"trackToken": [TRACK_TOKEN], "adminToken": [ADMIN_TOKEN], "inboxToken": [ops.INBOX_TOKEN], "sessionToken": people, "": bad}


class Round:
    def __init__(self, seed, folder, without):
        self.seed, self.folder, self.without = seed, Path(folder), without
        self.trace = deque(maxlen=TRACE)
        self.statuses, self.reached = Counter(), set()
        self.count, self.slowest_ready = 0, 0.0
        self.open = {}

    def play(self, requests, end):
        self.server = Server(self.folder / "data", ENV, ["--dev"], bare=True).start(120)
        try:
            self._talk(requests, end)
            self._stop()
        except (Failure, Broken, OSError, AssertionError) as e:
            raise Failure(self._explain(e)) from e
        finally:
            self.server.kill()

    def _explain(self, e):
        """What happened, and what the server said about it."""
        time.sleep(1)  # for a report that is being written
        said = "".join(self.server.said)[-6000:]
        ended = "" if self.server.is_alive() else "; the server has ended"
        return "%s: %s%s\n%s" % (type(e).__name__, e, ended, said)

    def _talk(self, requests, end):
        self.ready = self._connect()
        document = self._fetch("/v1/openapi.json").json
        self.maker = Maker(document, "%s:%d" % self.server.address, tokens())
        self.maker.choose(random.Random(self.seed), self.without)
        self._look_around()
        for n in range(requests):
            if n % READY_EVERY == 0:
                self._check_ready()
                if time.monotonic() > end:
                    break
            dice = random.Random("%d/%d" % (self.seed, n))
            manner = dice.choices((self._ask, self._pipeline, self._leave, self._dribble, self._break, self._reload), (70, 10, 8, 4, 8, 0.2))
            manner[0](dice)
        self._check_ready()

    def _look_around(self):
        """What there is from the start."""
        for operation in self.maker.operations:
            if operation.method == "get" and "{" not in operation.path and not operation.is_endless:
                token = (jwt.token(*PEOPLE[-1]) if operation.path.startswith("/api") else ADMIN_TOKEN).encode()
                self.trace.append(b"GET %s HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\n\r\n" % (operation.path.encode(), token))
                self.ready.send(self.trace[-1])
                reply = self.ready.reply()
                if reply.status == 200 and reply.header("content-type") == "application/json":
                    self.maker.told.learn(operation.path, reply.json)

    def _stop(self):
        status = self.server.stop(60)
        said = [line for line in self.server.said if "runtime error:" in line or "Sanitizer" in line or "Assertion" in line]
        if status != 0 or said:
            raise Failure("it ended with %s: %s" % (status, "".join(said)))
        checked = run("store", "check", "--data", str(self.server.data), timeout=120)
        if checked.returncode != 0:
            raise Failure("store check: %s %s" % (checked.stdout, checked.stderr))

    # Ways to send.

    def _connect(self):
        return Connection(self.server.address, REPLY_MAX_SEC)

    def _make(self, dice):
        request = self.maker.make(dice)
        self.trace.append(request.bytes())
        self.count += 1
        return request

    def _ask(self, dice):
        """One request on a connection of a few that are kept."""
        place, request = dice.randrange(4), self._make(dice)
        connection = self.open.pop(place, None) or self._connect()
        try:
            connection.send(request.bytes())
            is_kept = self._hear(request, connection)
        except (Broken, ConnectionError):  # it was closed after an earlier reply
            connection.close()
            connection = self._connect()
            connection.send(request.bytes())
            is_kept = self._hear(request, connection)
        if is_kept:
            self.open[place] = connection
        else:
            connection.close()

    def _pipeline(self, dice):
        batch = [self._make(dice) for _ in range(dice.randint(2, 12))]
        connection = self._connect()
        try:
            connection.send(b"".join(r.bytes() for r in batch))
            for request in batch:
                if not self._hear(request, connection):
                    break
        except (Broken, ConnectionError):
            pass  # the replies before it were judged; a refused request ends the connection with what is behind it
        connection.close()

    def _leave(self, dice):
        connection = self._connect()
        for _ in range(dice.randint(1, 3)):
            connection.send(self._make(dice).bytes())
        connection.close()

    def _dribble(self, dice):
        request, connection = self._make(dice), self._connect()
        data = request.bytes()
        at = dice.randrange(len(data))
        try:
            connection.send(data[:at])
            connection.send(data[at:])
            self._hear(request, connection)
        except (Broken, ConnectionError):
            pass  # refused before all was sent
        connection.close()

    def _break(self, dice):
        """Bytes that are not quite a request any more."""
        data, connection = bytearray(self._make(dice).bytes()), self._connect()
        for _ in range(dice.randint(1, 6)):
            at, size = dice.randrange(len(data)), dice.randint(0, 8)
            data[at : at + size] = dice.choice((b"", bytes([dice.randrange(256)]), b"\r\n", b"\0", bytes(data[at : at + 9]) * 2, b": "))
        self.trace[-1] = bytes(data)
        try:
            connection.send(bytes(data))
            connection.sock.shutdown(1)
            status, _ = connection._head()
            self._judge_status(None, status, bytes(data[:300]))
        except (Broken, ConnectionError):
            pass
        connection.close()

    def _reload(self, dice):
        self.trace.append(b"SIGHUP")
        self.server.signal(signal.SIGHUP)

    # Judging.

    def _fetch(self, path):
        self.ready.send(b"GET %s HTTP/1.1\r\nHost: x\r\n\r\n" % path.encode())
        return self.ready.reply()

    def _check_ready(self):
        began = time.monotonic()
        try:
            reply = self._fetch("/readyz")
        except (Broken, ConnectionError):  # idle for too long
            self.ready = self._connect()
            reply = self._fetch("/readyz")
        took = time.monotonic() - began
        self.slowest_ready = max(self.slowest_ready, took)
        if reply.status not in (200, 503):
            raise Failure("/readyz answers %d" % reply.status)
        if took > READY_MAX_SEC:
            raise Failure("/readyz took %.1f s" % took)

    def _hear(self, request, connection):
        """Read and judge the reply. False: the connection is over."""
        operation = request.operation
        if operation.is_endless:
            status, headers = connection._head()
            self._judge_status(request, status, request.target)
            return False
        reply = connection.reply(request.method == "HEAD")
        self._judge_status(request, reply.status, reply)
        if request.method == operation.method.upper():
            self._judge_body(request, reply)
        return (reply.header("connection") or "").lower() != "close"

    def _judge_status(self, request, status, shown):
        self.statuses[status] += 1
        if request:
            declared = set(request.operation.replies) | ANY
        else:  # broken bytes may still be a request, of any operation; 204 is the answer to OPTIONS
            declared = (STRANGE | {204, 304}).union(*(operation.replies for operation in self.maker.operations))
        if request and request.is_strange:
            declared |= STRANGE | {200, 204}
        what = str(request)[:300] if request else "broken bytes"
        if status == 500 or status not in declared:
            raise Failure("%s is answered %d, declared are %s: %s" % (what, status, sorted(declared - {500}), shown))

    def _judge_body(self, request, reply):
        kind = (reply.header("content-type") or "").split(";")[0]
        declared = request.operation.replies.get(reply.status, {}).get("content", {})
        if reply.status < 300:
            self.reached.add(request.operation.id)
            if declared and kind not in (*declared, OTHER_KINDS.get(request.operation.id)):
                raise Failure("%s answers %s, declared are %s" % (str(request)[:300], kind, list(declared)))
        if kind == "application/json" and reply.body:
            try:
                self.maker.told.learn(request.operation.path, reply.json)
            except ValueError as e:
                raise Failure("%s: not JSON: %s: %r" % (str(request)[:300], e, reply.body[:500])) from e
        self._keep_form(reply)

    def _keep_form(self, reply):
        for cookie in reply.all("set-cookie"):
            name, _, value = cookie.split(";")[0].partition("=")
            self.maker.told.cookies[name] = value
        found = re.search(rb'name="form" value="([^"]+)"', reply.body)
        if found:
            self.maker.told.learn_form(found.group(1).decode())


def keep(one):
    """The requests before a failure, for reading."""
    path = ROOT / "build-asan" / ("fuzz-api-%d.trace" % one.seed)
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps(data.decode("latin-1")) + "\n" for data in one.trace))
    return path


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--seconds", type=float, default=10)
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--rounds", type=int, default=1 << 30)
    options.add_argument("--requests", type=int, default=1500, help="of one round")
    options.add_argument("--keep-going", action="store_true", help="a failure does not end the run")
    options.add_argument("--without", default="", help="operation ids that are left out, with commas between them")
    o = options.parse_args()
    began, total, statuses, reached, slowest, rounds, failures = time.monotonic(), 0, Counter(), set(), 0.0, 0, 0
    end = began + o.seconds
    while rounds < o.rounds and (time.monotonic() < end or rounds == 0):
        with tempfile.TemporaryDirectory() as folder:
            one = Round(o.seed + rounds, folder, o.without.split(","))
            try:
                one.play(o.requests, end if o.rounds == 1 << 30 else began + 1e9)
            except Failure as e:
                print("fuzz-api: seed %d, request %d: %s" % (one.seed, one.count, e), file=sys.stderr)
                print("fuzz-api: the requests before it: %s; replay with: make fuzz-api SEED=%d ROUNDS=1" % (keep(one), one.seed), file=sys.stderr)
                failures += 1
                if not o.keep_going:
                    return 1
        rounds, total, slowest = rounds + 1, total + one.count, max(slowest, one.slowest_ready)
        statuses, reached = statuses + one.statuses, reached | one.reached
    print(
        "fuzz-api: %d requests in %d s, seeds %d to %d: %d failures; %d of %d operations reached with success; slowest /readyz %d ms; replies %s"
        % (total, time.monotonic() - began, o.seed, o.seed + rounds - 1, failures, len(reached), len(one.maker.operations), slowest * 1000,
           " ".join("%d:%d" % s for s in sorted(statuses.items())))
    )
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
