# SPDX-License-Identifier: Apache-2.0
"""The operators' API on DynamoDB: a stream of all nodes' events in order, lists, and what an outage does to both ends."""

import time

from lib.crowd import Background
from lib.ops import Ops, Stream, outside
from lib.wait import until

ROUNDS, AT_ONCE, LAG_SEC = 10, 3, 2


def test_a_stream_shows_the_events_of_all_nodes_in_order(make, nodes):
    here, there = nodes(2, make.csp(1))
    stream = Stream(here, "?type=cloudtrail:*").begin()

    def send(server, name):
        ops = Ops(server)
        for n in range(ROUNDS):
            ops.happen(*["%s%02d%d" % (name, n, i) for i in range(AT_ONCE)])
        ops.close()

    senders = [Background(send, here, "H"), Background(send, there, "T")]
    events = [stream.event(30)[1] for _ in range(2 * ROUNDS * AT_ONCE)]
    for sender in senders:
        sender.result()
    ids = [e["id"] for e in events]
    assert ids == sorted(set(ids))
    for name in ("H", "T"):
        sent = ["cloudtrail:%s%02d%d" % (name, n, i) for n in range(ROUNDS) for i in range(AT_ONCE)]
        assert [e["detail-type"] for e in events if e["detail-type"][11] == name] == sent

    began = time.monotonic()
    send(here, "L")
    assert stream.event(30)[0] == "cloudtrail:L000"
    assert time.monotonic() - began >= LAG_SEC, "a later id can be visible before an earlier one"

    again = Stream(there, "?type=cloudtrail:*", ids[20]).begin()
    assert [again.event(30)[1]["id"] for _ in ids[21:]] == ids[21:], "it goes on at another node"
    for one in (stream, again):
        one.close()


def test_lists_and_figures_work_on_this_store(make, nodes):
    (server,) = nodes(1, make.csp(1))
    ops = Ops(server)
    subject = ops.happen(*["L%02d" % n for n in range(12)])
    listed = ops.events("limit=5&order=oldest&subject=" + subject)
    assert [e["detail-type"] for e in listed] == ["cloudtrail:L%02d" % n for n in range(12)]
    assert ops.events("limit=5&subject=" + subject) == listed[::-1]
    reply = ops.get("/v1/ops/events/export?subject=" + subject)
    assert len(reply.body.splitlines()) == 12
    for path in ("queues", "dead-letters", "timers", "timers?prefix=a", "sagas", "sagas?state=parked", "alarms"):
        assert ops.read(path), path
    assert len(ops.read("nodes")["nodes"]) == 1
    assert ops.get("/metrics").status == 200


def test_senders_are_asked_to_repeat_while_the_store_is_away_and_nothing_is_taken_twice(make, proxy, nodes):
    (server,) = nodes(1, make.csp(1), via=proxy)
    ops = Ops(server)
    events = [outside("Sent%d" % n, subject="thing/outage") for n in range(3)]
    stream = Stream(server, "?subject=thing/outage").begin()
    proxy.fault("error", operations=("TransactWriteItems",))
    reply = ops.send(*events)
    assert (reply.status, reply.code) == (503, "SERVICE_UNAVAILABLE") and int(reply.header("Retry-After")) >= 1
    proxy.clear()
    until(lambda: ops.send(events[0]).status == 202, "the store is back", 20, 0.1)
    reply = ops.send(*events)
    assert (reply.status, reply.json) == (202, {"accepted": 2, "duplicates": 1, "rejected": []})
    assert [stream.event(30)[0] for _ in events] == ["cloudtrail:Sent%d" % n for n in range(3)]
    stream.close()


def test_a_stream_outlives_an_outage_and_a_new_one_is_refused(make, proxy, nodes):
    (server,) = nodes(1, make.csp(1), via=proxy)
    ops = Ops(server)
    stream = Stream(server, "?subject=thing/after").begin()
    proxy.stop()
    until(lambda: Stream(server).head() == 503, "without the store no stream begins", 20, 0.1)
    proxy.start()
    until(lambda: ops.send(outside("After", subject="thing/after")).status == 202, "the store is back", 20, 0.1)
    assert stream.event(30)[0] == "cloudtrail:After"
    stream.close()
