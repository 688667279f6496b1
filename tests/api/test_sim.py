# SPDX-License-Identifier: Apache-2.0
"""The simulated cloud's own routes: there in development only, strict, and what they do is seen."""

import pytest

from lib.server import ADMIN_TOKEN, TRACK_TOKEN


@pytest.fixture
def server(make):
    return make.server(count=3, args=["--dev"])


class Sim:
    def __init__(self, server, token=ADMIN_TOKEN):
        self.client = server.client({"Authorization": "Bearer " + token})

    def call(self, method, path, body=None):
        return self.client.request(method, "/v1/sim" + path, body=body)

    def world(self):
        got = self.call("GET", "")
        assert got.status == 200, got.body
        return got.json

    def ou(self, name):
        return next(o for o in self.world()["ous"] if o["name"] == name)


def test_outside_development_there_is_nothing(make):
    sim = Sim(make.server(count=3))
    for method, path, body in [
        ("GET", "", None),
        ("PUT", "/faults", {"faults": []}),
        ("POST", "/accounts", {"count": 1}),
        ("POST", "/accounts/111122223333/move", {"from": "Entry", "to": "Exit"}),
        ("PUT", "/accounts/111122223333/cost-rate", {"usd_per_hour": 1}),
    ]:
        assert sim.call(method, path, body).status == 404, path


def test_it_needs_an_admin(server):
    assert Sim(server, TRACK_TOKEN).call("GET", "").status == 403


def test_the_world_at_a_glance(server):
    world = Sim(server).world()
    assert [o["name"] for o in world["ous"]] == ["Available", "Active", "Frozen", "CleanUp", "Quarantine", "Entry", "Exit"]
    assert sum(o["count"] for o in world["ous"]) == 25
    assert world["faults"] == [] and world["events_waiting"] == 0
    assert world["calls"]["csp-list"] >= 1


def test_an_outsider_moves_an_account_and_an_event_waits(server):
    sim = Sim(server)
    account = sim.ou("Entry")["accounts"][0]["id"]
    assert sim.call("POST", "/accounts/%s/move" % account, {"from": "Entry", "to": "Exit"}).status == 200
    assert sim.ou("Exit")["accounts"][0]["id"] == account
    assert sim.world()["events_waiting"] == 1
    again = sim.call("POST", "/accounts/%s/move" % account, {"from": "Entry", "to": "Exit"})
    assert again.status == 409 and "DuplicateAccountException" in again.error["message"]
    assert sim.call("POST", "/accounts/000000000001/move", {"from": "Entry", "to": "Exit"}).status == 404
    assert sim.call("POST", "/accounts/77/move", {"from": "Entry", "to": "Exit"}).status == 400


def test_the_world_survives_a_restart(server):
    sim = Sim(server)
    account = sim.ou("Entry")["accounts"][0]["id"]
    assert sim.call("POST", "/accounts/%s/move" % account, {"from": "Entry", "to": "Quarantine"}).status == 200
    before = sim.world()["ous"]
    server.restart()
    assert Sim(server).world()["ous"] == before


def test_accounts_are_added_and_get_a_rate(server):
    sim = Sim(server)
    got = sim.call("POST", "/accounts", {"count": 100})
    assert got.status == 200 and sum(o["count"] for o in got.json["ous"]) == 125
    account = sim.ou("Entry")["accounts"][0]["id"]
    assert sim.call("PUT", "/accounts/%s/cost-rate" % account, {"usd_per_hour": 12.5}).status == 200
    assert sim.ou("Entry")["accounts"][0]["usd_per_hour"] == 12.5


def test_a_fault_disturbs_the_vendor_and_ends(server):
    sim, admin = Sim(server), server.admin()
    rule = {"fault": "outage", "call": "csp-list", "count": 1, "for_sec": 600}
    got = sim.call("PUT", "/faults", {"faults": [rule]})
    assert got.status == 200
    shown = got.json["faults"]
    assert len(shown) == 1 and shown[0]["per_mille"] == 1000 and shown[0]["count"] == 1 and shown[0]["until"].endswith("Z")
    refused = admin.post("/v1/admin/sync")
    assert refused.status == 503 and "simulated outage of csp-list" in refused.error["message"]
    assert sim.world()["faults"] == [] and sim.world()["injected"] == {"outage": 1}
    assert admin.post("/v1/admin/sync").status == 200


@pytest.mark.parametrize(
    "path, body, said",
    [
        ("/faults", None, "the body must be like"),
        ("/faults", [], "the body must be like"),
        ("/faults", {}, "faults must be a list"),
        ("/faults", {"faults": [1]}, "faults[0].fault must be in an object"),
        ("/faults", {"faults": [{"fault": "rain"}]}, "faults[0].fault must be one of"),
        ("/faults", {"faults": [{"fault": "latency"}]}, "faults[0].latency_ms must be a whole number from 1 to 60000"),
        ("/faults", {"faults": [{"fault": "outage", "latency_ms": 5}]}, "belongs to the fault latency only"),
        ("/faults", {"faults": [{"fault": "clean-lies", "call": "move"}]}, "does not happen to a call"),
        ("/faults", {"faults": [{"fault": "outage"}] * 33}, "at most 32"),
        ("/faults", {"faults": [], "more": 1}, "more is not known here"),
        ("/accounts/111122223333/cost-rate", {"usd_per_hour": -1}, "must be a number from 0 to 1000"),
        ("/accounts/111122223333/cost-rate", {"usd_per_hour": "1"}, "must be a number from 0 to 1000"),
    ],
)
def test_a_malformed_body_is_refused_with_what_is_wrong(server, path, body, said):
    got = Sim(server).call("PUT", path, body)
    assert got.status == 400 and said in got.error["message"], got.body
    assert Sim(server).world()["faults"] == []


def test_every_problem_is_named(server):
    rule = {"fault": "throttle", "call": "tea", "per_mille": 1001, "cuont": 3}
    said = Sim(server).call("PUT", "/faults", {"faults": [rule]}).error["message"]
    for part in ["faults[0].call must", "faults[0].per_mille must", "faults[0].cuont is not known"]:
        assert part in said, said


@pytest.mark.parametrize("body", [{"count": 0}, {"count": 1001}, {"count": "3"}, {"count": 1.5}, {"n": 3}, None])
def test_a_malformed_count_adds_nothing(server, body):
    assert Sim(server).call("POST", "/accounts", body).status == 400
    assert sum(o["count"] for o in Sim(server).world()["ous"]) == 25
