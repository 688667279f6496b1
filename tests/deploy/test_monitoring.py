# SPDX-License-Identifier: Apache-2.0
"""Rules and dashboards under deploy/, held against the server that they watch."""

import json
import pathlib
import re
import subprocess

import pytest

from lib import leases
from lib.promtool import Prometheus, promtool
from lib.wait import until

DEPLOY = pathlib.Path(__file__).resolve().parents[2] / "deploy"
RULES = DEPLOY / "prometheus" / "leasehold.rules.yml"
DASHBOARDS = sorted((DEPLOY / "grafana").glob("*.json"))
NAME = re.compile(r"\b(?:broker|leasehold)_[a-z0-9_]+\b")


def run(*args, **kw):
    return subprocess.run([promtool(), *map(str, args)], capture_output=True, text=True, **kw)


def expressions():
    found = [t["expr"] for d in DASHBOARDS for p in json.loads(d.read_text())["panels"] for t in p["targets"]]
    return found + [line for line in RULES.read_text().splitlines() if "annotations" not in line and not line.lstrip().startswith("#")]


@pytest.fixture(scope="module")
def told(make_for_module):
    """What a server says once it has counted its leases."""
    server = make_for_module.server(args=["--dev"], **leases.env(make_for_module.folder))
    client = server.client()

    def look():
        text = client.get("/metrics").body.decode()
        return text if "leasehold_accounts{" in text else None

    return until(look, "leases and accounts are counted", 30, 0.1)


def test_D20_the_rules_are_good_and_do_what_their_tests_say():
    assert run("check", "rules", RULES).returncode == 0
    done = run("test", "rules", "leasehold.test.yml", cwd=RULES.parent)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_is_seen_firing():
    alerts = re.findall(r"- alert: (\w+)", RULES.read_text())
    tests = (RULES.parent / "leasehold.test.yml").read_text()
    assert len(alerts) > 15
    for alert in alerts:
        assert re.search(r"alertname: %s\n\s+exp_alerts:" % alert, tests), alert


def test_a_broken_rule_is_noticed(tmp_path):
    broken = tmp_path / "broken.yml"
    broken.write_text(RULES.read_text().replace("up{job", "up{{job", 1))
    assert run("check", "rules", broken).returncode != 0


def test_D22_every_alert_has_a_heading_in_the_runbook():
    runbook = (DEPLOY.parent / "docs" / "runbook.md").read_text()
    headings = {re.sub(r"[^a-z0-9 -]", "", h.lower()).strip().replace(" ", "-") for h in re.findall(r"^#+ (.+)$", runbook, re.M)}
    rules = RULES.read_text()
    anchors = re.findall(r'runbook: "docs/runbook\.md#([\w-]+)"', rules)
    assert len(anchors) == len(re.findall(r"- alert: ", rules))
    for anchor in anchors:
        assert anchor in headings, anchor


def test_the_dashboards_are_what_their_rows_say():
    done = subprocess.run([DEPLOY / "grafana" / "make-dashboards", "--check"], capture_output=True, text=True)
    assert done.returncode == 0 and len(DASHBOARDS) == 6, done.stderr


def test_D22_rules_and_dashboards_ask_only_for_what_the_server_tells(told):
    families = set(re.findall(r"^# TYPE (\S+)", told, re.M))
    for expression in expressions():
        for name in NAME.findall(expression):
            assert name in families or re.sub(r"_(bucket|count|sum)$", "", name) in families, (name, expression)


def test_every_expression_of_a_dashboard_can_be_read(tmp_path):
    rules = [{"record": "x:%d" % i, "expr": e} for i, e in enumerate(e for d in DASHBOARDS for p in json.loads(d.read_text())["panels"] for e in [t["expr"] for t in p["targets"]])]
    path = tmp_path / "rules.json"  # JSON is YAML
    path.write_text(json.dumps({"groups": [{"name": "dashboards", "rules": rules}]}))
    done = run("check", "rules", path)
    assert done.returncode == 0, done.stdout + done.stderr


def test_D20_prometheus_accepts_the_metrics(told):
    done = run("check", "metrics", input=told)
    # A gauge with a name of the contract; everything else is as Prometheus wants it.
    assert [line for line in done.stderr.splitlines() if "broker_pool_total" not in line] == []


# What needs more than the demonstration does: a day of failures, two nodes that compete, an organisation on AWS.
RARE = {"Claims that tried again", "Answered with what is held already", "Handlers that held the loop, per hour", "Duration, median", "Duration, p99",
        "Operations per hour", "Duration of a cleanup", "What the guard did"}


def test_D21_a_real_prometheus_reads_it_without_error_and_no_panel_is_empty(make, tmp_path):
    server = make.server(args=["--dev"], count=20, **leases.env(make.folder))
    pool = leases.Pool(server)
    pool.active(pool.person())
    track = server.track("student-1")
    for _ in range(3):
        track.claim()
    prometheus = Prometheus(tmp_path, "%s:%d" % server.address, RULES)
    try:
        def scraped():
            found = prometheus.ask("targets")["activeTargets"]
            assert not any(target["lastError"] for target in found), found
            return prometheus.ask("query", query="up == 1")["result"]

        until(scraped, "Prometheus has scraped it", 120, 0.2)
        panels = [(p["title"], t["expr"]) for d in DASHBOARDS for p in json.loads(d.read_text())["panels"] for t in p["targets"]]
        # A rate needs two scrapes of a series, an increase over a day no more than that.
        left = [(title, expr) for title, expr in panels if title not in RARE]

        def filled():
            left[:] = [(title, expr) for title, expr in left if not prometheus.ask("query", query=expr)["result"]]
            return not [title for title, _ in left if not [1 for t, e in panels if t == title and (t, e) not in left]]

        try:
            until(filled, "every panel shows something", 120, 0.5)
        except AssertionError as e:
            raise AssertionError("empty: %r" % left) from e
        rules = [r for group in prometheus.ask("rules")["groups"] for r in group["rules"]]
        assert len(rules) > 20 and all(r["health"] in ("ok", "unknown") for r in rules), rules
    finally:
        prometheus.close()
