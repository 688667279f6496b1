# SPDX-License-Identifier: Apache-2.0
"""The operators' API: events, queues, dead letters, timers, sagas, alarms, nodes, jobs, webhooks; and its commands."""

import json
import re
import sqlite3
import uuid

import pytest

from lib.http import Client
from lib.ops import Ops, insert, now_ms, segment
from lib.rows import put_events
from lib.server import TRACK_TOKEN, run
from lib.wait import until

MINUTE = 60000
# Paused: no test may call somebody outside.
HOOK = {"url": "https://hooks.example.org/x", "filter": "Alarm*", "description": "for the pager", "paused": True}


def letter(server, queue, n, subject="thing/dead"):
    """A dead letter in a stopped server's store; its id."""
    letter_id, event_id = str(uuid.UUID(int=n + 1)), str(uuid.UUID(int=n + 1000))
    envelope = {
        "version": "0",
        "id": event_id,
        "detail-type": "Died",
        "source": "test",
        "account": "",
        "time": "2026-11-15T18:03:43.000Z",
        "region": "",
        "resources": [],
        "detail": {"n": n},
        "subject": subject,
        "schemaVersion": 1,
    }
    insert(
        server,
        "dead",
        id=letter_id,
        queue=queue,
        subject=subject,
        event_id=event_id,
        event=json.dumps(envelope),
        tries=3,
        error="no answer",
        since_ms=now_ms() - 10 * MINUTE,
        died_ms=now_ms() - 5 * MINUTE + n,
    )
    return letter_id


def timer(server, name, in_ms=60 * MINUTE):
    insert(
        server,
        "timer",
        name=name,
        state=0,
        due_ms=now_ms() + in_ms,
        type="Reminder",
        subject="thing/timed",
        detail='{"why": "test"}',
        armed_ms=now_ms(),
    )


def saga(server, saga_id, state=2, **more):
    values = {
        "id": saga_id,
        "kind": "of-another-program",
        "subject": "thing/saga",
        "state": state,
        "step": 1,
        "marks": "di.",
        "is_back": 0,
        "input": '{"a": 1}',
        "data": "{}",
        "started_ms": now_ms() - 10 * MINUTE,
        "step_since_ms": now_ms() - 5 * MINUTE,
        "due_ms": now_ms(),
        "tries": 4,
        "fence": 1,
        "last_error": "far side says no",
        "reason": "gave up",
        "leftovers": '["step 1"]',
        "actor": "admin",
    }
    insert(server, "saga", **{**values, **more})


@pytest.fixture(scope="module")
def stopped(make_for_module):
    """A server that has run once, so that its store is there, and the name of a queue whose handler does no harm."""
    server = make_for_module.server(0, LEASEHOLD_ALARM_INTERVAL_SEC="3600")  # the alarm below stays as it is
    assert "log" in [q["name"] for q in Ops(server).read("queues")["queues"]]
    assert server.stop() == 0
    return server


@pytest.fixture(scope="module")
def server(stopped):
    """With dead letters, timers, sagas, an alarm and a node that died. Tests take what they change from their own."""
    for n in range(5):
        letter(stopped, "log", n)
    for name in ("lease/42#warning", "lease/42#end", "lease/7#end", "odd %25/&?=#"):
        timer(stopped, name)
    saga(stopped, "grant/1")
    saga(stopped, "grant/2", state=3, step=3, marks="dsd", ended_ms=now_ms(), last_error=None, leftovers=None)
    saga(stopped, "grant/3", state=4, subject="thing/other", marks="x..", step=0, ended_ms=now_ms())
    insert(
        stopped,
        "node",
        id="ghost",
        started_ms=now_ms() - 60 * MINUTE,
        beat_ms=now_ms() - 10 * MINUTE,
        slowest_ms=5,
        failed_commits=0,
    )
    insert(
        stopped,
        "alarm",
        name="node-silent#ghost",
        rule="node-silent",
        state=1,
        severity=0,
        evidence="node ghost is silent",
        value=1,
        since_ms=now_ms() - 9 * MINUTE,
        raised_ms=now_ms() - 9 * MINUTE,
        checked_ms=now_ms(),
    )
    return stopped.start()


@pytest.fixture
def ops(server):
    client = Ops(server)
    yield client
    client.close()


def cli(server, *args):
    return run(*args, "--address", server.url, env={"LEASEHOLD_TOKEN": server.env["BROKER_ADMIN_TOKEN"], "TZ": "UTC"})


def table(server, *args):
    """The rows of a command's table; each a list of cells. Nothing is cut: it goes into no terminal."""
    got = cli(server, *args)
    assert got.returncode == 0, got.stderr
    assert "…" not in got.stdout, got.stdout
    return [re.split(r"  +", line.rstrip()) for line in got.stdout.splitlines()[1:]]


# Events.


def test_events_are_listed_by_type_subject_actor_and_time(ops):
    subject = ops.happen("Alpha", "Beta", "Alpine")
    at = "events?subject=" + subject
    newest_first = [e["detail-type"] for e in ops.read(at)["events"]]
    assert newest_first == ["cloudtrail:" + n for n in ("Alpine", "Beta", "Alpha")]
    assert [e["detail-type"] for e in ops.read(at + "&order=oldest")["events"]][0] == "cloudtrail:Alpha"
    assert len(ops.read(at + "&type=cloudtrail:Al*")["events"]) == 2
    assert len(ops.read(at + "&type=cloudtrail:Al")["events"]) == 0
    assert len(ops.read(at + "&actor=inbox/cloudtrail")["events"]) == 3
    assert len(ops.read(at + "&actor=admin")["events"]) == 0
    assert len(ops.read(at + "&since=2026-01-01T00:00:00Z")["events"]) == 3
    assert len(ops.read(at + "&until=2026-01-01T00:00:00%2B02:00")["events"]) == 0
    assert len(ops.read(at + "&since=%d&until=%d" % (now_ms() / 1000 - 60, now_ms() / 1000 + 60))["events"]) == 3


def test_pages_without_jobs_are_full_of_what_else_happened(ops):
    ops.happen("First", "Second")
    for _ in range(3):
        assert ops.act("jobs/expiry/run").json["status"] == "completed"
    assert ops.read("events?limit=1")["events"][0]["detail-type"] == "JobFinished"
    page = ops.read("events?jobs=no&limit=5")
    assert [e["detail-type"] for e in page["events"]] == ["JobRequested"] * 3 + ["cloudtrail:Second", "cloudtrail:First"]
    assert not [t for t in (e["detail-type"] for e in ops.events("jobs=no")) if t == "JobFinished" or t.endswith("Due")]
    assert ops.get("/v1/ops/events?limit=2&cursor=" + page["cursor"]).status == 400, "a cursor belongs to its filter"
    reply = ops.get("/v1/ops/events?jobs=maybe")
    assert reply.status == 400 and "yes or no" in reply.error["message"]


def test_pages_of_events_show_each_once_and_a_cursor_belongs_to_its_filter(ops):
    subject = ops.happen(*["P%02d" % n for n in range(25)])
    listed = ops.events("limit=7&subject=" + subject)
    assert [e["detail-type"] for e in listed] == ["cloudtrail:P%02d" % n for n in reversed(range(25))]
    page = ops.read("events?limit=7&subject=" + subject)
    assert page["count"] == 7
    for other in ("subject=x", "subject=%s&order=oldest" % subject, "subject=%s&actor=x" % subject, ""):
        reply = ops.get("/v1/ops/events?limit=7&cursor=%s&%s" % (page["cursor"], other))
        assert (reply.status, reply.code) == (400, "VALIDATION_ERROR"), other


def test_one_event(ops):
    event = ops.events("subject=" + ops.happen("Single", detail={"x": [1]}))[0]
    assert ops.read("events/" + event["id"]) == event
    assert set(event) == {"version", "id", "detail-type", "source", "account", "time", "region", "resources"} | {
        "detail",
        "subject",
        "actor",
        "requestId",
        "schemaVersion",
    }
    for missing in ("no-such-event", "x" * 300):
        reply = ops.get("/v1/ops/events/" + missing)
        assert (reply.status, reply.code) == (404, "NOT_FOUND")


@pytest.mark.parametrize(
    "query",
    ["type=a*b", "type=" + "x" * 65, "subject=" + "x" * 201, "actor=" + "x" * 161, "since=yesterday", "until=-1"]
    + ["since=200&until=100", "order=random", "limit=0", "limit=101", "cursor=x", "colour=red", "type="],
)
def test_a_filter_that_makes_no_sense_is_400(ops, query):
    reply = ops.get("/v1/ops/events?" + query)
    assert (reply.status, reply.code) == (400, "VALIDATION_ERROR")


# Queues and dead letters.


def test_queues_show_their_depth_and_rules(ops):
    queue = next(q for q in ops.read("queues")["queues"] if q["name"] == "log")
    assert set(queue) == {"name", "lanes", "oldest_age_sec", "failing", "dead", "tries", "visibility_sec"}
    assert queue["tries"] >= 1 and queue["visibility_sec"] >= 1
    assert ops.read("queues/log/lanes")["lanes"] == []
    reply = ops.get("/v1/ops/queues/nope/lanes")
    assert reply.status == 404 and reply.error["message"] == "there is no queue 'nope'"


def test_dead_letters_are_listed_and_shown_with_their_event(make):
    server = make.server(0)
    server.stop()
    ids = [letter(server, "log", n) for n in range(5)]
    ops = Ops(server.start())
    first = ops.read("dead-letters?queue=log&limit=2")
    rest = ops.read("dead-letters?queue=log&limit=100&cursor=" + first["cursor"])
    assert sorted(d["id"] for d in first["dead_letters"] + rest["dead_letters"]) == sorted(ids)
    assert rest["cursor"] is None and rest["count"] == 3
    assert {d["id"] for d in ops.read("dead-letters")["dead_letters"]} == set(ids)
    shown = ops.read("dead-letters/" + ids[3])
    assert (shown["queue"], shown["tries"], shown["error"], shown["target"]) == ("log", 3, "no answer", None)
    assert shown["event"]["detail"] == {"n": 3} and shown["event"]["id"] == shown["event_id"]
    assert ops.get("/v1/ops/dead-letters?queue=nope").status == 404
    assert next(q for q in ops.read("queues")["queues"] if q["name"] == "log")["dead"] == 5


def test_a_dead_letter_is_replayed_or_dropped_once_and_audited(make):
    server = make.server(0)
    server.stop()
    one, other = letter(server, "log", 1), letter(server, "log", 2)
    ops = Ops(server.start())
    reply = ops.act("dead-letters/%s/replay" % one)
    assert (reply.status, reply.json["status"], reply.json["id"]) == (200, "replayed", one)
    audit = ops.events("type=DeadLetterReplayed")[0]
    assert (audit["actor"], audit["requestId"]) == ("admin", reply.header("x-request-id"))
    assert ops.act("dead-letters/%s/replay" % one).status == 404
    dropped = ops.act("dead-letters/%s/drop" % other, {"reason": "the address is gone"})
    assert (dropped.status, dropped.json["status"]) == (200, "dropped")
    assert "the address is gone" in json.dumps(ops.events("type=DeadLetterDropped")[0]["detail"])
    assert ops.read("dead-letters")["count"] == 0
    until(lambda: ops.read("queues/log/lanes")["count"] == 0, "what was replayed is delivered")


@pytest.mark.parametrize(
    "body",
    [None, {}, {"reason": ""}, {"reason": "  "}, {"reason": 7}, {"reason": "x" * 401}, {"reason": "x", "y": 1}]
    + [b"nonsense"],
)
def test_dropping_needs_a_reason(ops, body):
    count = ops.read("dead-letters")["count"]
    letter_id = ops.read("dead-letters")["dead_letters"][0]["id"]
    reply = ops.act("dead-letters/%s/drop" % letter_id, body)
    assert (reply.status, reply.code) == (400, "VALIDATION_ERROR")
    assert "reason" in reply.error["message"] or body == b"nonsense"
    assert ops.read("dead-letters")["count"] == count


def test_all_letters_of_a_queue_are_replayed_a_hundred_at_a_time(make):
    server = make.server(0)
    server.stop()
    for n in range(130):
        letter(server, "log", n, "thing/%d" % n)
    ops = Ops(server.start())
    assert ops.act("dead-letters/replay?queue=log").json == {"replayed": 100, "left": 30}
    got = cli(server, "dlq", "replay", "--all", "--queue", "log")
    assert (got.returncode, got.stdout) == (0, "30 replayed, 0 left\n")
    assert ops.act("dead-letters/replay?queue=log").json == {"replayed": 0, "left": 0}
    assert len(ops.events("type=DeadLetterReplayed&limit=100")) == 130
    assert ops.act("dead-letters/replay").status == 400
    assert ops.act("dead-letters/replay?queue=nope").status == 404


# Timers.


def test_timers_are_listed_by_prefix(ops):
    assert {"lease/42#warning", "lease/42#end", "lease/7#end"} <= {t["name"] for t in ops.read("timers")["timers"]}
    page = ops.read("timers?prefix=lease/42")
    assert sorted(t["name"] for t in page["timers"]) == ["lease/42#end", "lease/42#warning"]
    first = ops.read("timers?prefix=lease/&limit=2")
    second = ops.read("timers?prefix=lease/&limit=2&cursor=" + first["cursor"])
    assert len({t["name"] for t in first["timers"] + second["timers"]}) == 3
    assert ops.get("/v1/ops/timers?limit=2&cursor=" + first["cursor"]).status == 400


@pytest.mark.parametrize("name", ["lease/42#warning", "odd %25/&?=#"])
def test_a_timer_with_any_name_is_found(ops, name):
    shown = ops.read("timers/" + segment(name))
    assert (shown["name"], shown["type"], shown["detail"]) == (name, "Reminder", {"why": "test"})
    assert shown["due_at"] > now_ms() / 1000


@pytest.mark.parametrize("path", ["timers/%zz", "timers/%", "timers/a%00b", "timers/a%0Ab/fire", "sagas/%g1"])
def test_a_name_with_a_broken_escape_is_400(ops, path):
    reply = ops.act(path) if path.endswith("/fire") else ops.get("/v1/ops/" + path)
    assert (reply.status, reply.code) == (400, "VALIDATION_ERROR")


def test_a_timer_is_fired_or_cancelled(make):
    server = make.server(0)
    server.stop()
    for name in ("a/fired#1", "a/cancelled#1"):
        timer(server, name)
    ops = Ops(server.start())
    fired = ops.act("timers/%s/fire" % segment("a/fired#1"))
    assert (fired.status, fired.json["status"]) == (200, "fired")
    happened = until(lambda: ops.events("type=Reminder"), "its event happens")
    assert (happened[0]["subject"], happened[0]["actor"]) == ("thing/timed", "timer/a/fired#1")
    cancelled = ops.request("DELETE", "/v1/ops/timers/" + segment("a/cancelled#1"))
    assert (cancelled.status, cancelled.json["status"]) == (200, "cancelled")
    assert ops.get("/v1/ops/timers/" + segment("a/cancelled#1")).status == 404
    assert ops.act("timers/%s/fire" % segment("a/cancelled#1")).status == 404
    for kind in ("TimerFiredByHand", "TimerCancelled"):
        assert ops.events("type=" + kind)[0]["actor"] == "admin"
    assert len(ops.events("type=Reminder")) == 1


# Sagas.


def test_sagas_are_listed_by_state_and_subject(ops):
    assert [s["id"] for s in ops.read("sagas?state=parked")["sagas"]] == ["grant/1"]
    assert {s["id"] for s in ops.read("sagas?subject=thing/saga")["sagas"]} == {"grant/1", "grant/2"}
    assert {s["id"] for s in ops.read("sagas")["sagas"]} == {"grant/1", "grant/2", "grant/3"}
    assert ops.read("sagas?state=running")["count"] == 0
    assert ops.get("/v1/ops/sagas?state=parked&subject=x").status == 400
    assert ops.get("/v1/ops/sagas?state=lost").status == 400


def test_a_saga_shows_how_far_it_is(ops):
    shown = ops.read("sagas/" + segment("grant/1"))
    assert (shown["state"], shown["step"], shown["step_count"], shown["tries"]) == ("parked", 2, 3, 4)
    assert [s["mark"] for s in shown["steps"]] == ["done", "doing", "not_begun"]
    assert shown["step_name"] == shown["steps"][1]["name"]
    assert (shown["last_error"], shown["reason"], shown["leftovers"]) == ("far side says no", "gave up", ["step 1"])
    assert (shown["input"], shown["data"]) == ({"a": 1}, {})
    done = ops.read("sagas/" + segment("grant/2"))
    assert (done["state"], done["step"], done["last_error"], done["leftovers"]) == ("done", 3, None, None)
    assert [s["mark"] for s in done["steps"]] == ["done", "skipped", "done"]
    assert ops.get("/v1/ops/sagas/grant").status == 404


def test_orders_to_a_saga_are_checked(ops):
    path = "sagas/%s/" % segment("grant/2")
    assert ops.act(path + "retry").status == 409, "it is done"
    for order in ("skip", "abort"):
        assert ops.act(path + order).status == 400, "a reason is needed"
        assert ops.act(path + order, {"reason": "by hand"}).status == 409
        assert ops.act("sagas/none/" + order, {"reason": "by hand"}).status == 404
    assert ops.act("sagas/none/retry").status == 404


def test_a_parked_saga_is_retried(make):
    server = make.server(0)
    server.stop()
    saga(server, "grant/9")
    ops = Ops(server.start())
    reply = ops.act("sagas/%s/retry" % segment("grant/9"))
    assert (reply.status, reply.json["state"]) == (200, "running"), reply
    audit = ops.events("type=SagaRetried")[0]
    assert (audit["actor"], audit["requestId"]) == ("admin", reply.header("x-request-id"))


# Alarms, nodes, jobs.


def test_alarms_say_since_when_and_where_to_read(ops):
    alarm = next(a for a in ops.read("alarms")["alarms"] if a["name"] == "node-silent#ghost")
    assert (alarm["state"], alarm["severity"], alarm["rule"]) == ("raised", "warning", "node-silent")
    assert alarm["runbook"] == "docs/runbook.md#node-silent"
    assert alarm["since_at"] < now_ms() / 1000 and "ghost" in alarm["evidence"]


def test_a_node_of_the_past_is_forgotten_where_there_can_be_only_one(ops):
    nodes = ops.read("nodes")["nodes"]
    assert [(n["silent"], n["failed_commits"]) for n in nodes] == [(False, 0)] and nodes[0]["id"] != "ghost"


def test_jobs_are_the_same_as_below_admin(ops, server):
    assert ops.read("jobs") == server.admin().get("/v1/admin/jobs").json
    assert ops.act("jobs/cleanup/pause").json["paused"] is True
    assert server.admin().job("cleanup")["paused"] is True
    assert ops.act("jobs/cleanup/resume").json["paused"] is False
    assert ops.act("jobs/expiry/run").json["status"] == "completed"
    assert ops.act("jobs/nope/run").code == "JOB_NOT_FOUND"


# Webhooks.


def test_a_webhook_tells_its_secret_once(ops):
    reply = ops.act("webhooks", HOOK)
    assert reply.status == 201, reply
    made = reply.json
    assert len(made.pop("secret")) >= 16
    assert (made["url"], made["filter"], made["description"], made["paused"]) == tuple(HOOK.values())
    assert made["created_by"] == "admin"
    at = "webhooks/" + made["id"]
    assert ops.read(at) == made and made in ops.read("webhooks")["webhooks"]
    changed = ops.request("PATCH", "/v1/ops/" + at, body={"filter": "*"})
    assert (changed.status, changed.json) == (200, {**made, "filter": "*"})
    removed = ops.request("DELETE", "/v1/ops/" + at)
    assert removed.status == 200 and "secret" not in removed.json
    for method, path in (("GET", at), ("PATCH", at), ("DELETE", at), ("POST", at + "/test")):
        body = {"filter": "*"} if method == "PATCH" else None
        assert ops.request(method, "/v1/ops/" + path, body=body).status == 404
    assert made["id"] not in [w["id"] for w in ops.read("webhooks")["webhooks"]]


def test_a_secret_may_be_brought_along(ops):
    reply = ops.act("webhooks", {**HOOK, "secret": "s" * 32})
    assert (reply.status, reply.json["secret"]) == (201, "s" * 32)
    assert ops.request("DELETE", "/v1/ops/webhooks/" + reply.json["id"]).status == 200
    assert all("s" * 32 not in json.dumps(e) for e in ops.events("type=Webhook*"))


@pytest.mark.parametrize(
    "body",
    [None, [], {}, {"filter": "*"}, {"url": 7}, {"url": "ftp://x"}, {"url": "nonsense"}, {**HOOK, "paused": "yes"}]
    + [{**HOOK, "colour": "red"}, {**HOOK, "secret": "short"}, {**HOOK, "filter": 5}, b"{"]
    + [{"url": "http://127.0.0.1/x"}],
)
def test_a_webhook_that_makes_no_sense_is_400(ops, body):
    reply = ops.act("webhooks", body)
    assert (reply.status, reply.code) == (400, "VALIDATION_ERROR"), reply


def test_a_test_event_is_for_one_webhook(make, ops):
    assert ops.act("webhooks/%s/test" % ops.act("webhooks", HOOK).json["id"]).status == 409, "it is paused"
    ops = Ops(make.server(0, args=["--dev"]))
    one, other = (ops.act("webhooks", {"url": "http://127.0.0.1:9/%d" % n}).json["id"] for n in (1, 2))

    def lanes():
        return ops.read("queues/webhook-out/lanes")["lanes"]

    until(lambda: {lane["target"] for lane in lanes()} == {one, other}, "both hear of the second")
    reply = ops.act("webhooks/%s/test" % one)
    assert (reply.status, reply.json) == (202, {"status": "sent", "id": one})
    assert one in ops.events("type=WebhookTest")[0]["subject"]
    tried = until(lambda: [lane for lane in lanes() if lane["last_error"]], "it was tried")
    assert tried[0]["state"] in ("waiting", "ready", "in_flight") and tried[0]["tries"] >= 1
    assert ops.request("PATCH", "/v1/ops/webhooks/" + other, body={"paused": True}).json["paused"] is True


# All of it.


def test_every_route_is_for_operators_and_knows_its_parameters(server, ops):
    paths = Client(server.address).get("/v1/openapi.json").json["paths"]
    routes = [(m.upper(), p) for p, calls in paths.items() for m in calls if p.startswith("/v1/ops/")]
    assert len(routes) >= 30
    track = Client(server.address, {"Authorization": "Bearer " + TRACK_TOKEN})
    for method, path in routes:
        path = re.sub(r"\{[a-z_]+\}", "none", path)
        reply = track.request(method, path)
        assert (reply.status, reply.code) == (403, "FORBIDDEN"), (method, path)
        reply = ops.request(method, path + "?colour=red")
        assert (reply.status, reply.code) == (400, "VALIDATION_ERROR"), (method, path)


def test_metrics_have_the_kernels_figures(server, ops):
    text = Client(server.address).get("/metrics").body.decode()
    figures = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    assert figures['leasehold_dead_letters{queue="log"}'] == str(ops.read("dead-letters")["count"])
    assert figures['leasehold_queue_lanes{queue="log"}'] == "0"
    assert figures['leasehold_queue_oldest_seconds{queue="log"}'] == "0"
    assert float(figures["leasehold_timers_armed"]) >= 4 and figures["leasehold_timer_lag_seconds"] == "0"
    assert figures['leasehold_sagas{state="parked"}'] == "1"
    assert float(figures['leasehold_alarms{severity="warning"}']) >= 1


# The commands.


def test_a_subject_without_its_kind_finds_nothing_and_is_told_so(server):
    got = cli(server, "event", "list", "--subject", "foo")
    assert got.returncode == 0 and "A subject has a kind, such as lease/foo" in got.stderr
    assert cli(server, "event", "list", "--subject", "lease/foo").stderr == ""


def test_tables_show_what_matters_and_cut_nothing(server, ops):
    ops.happen("Told", subject="thing/" + "long" * 40)
    assert [r[:2] for r in table(server, "queue", "list")][0][0] in [q["name"] for q in ops.read("queues")["queues"]]
    assert table(server, "event", "list", "--limit", "1", "--type", "cloudtrail:T*")[0][2] == "cloudtrail:Told"
    assert table(server, "event", "list", "--all", "--subject", "thing/" + "long" * 40)[0][3] == "thing/" + "long" * 40
    assert {r[1] for r in table(server, "dlq", "list", "--queue", "log")} == {"log"}
    assert [r[0] for r in table(server, "timer", "list", "--prefix", "lease/7")] == ["lease/7#end"]
    assert table(server, "timer", "list", "--prefix", "lease/7")[0][1] in ("in 59m", "in 60m", "in 1h")
    row = table(server, "saga", "list", "--state", "parked")[0]
    assert (row[0], row[3], row[5]) == ("grant/1", "parked", "5m")
    assert "2/3" in row[4]
    assert [r[:4] for r in table(server, "alarm", "list") if r[3].startswith("node-silent#")] == [
        ["warning", "raised", "9m", "node-silent#ghost"]
    ]


def test_commands_change_things_and_say_so(server, ops):
    made = cli(server, "webhook", "create", "--url", HOOK["url"], "--filter", "Alarm*", "--pause", "--json")
    assert made.returncode == 0 and made.stderr == ""
    hook = json.loads(made.stdout)
    assert [r[1] for r in table(server, "webhook", "list") if r[0] == hook["id"]] == ["paused"]
    assert cli(server, "webhook", "change", hook["id"], "--filter", "SagaParked").returncode == 0
    assert [r[3] for r in table(server, "webhook", "list") if r[0] == hook["id"]] == ["SagaParked"]
    assert cli(server, "webhook", "test", hook["id"]).returncode == 1, "it is paused"
    assert cli(server, "webhook", "remove", hook["id"]).returncode == 0
    gone = cli(server, "webhook", "remove", hook["id"])
    assert gone.returncode == 4 and hook["id"] in gone.stderr
    shown = cli(server, "saga", "show", "grant/1").stdout
    assert re.search(r"^state +parked$", shown, re.M) and re.search(r"^2 +step 2 +doing$", shown, re.M)
    assert json.loads(cli(server, "saga", "show", "grant/1", "--json").stdout) == ops.read("sagas/grant%2F1")
    fired = cli(server, "timer", "fire", "no/such#timer")
    assert fired.returncode == 4 and "no/such#timer" in fired.stderr


# A log of large events.

LARGE, FILLER = 1200, 60000


@pytest.fixture(scope="module")
def large(make_for_module):
    """A server whose log has many large events, and nothing of what is looked for."""
    server = make_for_module.server(0)
    server.stop()
    at = now_ms() - 3600000
    db = sqlite3.connect(server.data / "leasehold.db")
    detail = json.dumps({"filler": "x" * FILLER})
    with db:
        put_events(db, [dict(id="%08x-%04x-7000-8000-%012x" % ((at + n) >> 16, (at + n) & 0xFFFF, n), type="Large", time_ms=at + n,
                             subject="x", actor="somebody", schema=1, detail=detail) for n in range(LARGE)])
    db.close()
    return server.start()


def memory_kb(server, which):
    with open("/proc/%d/status" % server.pid, encoding="ascii") as lines:
        return next(int(line.split()[1]) for line in lines if line.startswith(which))


@pytest.mark.parametrize("query", ["actor=nobody", "type=Nothing*", "type=Nothing,Neither&order=oldest"])
def test_a_filter_that_matches_nothing_keeps_none_of_what_it_looked_at(large, query):
    with open("/proc/%d/clear_refs" % large.pid, "w", encoding="ascii") as refs:
        refs.write("5")  # the peak begins anew
    before = memory_kb(large, "VmHWM")
    assert Ops(large).events("limit=100&" + query) == []
    assert Ops(large).get("/v1/ops/events/export?" + query.partition("&")[0].replace("actor=nobody", "type=Nobody*")).body == b""
    if memory_kb(large, "VmSize") > 1 << 30:
        pytest.skip("a sanitizer keeps freed memory, and notes about all of it")
    assert memory_kb(large, "VmHWM") - before < 50000, "kB; all of it is 72000"


def test_a_page_of_large_events_ends_by_its_size_and_the_next_goes_on(large):
    first = Ops(large).read("events?limit=100&type=Large")
    assert 1 <= len(first["events"]) <= 1024 * 1024 // FILLER + 1 and first["cursor"]
    seen = [e["id"] for e in Ops(large).events("limit=100&type=Large")]
    assert len(set(seen)) == len(seen) == LARGE and seen == sorted(seen, reverse=True)
    assert [e["id"] for e in Ops(large).events("limit=7&type=Lar*&actor=somebody&order=oldest")] == seen[::-1]
