# SPDX-License-Identifier: Apache-2.0
"""promtool and prometheus of Debian's package, unpacked beside the build and not installed: nothing starts a server by itself."""

import fcntl
import json
import pathlib
import socket
import subprocess
import urllib.parse
import urllib.request

from lib.wait import until

ROOT = pathlib.Path(__file__).resolve().parents[2]


def download(folder):
    return subprocess.run(["apt-get", "download", "-q", "prometheus"], cwd=folder, capture_output=True, text=True)


def promtool():
    folder = ROOT / "build" / "tools"
    folder.mkdir(parents=True, exist_ok=True)
    found = folder / "usr" / "bin" / "promtool"
    with open(folder / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not found.exists():
            done = download(folder)
            if done.returncode:  # this machine may never have read what there is
                subprocess.run(["apt-get", "update", "-q"], capture_output=True)
                done = download(folder)
            assert done.returncode == 0, "apt-get download prometheus: " + done.stderr
            subprocess.run(["dpkg-deb", "-x", next(folder.glob("prometheus_*.deb")), folder], check=True)
    return found


class Prometheus:
    """A real server on a loopback port that scrapes one of ours every second, with our rules."""

    def __init__(self, folder, target, rules):
        config = folder / "prometheus.yml"
        config.write_text(json.dumps({  # JSON is YAML
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"}, "rule_files": [str(rules)],
            "scrape_configs": [{"job_name": "leasehold", "static_configs": [{"targets": [target]}]}]}))
        tool = promtool()
        done = subprocess.run([tool, "check", "config", config], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        # A port of its own choice it does not tell: take one that is free, and another when somebody was faster.
        for _ in range(5):
            with socket.socket() as probe:
                probe.bind(("127.0.0.1", 0))
                self.address = "127.0.0.1:%d" % probe.getsockname()[1]
            self.log = open(folder / "prometheus.log", "w")
            self.process = subprocess.Popen([tool.with_name("prometheus"), "--config.file=%s" % config, "--storage.tsdb.path=%s" % (folder / "tsdb"),
                                             "--web.listen-address=" + self.address], stdout=self.log, stderr=self.log, stdin=subprocess.DEVNULL)
            until(lambda: self.process.poll() is not None or self.is_ready(), "Prometheus is ready or has ended", 120, 0.1)
            if self.process.poll() is None:
                return
        raise AssertionError((folder / "prometheus.log").read_text()[-2000:])

    def is_ready(self):
        try:
            with urllib.request.urlopen("http://%s/-/ready" % self.address, timeout=5) as got:
                return got.status == 200
        except OSError:
            return False

    def ask(self, path, **query):
        with urllib.request.urlopen("http://%s/api/v1/%s?%s" % (self.address, path, urllib.parse.urlencode(query)), timeout=60) as got:
            value = json.load(got)
        assert value["status"] == "success", value
        return value["data"]

    def close(self):
        self.process.terminate()
        self.process.wait(60)
        self.log.close()
