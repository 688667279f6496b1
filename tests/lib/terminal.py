# SPDX-License-Identifier: Apache-2.0
"""The program at a pseudo-terminal, as a person has it."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time

from lib.server import binary, clean_env
from lib.wait import until

ESCAPE = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal:
    """A program on a pseudo-terminal; everything it writes is kept."""

    def __init__(self, *args, env=None, rows=40, columns=80, cwd=None):
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.process = subprocess.Popen([binary(), *args], stdin=slave, stdout=slave, stderr=slave, cwd=cwd,
                                        env=clean_env({"TERM": "xterm", "TZ": "UTC", **(env or {})}), start_new_session=True,
                                        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))  # a shell's background ignores it
        os.close(slave)
        self.raw = b""

    def read(self, wait=0.05):
        """True while there may be more."""
        if not select.select([self.master], [], [], wait)[0]:
            return True
        try:
            got = os.read(self.master, 65536)
        except OSError:  # the other side is closed
            got = b""
        self.raw += got
        return bool(got)

    @property
    def text(self):
        return self.raw.decode("utf-8", "replace")

    def until(self, condition, what, timeout=60.0):
        return until(lambda: self.read() is not None and condition(self.text), what, timeout, pause=0)

    def end(self, timeout=60.0):
        """Everything up to its end; the exit code."""
        deadline = time.monotonic() + timeout
        while self.read() and time.monotonic() < deadline:
            pass
        code = self.process.wait(max(0.1, deadline - time.monotonic()))
        os.close(self.master)
        return code

    def interrupt(self):
        self.process.send_signal(signal.SIGINT)
        return self.end()

    @property
    def plain(self):
        """Without colours, and the lines as a file would have them."""
        return ESCAPE.sub("", self.text).replace("\r\n", "\n")
