# SPDX-License-Identifier: Apache-2.0
"""The local instance driver in a process of its own (tests/unit/local_tool.c), and what a browser does with the sites it makes."""

import http.cookiejar
import itertools
import json
import os
import queue
import re
import shutil
import signal
import subprocess
import tempfile
import threading
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

from lib.ports import free_port
from lib.server import binary
from lib.wait import until

RESOURCES = ["storage", "database", "secret", "route", "workers", "identity"]
CLOSED, OPEN, SUSPENDED, PARKED = range(4)


def remove(folder):
    """With everything in it, though the last of those who write there may be about to end."""
    def is_gone():
        shutil.rmtree(folder, ignore_errors=True)
        return not Path(folder).exists()

    until(is_gone, "%s is removed" % folder, 60, 0.1)


def open_files(process):
    """Of a process by its folder in /proc; without those that it closes meanwhile, which are no reason to overlook it."""
    try:
        numbers = list((process / "fd").iterdir())
    except OSError:  # it has ended
        return
    for number in numbers:
        try:
            yield os.readlink(number)
        except OSError:
            pass


class Refused(Exception):
    def __init__(self, reply):
        super().__init__(reply["error"])
        self.status, self.reply = reply["status"], reply


class Driver:
    """Answers are dictionaries; what fails raises Refused."""

    def __init__(self, folder, router=None, user=None):
        """user: a name; only root may choose one."""
        self.folder, self.user = Path(folder), user
        self.router = router or "127.0.0.1:%d" % free_port()
        self.process = None
        self.ids = itertools.count(1)

    def start(self):
        tool = Path(binary()).parent / "tests/unit/local_tool"
        self.process = subprocess.Popen(
            [str(tool)],
            user=self.user,
            group=self.user and "nogroup",
            extra_groups=[] if self.user else None,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
        )
        self._write({"folder": str(self.folder), "router": self.router})
        hello = {}
        while "opened" not in hello:  # it may log before
            hello = json.loads(self.process.stdout.readline())
        if not hello["opened"]:
            self.process.wait()
            self.process.stdin.close()
            self.process.stdout.close()
            self.process = None
            raise AssertionError(hello["error"])
        self.waiting = {}
        threading.Thread(target=self._read, args=(self.process,), daemon=True).start()
        self.versions = self.call("versions")["versions"]
        return self

    def _write(self, value):
        self.process.stdin.write(json.dumps(value) + "\n")
        self.process.stdin.flush()

    def _read(self, process):
        for line in process.stdout:
            if line.startswith('{"timestamp"'):
                continue
            reply = json.loads(line)
            if "id" in reply:
                self.waiting[reply["id"]].put(reply)

    def ask(self, do, tenant="", **with_):
        """What is done goes on in a thread of the tool; call the result to wait for it."""
        number = next(self.ids)
        self.waiting[number] = queue.Queue()
        self._write({"id": number, "do": do, "tenant": tenant, **with_})

        def result(timeout=120):
            reply = self.waiting[number].get(timeout=timeout)
            if reply["status"] != 200:
                raise Refused(reply)
            return reply

        return result

    def call(self, do, tenant="", **with_):
        return self.ask(do, tenant, **with_)()

    def stop(self):
        if self.process:
            self.process.stdin.close()
            assert self.process.wait(120) == 0
            self.process.stdout.close()
            self.process = None

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process = None

    # All the steps.

    def provision(self, tenant, desired=2, instance=None, opens=True):
        spec = {
            "instance": instance or "inst-" + tenant,
            "organization": "Org of " + tenant,
            "email": "owner@%s.example" % tenant,
            "desired": desired,
        }
        for resource in RESOURCES:
            self.call("create", tenant, resource=resource, **spec)
        self.wait_running(tenant, desired)
        self.call("configure", tenant, **spec)
        if opens:
            self.call("route", tenant, to=OPEN)
        return Site(self, tenant)

    def deprovision(self, tenant):
        for resource in reversed(RESOURCES):
            self.call("delete", tenant, resource=resource)

    def sql(self, tenant, statements):
        """In the tenant's database, as its administrator."""
        client = ["mariadb", "--no-defaults", "--socket=%s" % (self.folder / "mariadb/sock")]
        names = subprocess.run([*client, "-N", "-e", "SHOW DATABASES LIKE 'tenant\\_%s\\_%%'" % tenant.removeprefix("tenant-").replace("-", "\\_")],
                               check=True, capture_output=True, text=True).stdout.split()
        assert len(names) == 1, names
        subprocess.run([*client, names[0], "-e", statements], check=True)

    def wait_running(self, tenant, count, timeout=120):
        def look():
            t = self.call("tasks", tenant)
            return t if t["running"] == count and not t["pending"] and len(t["tasks"]) == count and t["healthy"] else None

        return until(look, "%d tasks of %s run" % (count, tenant), timeout, 0.02)

    def processes(self):
        """Those of this folder: {pid: command line}."""
        found = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit() and any(f.startswith(str(self.folder / "run")) for f in open_files(entry)):
                try:
                    found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode().strip()
                except OSError:  # it has ended
                    continue
        return found

    def masters(self, kind="php-fpm: master"):
        return {p: c for p, c in self.processes().items() if c.startswith(kind)}

    def end_all(self):
        """At the end of a test, however it went."""
        if self.process and self.process.poll() is None:
            try:
                self.stop()
            except (AssertionError, subprocess.TimeoutExpired, BrokenPipeError):
                self.process.kill()
                self.process.wait()
        until(self.kill_all, "nothing of %s runs" % self.folder)

    def kill_all(self):
        """Was nothing left? A router that sees its workers die before itself has started others meanwhile."""
        left = self.processes()
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        return not left


class Drivers:
    def __init__(self):
        self.made = []

    def new(self, start=True):
        # Names of sockets are short, and tenants' users must be able to get there: not below pytest's folder.
        folder = tempfile.mkdtemp(prefix="leasehold-", dir="/tmp")
        os.chmod(folder, 0o711)
        driver = Driver(folder)
        self.made.append(driver)
        return driver.start() if start else driver

    def end(self):
        for driver in self.made:
            driver.end_all()
            remove(driver.folder)


class Page:
    def __init__(self, status, url, headers, body):
        self.status, self.url, self.headers, self.body = status, url, headers, body
        self.text = body.decode("utf-8", "replace")

    def __repr__(self):
        return "<%d %s %s>" % (self.status, self.url, self.text[:300])


class NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *args):
        return None


class Browser:
    """Keeps cookies and follows redirects."""

    def __init__(self, follows=True):
        self.jar = http.cookiejar.CookieJar()
        handlers = [urllib.request.HTTPCookieProcessor(self.jar), urllib.request.ProxyHandler({})]
        self.opener = urllib.request.build_opener(*handlers, *([] if follows else [NoRedirect()]))

    def open(self, url, data=None, headers=None, timeout=90, method=None):
        if isinstance(data, dict):
            data = urllib.parse.urlencode(data).encode()
        request = urllib.request.Request(url, data, headers or {}, method=method)
        try:
            with self.opener.open(request, timeout=timeout) as reply:
                return Page(reply.status, reply.url, reply.headers, reply.read())
        except urllib.error.HTTPError as reply:
            with reply:
                return Page(reply.code, reply.url, reply.headers, reply.read())


PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000" "1f15c4890000000d49444154789c6360606060000000050001a5f645400000000049454e44ae426082"
)


class Site:
    """A tenant's WordPress through the router."""

    def __init__(self, driver, tenant):
        self.driver, self.tenant = driver, tenant
        self.path = "/tenant/%s" % tenant
        self.url = "http://%s%s" % (driver.router, self.path)
        self.root = driver.folder / "www/tenant" / tenant
        self.browser = Browser()

    def get(self, path="/", **kw):
        return Browser().open(self.url + path, **kw)

    def sign_in(self, user=None, password=None):
        """As the administrator, by WordPress's own form."""
        if user is None:
            secret = self.driver.call("secret", self.tenant)
            user, password = secret["user"], secret["password"]
        self.browser.open(self.url + "/wp-login.php")
        return self.browser.open(
            self.url + "/wp-login.php", {"log": user, "pwd": password, "wp-submit": "Log In", "redirect_to": self.url + "/wp-admin/", "testcookie": "1"}
        )

    def _nonce(self):
        page = self.browser.open(self.url + "/wp-admin/admin-ajax.php?action=rest-nonce")
        assert page.status == 200 and re.fullmatch("[0-9a-f]{10}", page.text), page
        return page.text

    def rest(self, path, data=None, headers=None):
        sent = {"X-WP-Nonce": self._nonce(), "Content-Type": "application/json", **(headers or {})}
        return self.browser.open(self.url + "/wp-json/wp/v2/" + path, data, sent)

    def post(self, title):
        page = self.rest("posts", json.dumps({"title": title, "content": "Text of " + title, "status": "publish"}).encode())
        assert page.status == 201, page
        return json.loads(page.text)

    def upload(self, name="dot.png"):
        page = self.rest("media", PNG, {"Content-Type": "image/png", "Content-Disposition": 'attachment; filename="%s"' % name})
        assert page.status == 201, page
        return json.loads(page.text)


class Load:
    """Asks for a page again and again from some threads until it is ended; counts the answers."""

    def __init__(self, url, threads=4):
        self.url, self.answers, self.is_over = url, [], False
        self.threads = [threading.Thread(target=self._run) for _ in range(threads)]

    def _run(self):
        browser = Browser()
        while not self.is_over:
            try:
                page = browser.open(self.url)
                self.answers.append(page.status if page.text.rstrip().endswith("</html>") else "cut short")
            except OSError as e:
                self.answers.append(str(e))

    def __enter__(self):
        for t in self.threads:
            t.start()
        until(lambda: len(self.answers) >= 4, "first answers", 120)
        return self

    def __exit__(self, *_):
        self.is_over = True
        for t in self.threads:
            t.join()

    def more(self, count=10):
        """Wait for so many more answers."""
        have = len(self.answers)
        until(lambda: len(self.answers) >= have + count, "%d more answers" % count, 120)

    def bad(self):
        return [a for a in self.answers if a != 200]
