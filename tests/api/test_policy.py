# SPDX-License-Identifier: Apache-2.0
"""The operator's documents over HTTP and on the command line: read, checked, changed by who has read them last, audited."""

import json
import os
import stat
import subprocess
import threading

import pytest

from lib.ops import Ops
from lib.server import ADMIN_TOKEN, TRACK_TOKEN

TEXTS = {
    "policy": "leases:\n  maxBudget: %d # dollars\n",
    "reporting": "costReportGroups: [g%d]\n",
    "policy/approval": "rules:\n  - {id: short, when: {maxHours: %d}, then: approve}\n",
}
NAMES = {"policy": "global", "reporting": "reporting", "policy/approval": "approval"}
EACH = pytest.mark.parametrize("path", TEXTS)


@pytest.fixture
def server(make):
    return make.server()


@pytest.fixture
def ops(server):
    return Ops(server)


def put(ops, path, text, version=None, **headers):
    body = text.encode() if version is None else {"document": text, "version": version}
    return ops.request("PUT", "/v1/ops/" + path, body=body, headers=headers)


def check(ops, path, body):
    reply = ops.act(path + "/check", body)
    assert reply.status == 200, reply
    return reply.json


@EACH
def test_nobody_has_written_it_and_it_says_the_defaults(ops, path):
    got = ops.get("/v1/ops/" + path)
    assert got.status == 200 and got.header("etag") == '"0"'
    document = got.json
    assert document["version"] == 0 and document["edited_by"] is None and document["problems"] == []
    assert check(ops, path, {"document": document["text"]}) == {
        "document": document["document"],
        "version": 0,
        "ok": True,
        "problems": [],
        "changes": [],
    }


def test_the_defaults_are_those_of_the_contract(ops):
    values = ops.read("policy")["values"]
    assert values["leases"] == {
        "requireMaxBudget": True,
        "maxBudget": 50,
        "requireMaxDuration": True,
        "maxDurationHours": 168,
        "maxLeasesPerUser": 3,
        "allowSelfApproval": False,
        "onProjectedOverrun": "alert",
        "onEstimatedOverrun": "alert",
        "ttl": 30,
    }
    assert list(values["cleanup"].values()) == [3, 5, 2, 30]
    assert values["auth"]["sessionDurationInMinutes"] == 60 and values["notification"] == {"emailFrom": ""}
    assert ops.read("reporting")["values"] == {"costReportGroups": [], "requireCostReportGroup": False}


@EACH
@pytest.mark.parametrize("text", ["", " \n", "# all gone\n", "---\n", "null"])
def test_a_document_that_says_nothing_is_an_accident(ops, path, text):
    before = ops.read(path)
    reply = put(ops, path, text, before["version"])
    assert reply.status == 400 and "says nothing" in reply.body.decode(), reply
    assert check(ops, path, {"document": text})["ok"] is False
    assert ops.read(path)["text"] == before["text"]


@EACH
def test_it_is_changed_kept_and_told(server, ops, path):
    text = TEXTS[path] % 75
    first = put(ops, path, text, 0)
    assert first.status == 200 and first.header("etag") == '"1"', first
    assert first.json["version"] == 1 and len(first.json["changes"]) == 1
    second = put(ops, path, TEXTS[path] % 80, **{"If-Match": '"1"'})
    assert second.status == 200 and second.json["version"] == 2
    server.restart()
    ops = Ops(server)
    document = ops.read(path)
    assert document["text"] == TEXTS[path] % 80 and document["edited_by"] == "admin" and document["edited_at"] > 0
    edits = ops.read(path + "/history")["edits"]
    assert [(e["old_version"], e["new_version"], e["by"]) for e in edits] == [(1, 2, "admin"), (0, 1, "admin")]
    events = ops.events("type=PolicyChanged&subject=policy/" + NAMES[path])
    assert [e["detail"]["newVersion"] for e in events] == [2, 1]
    assert events[0]["detail"]["changes"] == edits[0]["changes"] and events[0]["actor"] == "admin"


def test_history_has_pages(ops):
    for version in range(5):
        assert put(ops, "policy", TEXTS["policy"] % (60 + version), version).status == 200
    page = ops.read("policy/history?limit=2")
    seen = page["edits"]
    while page["cursor"]:
        page = ops.read("policy/history?limit=2&cursor=" + page["cursor"])
        seen += page["edits"]
    assert [e["new_version"] for e in seen] == [5, 4, 3, 2, 1]
    assert seen[0]["changes"] == [{"key": "leases.maxBudget", "from": "63", "to": "64"}]
    other = ops.read("policy/history?limit=2")["cursor"]
    assert ops.get("/v1/ops/reporting/history?cursor=" + other).status == 400


def test_all_problems_come_at_once(ops):
    text = "maintenanceMode: 3\ncolour: blue\nleases:\n  maxBudget: many\n  ttl: -1\nauth:\n  webAppUrl: x\n"
    fields = ["maintenanceMode", "colour", "leases.maxBudget", "leases.ttl", "auth.webAppUrl"]
    got = check(ops, "policy", {"document": text})
    assert not got["ok"] and sorted(p["field"] for p in got["problems"]) == sorted(fields) and got["changes"] == []
    refused = put(ops, "policy", text, 0)
    assert refused.status == 400 and refused.code == "VALIDATION_ERROR"
    assert sorted(p["field"] for p in refused.error["problems"]) == sorted(fields)
    assert "5 problems" in refused.error["message"]
    assert ops.read("policy")["version"] == 0 and ops.events("type=PolicyChanged") == []


@pytest.mark.parametrize(
    "text, part",
    [
        ("a: &x 1\nb: *x\n", "anchors"),
        ("leases: !!map {}\n", "tags"),
        ("leases: {}\nleases: {}\n", "appears twice"),
        ("a: b: c\n", "line 1 column 5"),
        ("- a\n", "must be a document"),
        ("--- {}\n--- {}\n", "one document"),
        ("[" * 1000, "nested deeper"),
        ("a: \xff", "not known"),
    ],
)
def test_traps_of_yaml_are_one_problem(ops, text, part):
    got = check(ops, "policy", {"document": text})
    assert [part in p["message"] for p in got["problems"]] == [True], got


def test_no_is_a_word_unless_a_truth_value_is_wanted(ops):
    assert put(ops, "reporting", "costReportGroups: [no, off]\nrequireCostReportGroup: no\n", 0).status == 200
    assert ops.read("reporting")["values"] == {"costReportGroups": ["no", "off"], "requireCostReportGroup": False}


def test_json_is_a_document_too(ops):
    assert put(ops, "policy", json.dumps({"leases": {"ttl": 9}, "termsOfService": "\U0001f600"}), 0).status == 200
    raw = json.dumps({"leases": {"ttl": 10}})
    assert put(ops, "policy", raw, **{"If-Match": "1"}).status == 200
    assert ops.read("policy")["values"]["leases"]["ttl"] == 10


@pytest.mark.parametrize(
    "body, headers, part",
    [
        (b"", {}, "the body must be"),
        (b"leases: {}", {}, "say which version"),
        (b'{"document": "x: 1"}', {}, "say which version"),
        (b'{"document": "x: 1", "version": "1"}', {}, "version must be"),
        (b'{"document": "x: 1", "version": -1}', {}, "version must be"),
        (b'{"document": 7, "version": 1}', {}, "the body must be"),
        (b'{"document": "x", "version": 1, "more": 1}', {}, "the body must be"),
        (b"leases: {}", {"If-Match": "*"}, "If-Match must be"),
        (b"leases: {}", {"If-Match": '"abc"'}, "If-Match must be"),
    ],
)
def test_bodies_that_make_no_sense(ops, body, headers, part):
    reply = ops.request("PUT", "/v1/ops/policy", body=body, headers=headers)
    assert reply.status == 400 and part in reply.error["message"], reply


def test_size_has_limits(ops):
    assert "at most 65536" in put(ops, "policy", "#" * 65537, 0).error["problems"][0]["message"]
    assert put(ops, "policy", "{}" + "\n" * 65534, 0).status == 200
    assert put(ops, "policy", "#" * 300000, 1).status == 413


def test_who_has_read_an_old_version_is_told(ops):
    assert put(ops, "policy", TEXTS["policy"] % 60, 0).status == 200
    late = put(ops, "policy", TEXTS["policy"] % 70, 0)
    assert late.status == 409 and "is at version 1, not 0" in late.error["message"] and late.header("etag") == '"1"'
    early = put(ops, "policy", TEXTS["policy"] % 70, 7)
    assert early.status == 409
    assert ops.read("policy")["values"]["leases"]["maxBudget"] == 60


def test_the_same_text_again_is_no_change(ops):
    assert put(ops, "policy", TEXTS["policy"] % 60, 0).json["version"] == 1
    assert put(ops, "policy", TEXTS["policy"] % 60, 1).json["version"] == 1
    assert len(ops.events("type=PolicyChanged")) == 1


def test_of_many_who_edit_at_once_one_wins(server):
    results = []

    def edit(number):
        results.append(put(Ops(server), "policy", TEXTS["policy"] % (100 + number), 0).status)

    threads = [threading.Thread(target=edit, args=(i,)) for i in range(12)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert sorted(results) == [200] + [409] * 11
    assert len(Ops(server).events("type=PolicyChanged")) == 1


@pytest.mark.parametrize(
    "method, path",
    [
        ("GET", "policy"),
        ("PUT", "policy"),
        ("POST", "policy/check"),
        ("GET", "policy/history"),
        ("GET", "reporting"),
        ("PUT", "reporting"),
        ("POST", "reporting/check"),
        ("GET", "reporting/history"),
        ("GET", "policy/approval"),
        ("PUT", "policy/approval"),
        ("POST", "policy/approval/check"),
        ("POST", "policy/approval/explain"),
        ("GET", "policy/approval/history"),
        ("GET", "reports/costs?month=2026-10"),
        ("GET", "leases/9f8b7c6d-1111-4222-8333-123456789abc/statement"),
    ],
)
def test_only_operators_may(make_for_module, method, path):
    if not make_for_module.servers:
        make_for_module.server()
    server = make_for_module.servers[0]
    assert Ops(server, TRACK_TOKEN).request(method, "/v1/ops/" + path).status == 403
    assert server.client({}).request(method, "/v1/ops/" + path).status == 401


def test_a_document_that_cannot_be_read_is_shown_with_its_problems(server, ops):
    assert put(ops, "policy", TEXTS["policy"] % 60, 0).status == 200
    server.stop()
    server.sql("UPDATE document SET text = 'leases: {added: later}' WHERE name = 'global'")
    server.start()
    ops = Ops(server)
    document = ops.read("policy")
    assert [p["field"] for p in document["problems"]] == ["leases.added"]
    assert put(ops, "policy", TEXTS["policy"] % 61, document["version"]).status == 200
    assert ops.read("policy")["problems"] == []


# Reports.


def test_a_month_without_leases_is_a_heading(make):
    ops = Ops(make.server(args=["--dev"]))
    got = ops.get("/v1/ops/reports/costs?month=2026-10")
    assert got.status == 200 and got.header("content-type").startswith("text/csv")
    assert got.body == b"CostReportGroup,StartDate,EndDate,Cost,Currency\n"


@pytest.mark.parametrize("month", ["", "?month=", "?month=2026", "?month=2026-13", "?month=2026-1x", "?month=1969-12", "?month=2026-10&by=week"])
def test_a_month_must_be_one(ops, month):
    assert ops.get("/v1/ops/reports/costs" + month).status == 400


def test_a_lease_without_a_statement(ops):
    got = ops.get("/v1/ops/leases/9f8b7c6d-1111-4222-8333-123456789abc/statement")
    assert got.status == 404 and "opened when the lease ends" in got.error["message"]


# The command line.


class Cli:
    def __init__(self, server, folder):
        self.folder = folder
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(folder),
            "TMPDIR": str(folder),
            "LEASEHOLD_ADDRESS": server.url,
            "BROKER_ADMIN_TOKEN": ADMIN_TOKEN,
        }

    def run(self, *words, stdin="", **env):
        command = [os.environ["LEASEHOLD_BIN"], *words]
        return subprocess.run(command, input=stdin, capture_output=True, text=True, env={**self.env, **env}, timeout=90)

    def editor(self, script):
        path = self.folder / "editor"
        path.write_text("#!/bin/sh\n" + script)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)
        return str(path)


@pytest.fixture
def cli(server, tmp_path):
    return Cli(server, tmp_path)


def test_show_check_set_and_history(cli, tmp_path):
    shown = cli.run("policy", "show")
    assert shown.returncode == 0 and "maxBudget: 50" in shown.stdout and "version 0" in shown.stderr
    file = tmp_path / "policy.yaml"
    file.write_text(shown.stdout.replace("maxBudget: 50", "maxBudget: 75"))
    checked = cli.run("policy", "check", str(file))
    assert (checked.returncode, checked.stdout) == (0, "leases.maxBudget: 50 -> 75\n")
    assert cli.run("policy", "set", str(file), "--seen", "0").returncode == 0
    late = cli.run("policy", "set", str(file), "--seen", "0")
    assert late.returncode == 1 and "is at version 1, not 0" in late.stderr
    assert cli.run("policy", "show").stdout == file.read_text()
    listed = cli.run("policy", "history")
    assert listed.returncode == 0 and "leases.maxBudget" in listed.stdout and "admin" in listed.stdout
    assert json.loads(cli.run("policy", "show", "--json").stdout)["values"]["leases"]["maxBudget"] == 75


def test_every_problem_is_printed(cli):
    bad = "leases: {maxBudget: x}\ncolour: 1\n"
    checked = cli.run("policy", "check", "-", stdin=bad)
    assert checked.returncode == 1 and "leases.maxBudget: must be" in checked.stderr and "colour: is not" in checked.stderr
    refused = cli.run("policy", "set", "-", stdin=bad)
    assert refused.returncode == 1 and "leases.maxBudget: must be" in refused.stderr and "colour: is not" in refused.stderr


def test_the_other_documents(cli):
    text = TEXTS["policy/approval"] % 8
    assert cli.run("policy", "set", "-", "approval", stdin=text).returncode == 0
    assert cli.run("policy", "show", "approval").stdout == text
    bad = cli.run("policy", "check", "-", "approval", stdin="rules: [{id: a, when: {color: red}, then: maybe}]")
    assert bad.returncode == 1 and "rules.0.when: " in bad.stderr and "rules.0.then: must be approve" in bad.stderr
    assert cli.run("policy", "set", "-", "reporting", stdin="costReportGroups: [a]\n").returncode == 0
    assert cli.run("policy", "show", "reporting").stdout == "costReportGroups: [a]\n"
    wrong = cli.run("policy", "show", "other")
    assert wrong.returncode == 2 and "must be global, reporting or approval" in wrong.stderr


def test_edit(cli, ops):
    done = cli.run("policy", "edit", EDITOR=cli.editor('sed -i "s/maxBudget: 50/maxBudget: 99/" "$1"\n'))
    assert done.returncode == 0 and done.stdout == "leases.maxBudget: 50 -> 99\n", done
    assert ops.read("policy")["values"]["leases"]["maxBudget"] == 99
    same = cli.run("policy", "edit", EDITOR="true")
    assert same.returncode == 0 and "Nothing was changed" in same.stderr
    failed = cli.run("policy", "edit", EDITOR="false")
    assert failed.returncode == 2 and "the editor failed" in failed.stderr
    assert ops.read("policy")["version"] == 1 and not list(cli.folder.glob("leasehold-policy-*"))


def test_an_edit_that_is_refused_is_not_lost(cli, server):
    done = cli.run("policy", "edit", EDITOR=cli.editor('echo "colour: 1" >> "$1"\n'))
    assert done.returncode == 1 and "colour: is not known" in done.stderr
    kept = list(cli.folder.glob("leasehold-policy-*.yaml"))
    assert len(kept) == 1 and str(kept[0]) in done.stderr and "colour: 1" in kept[0].read_text()
    assert Ops(server).read("policy")["version"] == 0
    other = cli.run("policy", "edit", "approval", EDITOR=cli.editor('echo "colour: 1" >> "$1"\n'))
    assert other.returncode == 1 and other.stderr.endswith(".yaml approval\n"), other


@pytest.mark.parametrize("script, why", [
    ('echo "colour: 1" >> "$1"; exit 3\n', "the editor failed"),
    ('head -c 70000 /dev/zero | tr "\\0" "#" >> "$1"\n', "longer than 65536 bytes"),
])
def test_what_was_written_is_not_lost_if_it_is_not_even_sent(cli, script, why):
    """An editor that saves and then fails; a text that is too long."""
    done = cli.run("policy", "edit", EDITOR=cli.editor(script))
    assert done.returncode == 2 and why in done.stderr
    kept = list(cli.folder.glob("leasehold-policy-*.yaml"))
    assert len(kept) == 1 and "Your text is in %s;" % kept[0] in done.stderr, done
    assert kept[0].read_text().endswith(("colour: 1\n", "#"))


def test_a_file_that_the_editor_removed_is_not_named(cli):
    done = cli.run("policy", "edit", EDITOR=cli.editor('rm "$1"\n'))
    assert done.returncode == 2 and "No such file" in done.stderr and "Your text" not in done.stderr


def test_costs_on_the_command_line(make, tmp_path):
    cli = Cli(make.server(args=["--dev"]), tmp_path)
    assert cli.run("report", "costs", "2026-10").stdout == "CostReportGroup,StartDate,EndDate,Cost,Currency\n"
    assert "such as 2026-10" in cli.run("report", "costs", "october").stderr
