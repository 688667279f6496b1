# SPDX-License-Identifier: Apache-2.0
"""The server under test as a real process: start, stop, kill, restart on the same data."""

import os
import re
import signal
import sqlite3
import subprocess
import threading
import time
from pathlib import Path

from lib.http import Client
from lib.wait import LEAST, until

ROOT = Path(__file__).resolve().parents[2]
TRACK_TOKEN = "track-token-0123456789abcdef"
ADMIN_TOKEN = "admin-token-0123456789abcdef"

# Never inherited from whoever runs the tests.
OURS = ("LEASEHOLD_", "BROKER_", "CSP_", "DDB_", "AWS_", "CLEANUP_", "NIOSXAAS_", "CIRCUIT_", "BACKOFF_", "QUARANTINE_")
OURS_EXACT = {
    "ACCOUNT_TABLE_NAME",
    "SANDBOX_OU_ID",
    "EJECT_AFTER_CLEANUP",
    "API_BASE_PATH",
    "LAB_DURATION_HOURS",
    "GRACE_PERIOD_MINUTES",
    "SYNC_INTERVAL_SEC",
    "AUTO_EXPIRY_INTERVAL_SEC",
    "K_CANDIDATES",
    "DELETION_RETRY_MAX_ATTEMPTS",
    "LOG_LEVEL",
    "LOG_FORMAT",
    "METRICS_PORT",
    "ENABLE_REQUEST_ID",
    "CORS_ALLOWED_ORIGINS",
}

# Jobs run at start and when asked; nothing waits; no limit gets in the way unless a test is about it.
QUIET = {
    "BROKER_API_TOKEN": TRACK_TOKEN,
    "BROKER_ADMIN_TOKEN": ADMIN_TOKEN,
    "SYNC_INTERVAL_SEC": "3600",
    "CLEANUP_INTERVAL_SEC": "3600",
    "AUTO_EXPIRY_INTERVAL_SEC": "3600",
    "CLEANUP_BATCH_DELAY_SEC": "0",
    "LEASEHOLD_RATE_LIMIT_PER_SEC": "0",
    "LAB_DURATION_HOURS": "4",
    "GRACE_PERIOD_MINUTES": "30",
}


def binary():
    path = Path(os.environ.get("LEASEHOLD_BIN", "build/leasehold"))
    return str(path if path.is_absolute() else ROOT / path)


def clean_env(extra):
    env = {k: v for k, v in os.environ.items() if not k.startswith(OURS) and k not in OURS_EXACT}
    env.update({k: str(v) for k, v in extra.items() if v is not None})
    return env


def run(*args, env=None, timeout=LEAST):
    """Run a command of the program to its end."""
    return subprocess.run(
        [binary(), *args],
        env=clean_env(env or {}),
        stdin=subprocess.DEVNULL,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        timeout=max(timeout, LEAST),
        check=False,
    )


class Ended(AssertionError):
    """A server ended instead of listening."""

    def __init__(self, status, said):
        super().__init__("ended with %s: %s" % (status, said[-2000:]))
        self.status = status


class Server:
    def __init__(self, data, env=None, args=(), bare=False, init=True):
        """bare: without the quiet settings, so without tokens too. init: make a store when there is none."""
        self.data = Path(data)
        self.env = {**({} if bare else QUIET), **(env or {})}
        self.args = list(args)
        self.init = init
        self.process = None
        self.address = None
        self.url = None
        self.lines = []
        self.errors = []
        self.said = []  # standard error of all its lives

    # The process.

    def command(self):
        init = ["--init"] if self.init else []
        return [binary(), "serve", "--listen", "127.0.0.1:0", "--data", str(self.data), *init, *self.args]

    def popen_options(self):
        return {}

    def refusal(self, timeout=LEAST):
        """It does not start; what it says."""
        got = subprocess.run(
            self.command(), env=clean_env(self.env), stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout
        )
        assert got.returncode == 1, (got.returncode, got.stdout, got.stderr)
        return got.stderr

    def start(self, timeout=90.0):
        assert self.process is None
        self.lines, self.errors, self.address = [], [], None
        self.started_at = int(time.time())
        self.process = subprocess.Popen(
            self.command(),
            env=clean_env(self.env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            **self.popen_options(),
        )
        self.readers = [
            threading.Thread(target=self._read, args=a, daemon=True)
            for a in ((self.process.stdout, self.lines), (self.process.stderr, self.errors))
        ]
        for reader in self.readers:
            reader.start()
        try:
            until(lambda: self.address or self.process.poll() is not None, "the server listens or ends", timeout)
            if not self.address:
                self.readers[1].join(LEAST)  # its last words may still be on their way
                raise Ended(self.process.poll(), "".join(self.errors))
        except AssertionError:
            self.kill()
            raise
        return self

    def try_start(self):
        """None when it listens; otherwise its exit status and what it said."""
        try:
            self.start()
            return None
        except Ended as e:
            return e.status, "".join(self.errors)

    def _read(self, stream, lines):
        for raw in stream:
            line = raw.decode("utf-8", "replace")
            lines.append(line)
            if lines is not self.lines:
                self.said.append(line)
            found = re.search(r'"message":"listening","address":"([^"]+)"|: listening address=(\S+)', line)
            if self.address is None and lines is self.lines and found:
                self.url = found.group(1) or found.group(2)
                host, _, port = self.url.partition("://")[2].rpartition(":")
                self.address = (host, int(port))

    def _reap(self):
        for reader in self.readers:
            reader.join(LEAST)
        self.process.stdout.close()
        self.process.stderr.close()
        self.process = None

    def stop(self, timeout=LEAST):
        """Graceful stop; returns the exit status."""
        if self.process is None:
            return None
        self.process.send_signal(signal.SIGTERM)
        try:
            status = self.process.wait(max(timeout, LEAST))
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError("still running %.0f s after SIGTERM" % timeout) from None
        self._reap()
        return status

    def kill(self):
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self._reap()

    def end(self):
        """At once; but a server that counts what it reaches (scripts/coverage) is given the time to write it down."""
        if self.process is not None and os.environ.get("LEASEHOLD_COUNTED") == "1":
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(LEAST / 2)
            except subprocess.TimeoutExpired:
                pass  # a test may have left it in the middle of something that does not end
        self.kill()

    def complaints(self):
        """What the sanitizers said, and a death that nobody asked for. To be asked before the last stop or kill."""
        said = [line for line in self.said if "runtime error:" in line or "Sanitizer" in line or "Assertion" in line]
        if self.process is not None and self.process.poll() is not None:
            said.append("it ended by itself with %s" % self.process.poll())
        return said

    def wait_end(self, timeout=LEAST):
        """It was told to end by other means; its exit status."""
        status = self.process.wait(max(timeout, LEAST))
        self._reap()
        return status

    def restart(self, **env):
        assert self.stop() == 0, "".join(self.errors)[-2000:]
        self.env.update(env)
        self.start()
        return self.settle() if "BROKER_ADMIN_TOKEN" in self.env else self

    def signal(self, number):
        self.process.send_signal(number)

    @property
    def pid(self):
        return self.process.pid

    def is_alive(self):
        return self.process is not None and self.process.poll() is None

    def says(self, *words):
        """What it has said, once all of this is in it: the last lines may still be on their way."""
        return until(lambda: (lambda said: all(w in said for w in words) and said)(self.output()), "it says %s" % (words,))

    def output(self):
        return "".join(self.lines) + "".join(self.errors)

    # Callers.

    def client(self, headers=None, **kw):
        return Client(self.address, headers, **kw)

    def track(self, owner, token=None, **kw):
        return Track(
            self.address,
            owner,
            token or self.env.get("BROKER_API_TOKEN", "").split(",")[0],
            self.env.get("API_BASE_PATH", "/v1"),
            **kw
        )

    def admin(self, token=None, **kw):
        return Admin(
            self.address,
            token or self.env.get("BROKER_ADMIN_TOKEN", "").split(",")[0],
            self.env.get("API_BASE_PATH", "/v1"),
            **kw
        )

    def wait_available(self, count, timeout=60.0):
        """Sync has put so many into the pool."""
        admin = self.admin()
        until(lambda: admin.stats()["available"] >= count, "%d sandboxes available" % count, timeout, 0.02)
        admin.close()
        return self

    def settle(self, timeout=60.0):
        """No pass is under way or due, as at the first start and after a long stop: a call that runs a job would join it."""
        admin = self.admin()

        def is_over(job):
            is_ahead = (job["next_run_at"] or 0) >= self.started_at
            return job["paused"] or (job["last_finished_at"] and is_ahead and not job["running"])

        until(lambda: all(is_over(j) for j in admin.jobs()), "the jobs' passes at start are over", timeout, 0.02)
        admin.close()
        return self

    # Its files, only while it is stopped.

    def sql(self, statement, *values):
        assert self.process is None, "stop the server first"
        db = sqlite3.connect(self.data / "leasehold.db")
        try:
            with db:
                before = db.total_changes  # rowcount knows nothing of what is changed through a view
                db.execute(statement, values)
                return db.total_changes - before
        finally:
            db.close()

    def age_allocation(self, sandbox_id, seconds):
        """Make a claim look that much older."""
        changed = self.sql(
            "UPDATE sandbox SET allocated_at = ? WHERE sandbox_id = ?", int(time.time()) - seconds, sandbox_id
        )
        assert changed == 1, "no row for %s" % sandbox_id

    def check_store(self):
        got = run("store", "check", "--data", str(self.data))
        assert got.returncode == 0 and "ok" in got.stdout, "store check: %d %s %s" % (
            got.returncode,
            got.stdout,
            got.stderr,
        )


class Track(Client):
    """One track's calls."""

    def __init__(self, address, owner, token, base="/v1", **kw):
        super().__init__(address, {"Authorization": "Bearer " + token, "X-Track-ID": owner}, **kw)
        self.owner = owner
        self.base = base

    def allocate(self, wait=None, key=None, prefix=None, headers=None, timeout=None):
        sent = dict(headers or {})
        if wait is not None:
            sent["Prefer"] = "wait=%s" % wait
        if key is not None:
            sent["Idempotency-Key"] = key
        if prefix is not None:
            sent["X-Sandbox-Name-Prefix"] = prefix
        return self.post(self.base + "/allocate", headers=sent, timeout=timeout)

    def claim(self, **kw):
        """A claim that must succeed; the body."""
        reply = self.allocate(**kw)
        assert reply.status in (200, 201), reply
        return reply.json

    def mark(self, sandbox_id, **kw):
        return self.post("%s/sandboxes/%s/mark-for-deletion" % (self.base, sandbox_id), **kw)

    def show(self, sandbox_id, **kw):
        return self.get("%s/sandboxes/%s" % (self.base, sandbox_id), **kw)


class Admin(Client):
    """An operator's calls."""

    def __init__(self, address, token, base="/v1", **kw):
        super().__init__(address, {"Authorization": "Bearer " + token}, **kw)
        self.base = base + "/admin"

    def stats(self):
        return self.good(self.get(self.base + "/stats"))

    def list(self, query=""):
        return self.get(self.base + "/sandboxes" + query)

    def pages(self, status=None, limit=100):
        """Every sandbox, page by page."""
        query = "?limit=%d" % limit + ("&status=" + status if status else "")
        cursor = None
        while True:
            page = self.good(self.list(query + ("&cursor=" + cursor if cursor else "")))
            yield page["sandboxes"]
            cursor = page["cursor"]
            if cursor is None:
                return

    def everything(self, status=None):
        return [item for page in self.pages(status) for item in page]

    def show(self, sandbox_id):
        return self.get("%s/sandboxes/%s" % (self.base, sandbox_id))

    def record(self, sandbox_id):
        return self.good(self.show(sandbox_id))

    def act(self, what, query="", **kw):
        """POST admin/{what}."""
        return self.post("%s/%s%s" % (self.base, what, query), **kw)

    def run(self, what, query="", **kw):
        """The same, and it must succeed."""
        return self.good(self.act(what, query, **kw))

    def on(self, sandbox_id, what, **kw):
        return self.post("%s/sandboxes/%s/%s" % (self.base, sandbox_id, what), **kw)

    def jobs(self):
        return self.good(self.get(self.base + "/jobs"))["jobs"]

    def job(self, name):
        return next(j for j in self.jobs() if j["name"] == name)

    @staticmethod
    def good(reply):
        assert reply.status == 200, reply
        return reply.json
