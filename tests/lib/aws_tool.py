# SPDX-License-Identifier: Apache-2.0
"""The AWS providers in a process of their own (tests/unit/aws_tool.c)."""

import itertools
import json
import os
import queue
import subprocess
import threading
from pathlib import Path

from lib.server import binary

ANSWER_SEC = 180


class Tool:
    """Calls by keywords: tool.ask("move", account=..., to=...) is the answer, a dictionary with "rc", "code", "error"."""

    program = "aws_tool"

    def __init__(self, endpoint, env=None, **settings):
        """endpoint: where all of AWS is; None: nothing is set. settings: the first line that the tool reads."""
        program = Path(binary()).parent / "tests/unit" / self.program
        environment = {k: v for k, v in os.environ.items() if not k.startswith("AWS_")}
        environment.update({"AWS_ACCESS_KEY_ID": "AKIAOPERATOR00000000", "AWS_SECRET_ACCESS_KEY": "operator-secret-0123456789",
                            "AWS_EC2_METADATA_DISABLED": "true"})
        if endpoint:
            environment["AWS_ENDPOINT_URL"] = endpoint
        environment.update(env or {})
        self.process = subprocess.Popen([str(program)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1,
                                        env=environment)
        self.ids, self.waiting, self.log = itertools.count(1), {}, []
        self._write(settings)
        hello = {}
        while "opened" not in hello:
            hello = json.loads(self.process.stdout.readline())
        if not hello["opened"]:
            self.process.wait()
            self._close_pipes()
            raise ValueError(hello["error"])
        threading.Thread(target=self._read, daemon=True).start()

    def _write(self, value):
        self.process.stdin.write(json.dumps(value) + "\n")

    def _read(self):
        for line in self.process.stdout:
            value = json.loads(line)
            if "id" in value and "rc" in value:
                self.waiting[value["id"]].put(value)
            else:
                self.log.append(value)

    def begin(self, what, **arguments):
        number = next(self.ids)
        self.waiting[number] = queue.Queue()
        self._write(dict(arguments, do=what, id=number))
        return number

    def end(self, number):
        return self.waiting[number].get(timeout=ANSWER_SEC)

    def ask(self, what, **arguments):
        return self.end(self.begin(what, **arguments))

    def calls(self):
        """The lines of the log that tell of calls."""
        return [line for line in list(self.log) if line.get("logger") == "aws"]

    def _close_pipes(self):
        self.process.stdin.close()
        self.process.stdout.close()

    def close(self):
        self.process.stdin.close()
        self.process.wait(ANSWER_SEC)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
