# SPDX-License-Identifier: Apache-2.0
"""Fixtures: servers and vendors that end with the test or the module that asked for them."""

import itertools

import pytest

from lib.fake_csp import FakeCsp
from lib.server import Server

names = itertools.count(1)


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
            server.kill()
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
