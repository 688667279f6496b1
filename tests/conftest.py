# SPDX-License-Identifier: Apache-2.0
"""Fixtures: servers and vendors that end with the test or the module that asked for them."""

import itertools
import os
import subprocess
from pathlib import Path

import pytest

from lib.fake_csp import FakeCsp
from lib.server import Server

SHIM = Path(__file__).with_name("crash") / "failsync.c"
names = itertools.count(1)
os.umask(0o077)  # settings, keys and people's files must be private


class Maker:
    """Makes servers and fake vendors, and ends them all."""

    def __init__(self, folder):
        self.folder = folder
        self.servers, self.vendors = [], []

    def server(self, count=None, start=True, wait=True, csp=None, data=None, args=(), bare=False, **env):
        """A started server on fresh data. count: size of the simulated stock, waited for. csp: a FakeCsp instead."""
        if csp:
            env = {**csp.env(), **env}
            count = len(csp.accounts) if wait else None
        elif count is not None:
            env.setdefault("LEASEHOLD_SIM_SANDBOXES", str(count))
        data = data or self.folder / ("data-%d" % next(names))
        data.mkdir(exist_ok=True)
        server = Server(data, env, args, bare)
        self.servers.append(server)
        if start:
            server.start()
            if count and wait:
                server.wait_available(count).settle()
        return server

    def csp(self, count=0, prefix=None):
        vendor = FakeCsp(count, prefix)
        self.vendors.append(vendor)
        return vendor

    def end(self):
        for vendor in self.vendors:
            if vendor.gate:
                vendor.gate.set()
        complaints = []
        for server in self.servers:
            complaints += server.complaints()
            server.end()
        for vendor in self.vendors:
            vendor.close()
        assert not complaints, complaints


@pytest.fixture
def make(tmp_path):
    maker = Maker(tmp_path)
    yield maker
    maker.end()


@pytest.fixture(scope="module")
def make_for_module(tmp_path_factory):
    maker = Maker(tmp_path_factory.mktemp("module"))
    yield maker
    maker.end()


@pytest.fixture
def owner(request):
    """A track id that no other test uses."""
    return "track-%d" % next(names)


@pytest.fixture
def new_owner():
    """As many such ids as wanted."""
    return lambda: "track-%d" % next(names)


# A disk with troubles to order: see crash/failsync.c.


@pytest.fixture(scope="session")
def shim(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shim")
    subprocess.run(
        ["cc", "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", str(folder / "failsync.so"), str(SHIM)], check=True
    )
    return folder / "failsync.so"


@pytest.fixture
def flags(tmp_path):
    folder = tmp_path / "flags"
    folder.mkdir()
    return folder


@pytest.fixture
def shimmed(shim, flags):
    """The environment of a server whose flushes obey the flags."""
    checks = ":".join(filter(None, [os.environ.get("ASAN_OPTIONS"), "verify_asan_link_order=0"]))
    return {"LD_PRELOAD": str(shim), "FAILSYNC_DIR": str(flags), "ASAN_OPTIONS": checks}
