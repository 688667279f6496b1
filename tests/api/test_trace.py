# SPDX-License-Identifier: Apache-2.0
"""G8: a caller's trace id goes along: into events, sagas, outgoing calls and log lines. G5: the metrics as a log line."""

import json

from lib import leases
from lib.receiver import Receiver
from lib.wait import until

ID = "5759e988bd862e3fe1be46a994272793"
PARENT = "00-%s-53995c3f42cd8ad8-01" % ID
AMAZON = "Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1"
OTHER = "00-11111111111111111111111111111111-2222222222222222-00"


def logged(server, **wanted):
    lines = [json.loads(line) for line in list(server.lines) if line.startswith("{") and line.endswith("}\n")]
    return [line for line in lines if all(line.get(k) == v for k, v in wanted.items())]


def pages(admin):
    at = ""
    while at is not None:
        page = admin.get("/v1/ops/events?limit=100" + at).json
        at = "&cursor=" + page["cursor"] if page.get("cursor") else None
        yield page["events"]


def test_G8_a_claim_and_its_webhook_belong_to_the_callers_trace(make):
    server = make.server(count=3, LEASEHOLD_WEBHOOK_PRIVATE="true")
    admin = server.admin()
    with Receiver() as receiver:
        assert admin.post("/v1/ops/webhooks", body={"url": receiver.url, "filter": "SandboxAllocated"}).status == 201
        server.track("one").claim(headers={"traceparent": PARENT})
        server.track("two").claim(headers={"X-Amzn-Trace-Id": AMAZON.replace("Sampled=1", "Sampled=0")})
        server.track("three").claim(headers={"traceparent": "00-nonsense"})
        until(lambda: len(receiver.got) == 3, "all webhooks came", 60)
        hits = {hit.event["actor"]: hit for hit in receiver.got}
    one, two, three = (hits["track/" + name] for name in ("one", "two", "three"))
    assert one.event["traceparent"] == one.headers["traceparent"] == PARENT and one.headers["x-amzn-trace-id"] == AMAZON
    assert two.event["traceparent"] == two.headers["traceparent"] == PARENT[:-2] + "00"
    assert "traceparent" not in three.event and "traceparent" not in three.headers and "x-amzn-trace-id" not in three.headers
    assert {line["track_id"] for line in until(lambda: [found for found in [logged(server, logger="http", trace_id=ID)] if len(found) == 2],
                                               "both requests are logged", 60)[0]} == {"one", "two"}


def test_G8_what_a_saga_does_belongs_to_the_request_that_began_it(make):
    server = make.server(args=["--dev"], **leases.env(make.folder))
    pool = leases.Pool(server)
    person = pool.person()
    template = pool.template(requiresApproval=True)
    asked = person.request("POST", "/api/leases", body={"leaseTemplateUuid": template["uuid"], "comments": ""}, headers={"traceparent": OTHER})
    lease = asked.json["data"]
    done = pool.manager.request("POST", "/api/leases/%s/review" % lease["leaseId"], body={"action": "Approve"}, headers={"traceparent": PARENT})
    assert (asked.status, done.status) == (201, 200), (asked, done)
    pool.until_status(lease, "Active")
    admin = server.admin()

    wanted = {"LeaseApproved", "LeaseProvisioningStarted", "SagaStarted", "SagaDone", "AccountProvisioned"}

    def seen():
        events = [e for page in pages(admin) for e in page]
        by = {trace: {e["detail-type"] for e in events if e.get("traceparent") == trace} for trace in (PARENT, OTHER)}
        return by if wanted <= by[PARENT] else None

    assert "LeaseRequested" in until(seen, "all that the approval caused belongs to it", 60)[OTHER]


def test_G5_the_metrics_are_a_log_line_too(make):
    server = make.server(count=4, LEASEHOLD_LOG_METRICS_SEC="1")
    server.track("one").claim()
    line = until(lambda: logged(server, logger="metrics", broker_pool_allocated=1), "the line says so", 60)[0]
    assert (line["broker_pool_total"], line["broker_pool_available"], line["broker_allocate_total"]) == (4, 3, 1)
    assert line["leasehold_dead_letters"] == line["leasehold_alarms"] == 0 and line["broker_allocation_latency_seconds_count"] == 1
    text = server.client().get("/metrics").body.decode()
    families = {part.split()[2]: part.split()[3] for part in text.splitlines() if part.startswith("# TYPE")}
    wanted = {name for name, kind in families.items() if kind != "histogram"}
    wanted |= {name + end for name, kind in families.items() if kind == "histogram" for end in ("_count", "_sum")}
    assert {name for name in line if name.startswith(("broker_", "leasehold_"))} == wanted

