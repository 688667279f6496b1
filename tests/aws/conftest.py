# SPDX-License-Identifier: Apache-2.0
"""Fixtures: the strict front, fresh for every test, with the policies of deploy/aws in force; and moto behind a second one where this machine has it.

Which of the two ran is said at the end."""

import subprocess
from pathlib import Path

import pytest

from aws.front import names
from lib import moto
from lib.aws_front import Front, statements
from lib.aws_providers import Tool

tiers = {"front": False, "moto": None}


def pytest_terminal_summary(terminalreporter):
    if tiers["front"]:
        terminalreporter.section("AWS: the strict front with its state machines ran", "=")
    if tiers["moto"]:
        terminalreporter.section("AWS: moto %s ran behind the front" % tiers["moto"], "=")
    elif tiers["moto"] is False:
        terminalreporter.section("AWS: moto did NOT run: the first python3 on PATH has none", "!", red=True)


@pytest.fixture(scope="session")
def one_front():
    tiers["front"] = True
    front = Front()
    yield front
    front.close()


def lend(front, everywhere=False):
    """A fresh world. No request may have been malformed or outside the policies, unless the test said so by front.may_break. everywhere: an organisation with other
    ids than the policies have."""
    front.reset()
    for role, allowed in statements().items():
        allowed = [{**s, "Resource": "*"} for s in allowed] if everywhere else allowed
        front.do("sts", "policy", role=role, statements=allowed)
    front.may_break = False
    yield front
    broken = [] if front.may_break else front.broken()
    front.clear()
    assert not broken, broken


@pytest.fixture
def front(one_front):
    yield from lend(one_front)


@pytest.fixture(scope="module")
def own_front(one_front):
    """For all tests of a module together."""
    front = Front()
    yield from lend(front)
    front.close()


@pytest.fixture(scope="session")
def moto_front():
    """Organizations, SQS, SNS and the like are moto's; the roles are ours."""
    tiers["moto"] = moto.version() or False
    if not tiers["moto"]:
        pytest.skip("the first python3 on PATH has no moto")
    behind = moto.Moto()
    front = Front("--forward", behind.url, "--forwarded", "organizations", "sqs", "sns", "sesv2", "sso-admin", "identitystore", "events")
    yield front
    front.close()
    behind.close()


@pytest.fixture
def moto_world(moto_front):
    import urllib.request

    urllib.request.urlopen(urllib.request.Request(moto_front.ask("forward")["url"] + "/moto-api/reset", b""), timeout=30).close()
    yield from lend(moto_front, everywhere=True)


@pytest.fixture
def tool(request):
    """tool(front, ...) opens the providers in a process of their own; ended with the test, without a complaint."""
    made = []

    def make(front, env=None, **settings):
        made.append(Tool(front, env, **settings))
        return made[-1]

    yield make
    said = [one.close() for one in made]
    assert not any("runtime error" in text or "Sanitizer" in text for text in said), said
    assert [one.process.returncode for one in made if one.opened["opened"]] == [0] * sum(one.opened["opened"] for one in made)


@pytest.fixture(scope="session", autouse=True)
def begin_early(request, tmp_path_factory):
    """Begins what sixty_moves is about, if that is among the tests of this run."""
    if not any(item.name.startswith("test_c21_") for item in request.session.items):
        yield None
        return
    front, ids = Front(), ["2000000000%02d" % i for i in range(60)]
    front.do("organizations", "add_accounts", ids=ids)
    one = Tool(front, store=str(tmp_path_factory.mktemp("pace") / "pace.db"))
    yield front, {id: one.begin("move", account=id, node=i % 2, **{"from": names.OUS["Available"], "to": names.OUS["Active"]}) for i, id in enumerate(ids)}
    one.close()
    front.close()


@pytest.fixture
def sixty_moves(begin_early):
    return begin_early


@pytest.fixture(scope="session")
def jumpclock(tmp_path_factory):
    """Loaded before libc, it moves the date: see crash/jumpclock.c."""
    made, source = tmp_path_factory.mktemp("jumpclock") / "jumpclock.so", Path(__file__).parents[1] / "crash/jumpclock.c"
    subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-Wall", "-Werror", "-o", str(made), str(source)], check=True)
    return made
