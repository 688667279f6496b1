# SPDX-License-Identifier: Apache-2.0
"""What the image of deploy/aws/site does, without the image: its programs on this machine's nginx, PHP and WordPress, with the environment that ECS would give
them for a task that the driver has ordered."""

import contextlib
import http.server
import json
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import urllib.parse
from pathlib import Path

from lib.http import Broken, Client
from lib.ports import free_port
from lib.wait import until

FOLDER = Path(__file__).parent.parent.parent / "deploy/aws/site"
WORDPRESS = "/usr/share/wordpress"


def environment_of(front, family, overrides=None):
    """As ECS has it: the definition's texts, its secrets read, and what the order overrides."""
    state = front.state("ecs")
    newest = max((d for d in state["definitions"] if d["family"] == family), key=lambda d: d["revision"])
    container = newest["asked"]["containerDefinitions"][0]
    env = {pair["name"]: pair["value"] for pair in container.get("environment", [])}
    secrets = front.state("secretsmanager")
    for pair in container.get("secrets", []):
        name, member = pair["valueFrom"].split(":secret:")[1].split(":")[0].rsplit("-", 1)[0], (pair["valueFrom"].split(":")[7:] + [""])[0]
        value = secrets[name]["value"]
        env[pair["name"]] = json.loads(value)[member] if member else value
    return {**env, **(overrides or {})}


class SiteImage:
    """Laid out in a folder; www-data must be able to come in."""

    def __init__(self, bucket_url=None):
        self.folder = Path(tempfile.mkdtemp(prefix="leasehold-site-"))
        self.folder.chmod(0o755)
        self.root, self.run_folder, self.process = self.folder / "html", self.folder / "run", None
        subprocess.run([FOLDER / "lay-out", WORDPRESS, self.root], check=True, timeout=300)
        if os.geteuid() == 0:
            shutil.chown(self.root / "wp-content", "www-data", "www-data")
        self.port, self.log = free_port(), open(self.folder / "log", "wb")
        tools = self.folder / "bin"
        tools.mkdir()
        if bucket_url:  # Debian's knows no setting for another endpoint
            (tools / "aws").write_text('#!/bin/sh\nexec /usr/bin/aws --endpoint-url "%s" "$@"\n' % bucket_url)
            (tools / "aws").chmod(0o755)
        self.env = {"PATH": "%s:/usr/local/bin:/usr/bin:/bin:/usr/sbin" % tools, "LEASEHOLD_SITE_ROOT": str(self.root), "LEASEHOLD_SITE_RUN": str(self.run_folder),
                    "LEASEHOLD_SITE_LISTEN": "127.0.0.1:%d" % self.port, "LEASEHOLD_SITE_LOG": str(self.folder / "access"), "AWS_ACCESS_KEY_ID": "AKIAIOSFODNN7EXAMPLE",
                    "AWS_SECRET_ACCESS_KEY": "secret", "AWS_DEFAULT_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true", "HOME": str(self.folder)}

    def start(self, env):
        self.process = subprocess.Popen([FOLDER / "leasehold-site"], env={**self.env, **env}, stdout=self.log, stderr=self.log, start_new_session=True)
        until(lambda: self.process.poll() is not None or self.answers(), "the site answers", 120, 0.2)
        assert self.process.poll() is None, self.said()

    def answers(self):
        try:
            return self.get("/wp-admin/install.php").status > 0
        except (OSError, Broken):
            return False

    def said(self):
        return (self.folder / "log").read_text(errors="replace")

    def task(self, what, env):
        return subprocess.run([FOLDER / "leasehold-task", what], env={**self.env, **env}, capture_output=True, text=True, timeout=300, check=False)

    def request(self, method, path, host="sites.example.com", cookies="", **more):
        """As the load balancer passes it on."""
        headers = {"Host": host, "X-Forwarded-Proto": "https", "X-Forwarded-For": "198.51.100.7", **({"Cookie": cookies} if cookies else {})}
        client = Client(("127.0.0.1", self.port), headers)
        try:
            return client.request(method, path, **more)
        finally:
            client.close()

    def get(self, path, **more):
        return self.request("GET", path, **more)

    def close(self):
        if self.process and self.process.poll() is None:
            self.process.terminate()
            self.process.wait(120)
        if self.process:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)  # workers of an nginx that was killed go on
        self.log.close()
        shutil.rmtree(self.folder, ignore_errors=True)


class Pool:
    """The three endpoints of an identity pool that a site asks."""

    def __init__(self, person):
        pool = self
        self.person, self.asked = person, []

        class Handler(http.server.BaseHTTPRequestHandler):
            def answer(self, status, body):
                text = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text)

            def do_POST(self):
                form = dict(urllib.parse.parse_qsl(self.rfile.read(int(self.headers["Content-Length"])).decode()))
                pool.asked.append(form)
                is_good = self.path == "/oauth2/token" and form.get("code") == "good" and form.get("client_secret")
                self.answer(200 if is_good else 400, {"access_token": "token-of-" + form.get("code", "")})

            def do_GET(self):
                is_good = self.path == "/oauth2/userInfo" and self.headers["Authorization"] == "Bearer token-of-good"
                self.answer(200 if is_good else 401, pool.person)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = "http://127.0.0.1:%d/oauth2" % self.server.server_port
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()
