# SPDX-License-Identifier: Apache-2.0
"""A Lambda runtime API on a loopback port, and the program under test as the function behind it.

    runtime = Runtime()
    function = Function(runtime, data, env).start()
    answer = runtime.invoke({"leasehold": "tick"})         # waits; answer.body, or answer.error

Between two invocations the function waits for `next`, as it would be frozen: freeze() stops the process itself, and closes what it has open to others
only if they do."""

import json
import queue
import re
import signal
import subprocess
import threading
import time
import uuid
from http.server import BaseHTTPRequestHandler

from lib.fake_csp import QuietServer
from lib.server import binary, clean_env
from lib.wait import until


class Answer:
    def __init__(self, body=None, error=None, error_type=None):
        self.body, self.error, self.error_type = body, error, error_type
        self.at = time.monotonic()


class Runtime:
    def __init__(self):
        self.asked = queue.Queue()  # (id, payload, seconds)
        self.answers, self.changed = {}, threading.Condition()
        self.init_error = None
        self.nexts = 0  # how often it was asked for one
        self.is_over = False
        handler = type("Handler", (Handler,), {"runtime": self})
        self.server = QuietServer(("127.0.0.1", 0), handler)
        self.address = "127.0.0.1:%d" % self.server.server_address[1]
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def ask(self, payload, seconds=30):
        """Begin an invocation with so much time; its id."""
        id = str(uuid.uuid4())
        self.asked.put((id, payload if isinstance(payload, str) else json.dumps(payload), seconds))
        return id

    def answer(self, id, timeout=120):
        with self.changed:
            assert self.changed.wait_for(lambda: id in self.answers, timeout), "no answer within %d s" % timeout
            return self.answers[id]

    def invoke(self, payload, seconds=30, timeout=120):
        return self.answer(self.ask(payload, seconds), timeout)

    def good(self, payload, seconds=30):
        """An invocation that must succeed; its answer."""
        got = self.invoke(payload, seconds)
        assert got.error is None, got.error
        return got.body

    def close(self):
        self.is_over = True
        self.server.shutdown()
        self.server.server_close()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    runtime = None

    def log_message(self, *args):
        pass

    def reply(self, status, body=b"", **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        if self.path != "/2018-06-01/runtime/invocation/next":
            return self.reply(404)
        self.runtime.nexts += 1
        while not self.runtime.is_over:
            try:
                id, payload, seconds = self.runtime.asked.get(timeout=0.05)
                break
            except queue.Empty:
                continue
        else:
            return self.reply(503)
        deadline = int((time.time() + seconds) * 1000)
        return self.reply(200, payload.encode(), Content_Type="application/json", Lambda_Runtime_Aws_Request_Id=id,
                          Lambda_Runtime_Deadline_Ms=str(deadline), Lambda_Runtime_Trace_Id="Root=1-test",
                          Lambda_Runtime_Invoked_Function_Arn="arn:aws:lambda:us-east-1:100000000002:function:guard")

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        found = re.fullmatch(r"/2018-06-01/runtime/(?:invocation/([^/]+)/(response|error)|init/error)", self.path)
        if not found:
            return self.reply(404)
        value = json.loads(body)
        with self.runtime.changed:
            if not found.group(1):
                self.runtime.init_error = {**value, "header": self.headers.get("Lambda-Runtime-Function-Error-Type")}
            elif found.group(2) == "response":
                self.runtime.answers[found.group(1)] = Answer(value)
            else:
                assert set(value) == {"errorMessage", "errorType", "stackTrace"}, value
                self.runtime.answers[found.group(1)] = Answer(error=value["errorMessage"], error_type=value["errorType"])
            self.runtime.changed.notify_all()
        return self.reply(202, b'{"status":"OK"}')


class Function:
    """The program as a function. command: how it is run, without its folder."""

    def __init__(self, runtime, data, env, command=None):
        self.runtime, self.data, self.env = runtime, data, {**env, "AWS_LAMBDA_RUNTIME_API": runtime.address}
        self.command = command or [binary(), "lambda", "--data", str(data)]
        self.process, self.lines, self.errors = None, [], []

    def start(self):
        self.before = self.runtime.nexts
        self.process = subprocess.Popen(self.command, env=clean_env(self.env), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        text=True)
        self.readers = [threading.Thread(target=lambda s, to: to.extend(iter(s.readline, "")), args=a, daemon=True)
                        for a in ((self.process.stdout, self.lines), (self.process.stderr, self.errors))]
        for reader in self.readers:
            reader.start()
        return self

    def wait_ready(self, timeout=60):
        until(lambda: self.runtime.nexts > self.before or self.process.poll() is not None, "it asks for work", timeout)
        assert self.process.poll() is None, "".join(self.errors)
        return self

    def freeze(self):
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self):
        self.process.send_signal(signal.SIGCONT)

    def end(self, timeout=60):
        """It ends by itself; its exit status."""
        status = self.process.wait(timeout)
        self.reap()
        return status

    def kill(self):
        if self.process is None:
            return
        self.process.kill()
        self.process.wait()
        self.reap()

    def reap(self):
        for reader in self.readers:
            reader.join(10)
        self.process.stdout.close()
        self.process.stderr.close()
        self.process = None

    def complaints(self):
        """What the sanitizers said. After its end."""
        return [line for line in self.errors if "runtime error:" in line or "Sanitizer" in line or "Assertion" in line]

    def log(self, message):
        return [line for line in (json.loads(text) for text in list(self.lines) if text.startswith("{")) if line.get("message") == message]
