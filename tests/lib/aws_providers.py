# SPDX-License-Identifier: Apache-2.0
"""The AWS providers in a process of their own (tests/unit/aws_tool.c), against the front."""

import itertools
import json
import queue
import re
import subprocess
import tempfile
import threading
from pathlib import Path

from aws.front import names
from lib.server import ROOT, binary, clean_env

RCS = re.findall(r"^\tX\((\w+),", (ROOT / "src/base/err.h").read_text(), re.M)


class Tool:
    """Answers are dictionaries with rc ("OK", "CONFLICT" ...), code and error beside what was asked for."""

    def __init__(self, front, env=None, **settings):
        self.wanted = {"sandbox_ou": names.SANDBOX_OU, "intermediate": names.INTERMEDIATE_ROLE, "management": names.ORG_ROLE, "idc": names.IDC_ROLE,
                       "sandbox_role": names.SANDBOX_ROLE, "region": names.REGION, "wait_ms": 1, **settings}
        self.errors = tempfile.TemporaryFile()
        base = {**front.credentials(), "AWS_ENDPOINT_URL": front.url, "AWS_EC2_METADATA_DISABLED": "true"}
        self.process = subprocess.Popen([str(Path(binary()).parent / "tests/unit/aws_tool")], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=self.errors, text=True, env=clean_env({**base, **(env or {})}))
        self.ids, self.lock, self.waiting = itertools.count(1), threading.Lock(), {}
        self.lines = []
        self.send({k: v for k, v in self.wanted.items() if v is not None})
        self.opened = json.loads(self.process.stdout.readline())
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def send(self, message):
        with self.lock:
            self.process.stdin.write(json.dumps(message) + "\n")
            self.process.stdin.flush()

    def read(self):
        for line in self.process.stdout:
            got = json.loads(line)
            if "rc_number" in got:
                got["rc"] = RCS[got["rc_number"]]
                self.waiting.pop(got["id"]).put(got)
            else:
                self.lines.append(got)

    def begin(self, do, **members):
        """Without waiting for the answer: a queue it will be in."""
        answer, id = queue.Queue(), next(self.ids)
        self.waiting[id] = answer
        self.send({"do": do, "id": id, **members})
        return answer

    def __call__(self, do, **members):
        return self.begin(do, **members).get(timeout=120)

    def call(self, service, op, body=None, **members):
        """Any operation, as this hop of the chain."""
        return self("call", service=service, op=op, body=body if isinstance(body, str) else json.dumps(body or {}), **members)

    def close(self):
        if self.process.poll() is None:
            self.process.stdin.close()
            self.process.wait(60)
        self.reader.join(10)
        if self.errors.closed:
            return ""
        self.process.stdout.close()
        self.errors.seek(0)
        said = self.errors.read().decode()
        self.errors.close()
        return said
