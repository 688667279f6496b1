# SPDX-License-Identifier: Apache-2.0
"""The front as a program: `cd tests && /usr/bin/python3 -m aws.front [--port N] [--forward URL [--forwarded SERVICE ...]]`.

It prints its address and serves until its standard input ends. Requests that are signed for AWS go to the state machines; the tests themselves speak to

    GET  /_front/log?since=N | state | faults | SERVICE           what happened, what is so
    POST /_front/machine {"service", "do", "with": {...}}         change the world (ctl_ methods of the machines)
    POST /_front/fault {"kind", "where", "skip", "count", ...}    see faults.py
    POST /_front/release | clear | reset | clock {"add": s} | entry_faults {"codes": [...]}
    GET  /_front/credentials                                      the task's credentials as a container gets them
"""

import argparse
import json
import select
import socket
import socketserver
import sys
import threading
import time
import traceback
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qs, urlsplit

from aws.front.names import TASK_KEY, TASK_SECRET, TASK_TOKEN
from aws.front.world import Cut, Request, World


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request, client_address):
        if not isinstance(sys.exc_info()[1], (ConnectionError, socket.timeout)):
            traceback.print_exc()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1
    world = None

    def log_message(self, *_args):
        pass

    def is_gone(self):
        readable, _, _ = select.select([self.connection], [], [], 0)
        if not readable:
            return False
        try:
            return self.connection.recv(1, socket.MSG_PEEK) == b""
        except OSError:
            return True

    def body(self):
        if self.headers.get("Transfer-Encoding", "").lower() == "chunked":
            data = b""
            while True:
                size = int(self.rfile.readline().split(b";")[0], 16)
                data += self.rfile.read(size)
                self.rfile.readline()
                if size == 0:
                    return data
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def send(self, status, headers, body):
        self.send_response_only(status)
        self.send_header("Date", time.strftime("%a, %d %b %Y %H:%M:%S GMT", time.gmtime(self.world.now())))
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
        self.wfile.flush()

    def serve(self):
        body = self.body()
        if self.path.startswith("/_front/"):
            return self.control(body)
        request = Request(self.command, self.path, self.headers, body, "http://" + self.headers.get("Host", ""))
        request.is_gone = self.is_gone
        try:
            return self.send(*self.world.handle(request))
        except Cut:
            self.close_connection = True
            try:
                self.connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = do_HEAD = serve

    def control(self, body):
        parts = urlsplit(self.path)
        what = parts.path[len("/_front/"):]
        try:
            if what == "credentials":
                got = {"AccessKeyId": TASK_KEY, "SecretAccessKey": TASK_SECRET, "Token": TASK_TOKEN,
                       "Expiration": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(self.world.now() + 6 * 3600))}
            elif self.command == "GET":
                got = self.world.show(what, int(parse_qs(parts.query).get("since", ["0"])[0]))
            else:
                got = {"result": self.world.control(what, json.loads(body or b"{}"))}
            return self.send(200, {"Content-Type": "application/json"}, json.dumps(got).encode())
        except Exception:  # pylint: disable=broad-except
            return self.send(400, {"Content-Type": "text/plain"}, traceback.format_exc().encode())


def main():
    options = argparse.ArgumentParser()
    options.add_argument("--port", type=int, default=0)
    options.add_argument("--forward")
    options.add_argument("--forwarded", nargs="*", default=[])
    asked = options.parse_args()
    Handler.world = World(asked.forward, asked.forwarded)
    server = Server(("127.0.0.1", asked.port), Handler)
    Handler.world.url = "http://127.0.0.1:%d" % server.server_address[1]
    print(Handler.world.url, flush=True)
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    sys.stdin.read()


if __name__ == "__main__":
    main()
