# SPDX-License-Identifier: Apache-2.0
"""A server on AWS: its settings, the probe at its start and on demand, what it tells about rights that it lacks, secrets that AWS keeps."""

import datetime
import json
import signal

import pytest

from aws.front import names
from lib.aws_front import statements
from lib.clouds import ACCOUNTS, GUARD
from lib.ops import Ops
from lib.server import ADMIN_TOKEN, run
from lib.wait import until

TABLE = "accounts"
FOUND = 7
ORG = names.role_name(names.ORG_ROLE)
LEASES = {"LEASEHOLD_JWT_SECRET": "s" * 40, "LEASEHOLD_CLEANER": "codebuild", "LEASEHOLD_CODEBUILD_PROJECT": "cleaner",
          "APPCONFIG_APPLICATION_ID": "app", "APPCONFIG_ENVIRONMENT_ID": "env", "APPCONFIG_NUKE_CONFIG_CONFIGURATION_PROFILE_ID": "nuke"}


def guard_env(front, **more):
    front.do("organizations", "add_accounts", ids=ACCOUNTS)
    front.do("dynamodb", "add_table", name=TABLE, items={id: "Available" for id in ACCOUNTS})
    return {**front.env(), **GUARD, "ACCOUNT_TABLE_NAME": TABLE, **more}


def lease_env(front, **more):
    front.do("codebuild", "add_project", name="cleaner")
    return {**front.env(), **LEASES, **more}


def rows(server):
    return {(r["permission"], r["as"]): r for r in Ops(server).read("doctor/aws")["rows"]}


def doctor(server, *args):
    env = {"LEASEHOLD_ADDRESS": server.url, "BROKER_ADMIN_TOKEN": ADMIN_TOKEN, "NO_COLOR": "1"}
    return run("doctor", "aws", *args, env=env, timeout=120)


def refusal(make, env):
    """The rows that a start which is refused shows, by permission: their verdict; and all that it says."""
    said = make.server(start=False, **env).refusal(timeout=120)
    shown = {}
    for line in said.splitlines():
        for verdict in ("ok", "denied", "missing", "unreachable", "not tried"):
            if line.startswith("  " + verdict + " ") and " as " in line:
                shown[line[len(verdict) + 2:].split()[0]] = verdict
    return shown, said


# Settings.


def problems(*args, **env):
    got = run("config", *args, env=env)
    return got.stderr.splitlines()


def has(lines, name, *words):
    return any(line.strip().startswith(name + ":") and all(w in line for w in words) for line in lines)


def test_everything_that_is_missing_is_named_at_once():
    lines = problems(LEASEHOLD_CLOUD="aws")
    for name in ("INTERMEDIATE_ROLE_ARN", "ORG_MGT_ROLE_ARN", "IDC_ROLE_ARN", "SANDBOX_OU_ID", "ORG_MGT_ACCOUNT_ID", "IDC_ACCOUNT_ID",
                 "HUB_ACCOUNT_ID", "ISB_NAMESPACE"):
        assert has(lines, name, "is required with LEASEHOLD_CLOUD=aws"), (name, lines)
    assert has(lines, "LEASEHOLD_CLEANER", "sim empties no real account")


def test_a_guard_needs_less():
    lines = problems(LEASEHOLD_CLOUD="aws", LEASEHOLD_QUARANTINE="guard")
    named = {line.strip().split(":")[0] for line in lines if line.startswith("  ")}
    assert named == {"INTERMEDIATE_ROLE_ARN", "ORG_MGT_ROLE_ARN", "SANDBOX_OU_ID", "ACCOUNT_TABLE_NAME"}


def test_a_hop_that_is_set_to_nothing_is_left_out_on_purpose():
    lines = problems(LEASEHOLD_CLOUD="aws", LEASEHOLD_QUARANTINE="guard", INTERMEDIATE_ROLE_ARN="", ORG_MGT_ROLE_ARN="", SANDBOX_OU_ID="r-abcd",
                     ACCOUNT_TABLE_NAME="t")
    assert [line for line in lines if line.startswith("  ")] == []


@pytest.mark.parametrize("name,value,words", [
    ("INTERMEDIATE_ROLE_ARN", "arn:aws:iam::12:role/x", ["arn:aws:iam::123456789012:role/NAME", "'arn:aws:iam::12:role/x'"]),
    ("ORG_MGT_ROLE_ARN", "role/x", ["must be a role"]),
    ("SANDBOX_OU_ID", "sandbox", ["an OU (ou-xxxx-xxxxxxxx) or a root (r-xxxx)"]),
    ("ORG_MGT_ACCOUNT_ID", "12345678901", ["12 digits"]),
    ("ISB_NAMESPACE", "a-b", ["3 to 8 letters and digits"]),
    ("LEASEHOLD_AWS_SESSION_SEC", "899", ["900 to 3600"]),
    ("LEASEHOLD_AWS_EXTERNAL_ID", "x", ["2 to 1224"]),
    ("LEASEHOLD_AWS_SOURCE_IDENTITY", "a b", ["2 to 64"]),
    ("LEASEHOLD_IDC_REGION", "eu_west", ["region"]),
    ("ACCOUNT_POOL_CONFIG_PARAM_ARN", "/pool", ["ARN of a parameter"]),
    ("LEASEHOLD_CE_REFRESH_SEC", "60", ["3600 to 86400"]),
    ("ACCOUNT_TABLE_NAME", "sim", ["must be a real table"]),
    ("AWS_ENDPOINT_URL_SSO_ADMIN", "http://sso.example.org", ["this machine"]),
])
def test_what_makes_no_sense_is_refused_with_what_would(name, value, words):
    env = {"LEASEHOLD_CLOUD": "aws", "LEASEHOLD_QUARANTINE": "guard", name: value}
    assert has(problems(**env), name, *words), problems(**env)


def test_codebuild_wants_its_project_and_ids():
    lines = problems(LEASEHOLD_CLOUD="aws", LEASEHOLD_CLEANER="codebuild")
    for name in ("LEASEHOLD_CODEBUILD_PROJECT", "APPCONFIG_APPLICATION_ID", "APPCONFIG_ENVIRONMENT_ID",
                 "APPCONFIG_NUKE_CONFIG_CONFIGURATION_PROFILE_ID"):
        assert has(lines, name, "LEASEHOLD_CLEANER=codebuild"), (name, lines)
    assert has(problems(LEASEHOLD_CLEANER="codebuild"), "LEASEHOLD_CLEANER", "needs LEASEHOLD_CLOUD=aws")


def test_a_simulated_world_and_a_real_organisation_do_not_mix(front, tmp_path):
    got = run("serve", "--dev", "--data", str(tmp_path), "--listen", "127.0.0.1:0",
              env={**lease_env(front), "LEASEHOLD_TIME_SCALE": "60"})
    assert got.returncode == 2 and "--dev is for a simulated world" in got.stderr
    assert "LEASEHOLD_TIME_SCALE=1" in got.stderr and front.log() == []


def test_variables_of_aws_are_nothing_to_a_server_that_does_not_use_it(make):
    make.server(AWS_ENDPOINT_URL="http://aws.example.org", INTERMEDIATE_ROLE_ARN="")


# The probe.


def test_a_guard_finds_all_its_permissions_and_starts(make, front):
    server = make.server(**guard_env(front))
    found = rows(server)
    assert {r["verdict"] for r in found.values()} == {"ok"}
    assert ("organizations:MoveAccount", names.ORG_ROLE) in found and ("dynamodb:UpdateItem", "own credentials") in found
    assert ("sts:AssumeRole", names.INTERMEDIATE_ROLE) in found
    got = doctor(server)
    assert got.returncode == 0 and "organizations:MoveAccount" in got.stdout and got.stdout.endswith("nothing failed\n")
    accounts = front.state("organizations")["accounts"]
    assert {accounts[id]["parent"] for id in ACCOUNTS} == {names.OUS["Available"]}
    assert {item["status"]["S"] for item in front.state("dynamodb")[TABLE].values()} == {"Available"}


def test_what_is_lent_needs_identity_center_too(make, front):
    found = rows(make.server(**lease_env(front)))
    by_name = {permission: row for (permission, _), row in found.items()}
    assert by_name["sso:ListAccountAssignments"]["verdict"] == "ok" and by_name["sso:ListAccountAssignments"]["as"] == names.IDC_ROLE
    assert by_name["identitystore:GetUserId"]["verdict"] == "ok"
    assert by_name["sso:CreateAccountAssignment"]["verdict"] == "not tried"
    assert by_name["ce:GetCostAndUsage"]["verdict"] == "not tried" and "--paid" in by_name["ce:GetCostAndUsage"]["text"]
    assert {r["verdict"] for r in found.values()} == {"ok", "not tried"}


def test_cost_explorer_is_asked_only_when_it_may_cost_something(make, front):
    server = make.server(**lease_env(front, LEASEHOLD_CE_REFRESH_SEC="86400"))
    until(lambda: Ops(server).read("jobs"), "it works", 30)
    paid = doctor(server, "--paid")
    assert paid.returncode == 0, paid.stdout
    asked = [e["params"]["TimePeriod"]["Start"] for e in front.log("ce", "GetCostAndUsage") if "Filter" not in e["params"]]
    assert datetime.date.today() - datetime.date.fromisoformat(asked[0]) < datetime.timedelta(30)  # it refuses what is older than 14 months
    row = next(r for r in Ops(server).read("doctor/aws?paid=true")["rows"] if r["permission"] == "ce:GetCostAndUsage")
    assert row["verdict"] == "ok"
    assert Ops(server).get("/v1/ops/doctor/aws?paid=yes").status == 400


def test_a_guard_starts_with_the_ous_of_its_pool_right_below_the_root(make, front):
    for name, id in names.OUS.items():
        front.do("organizations", "add_ou", id=id, name=name, parent=names.ROOT)
    policy = json.dumps(statements()[ORG]).replace("ou/%s/%s" % (names.ORG, names.SANDBOX_OU), "root/%s/%s" % (names.ORG, names.ROOT))
    front.do("sts", "policy", role=ORG, statements=json.loads(policy))
    server = make.server(start=False, **guard_env(front, SANDBOX_OU_ID=names.ROOT))
    server.start(timeout=120)
    assert {r["verdict"] for r in rows(server).values()} == {"ok"}


@pytest.mark.parametrize("permission", ["organizations:ListRoots", "organizations:MoveAccount", "organizations:UntagResource", "dynamodb:UpdateItem"])
def test_a_permission_that_is_needed_and_denied_refuses_the_start_with_all_rows(make, front, permission):
    env = guard_env(front)
    front.do("sts", "deny", action=permission)
    shown, said = refusal(make, env)
    assert shown[permission] == "denied" and [p for p, v in shown.items() if v == "denied"] == [permission], said
    assert {"organizations:ListParents", "dynamodb:GetItem", "sts:AssumeRole"} <= set(shown)
    assert "allow %s to" % permission in said and "refused or missing: " + permission in said


def test_a_hop_that_is_refused_is_told_once_and_nothing_behind_it_is_tried(make, front):
    front.may_break = True  # it is not in the policies, either
    env = guard_env(front, ORG_MGT_ROLE_ARN=names.ORG_ROLE + "-other")
    shown, said = refusal(make, env)
    assert shown["sts:AssumeRole"] == "denied" and shown["organizations:MoveAccount"] == "not tried", said
    assert "the trust policy of %s-other must name %s" % (names.ORG_ROLE, names.INTERMEDIATE_ROLE) in said
    assert [c for c in front.calls() if c.startswith("organizations:")] == []


def test_a_denial_that_names_kms_says_what_to_do_with_the_key(make, front):
    env = guard_env(front)
    front.fault("deny", "dynamodb", "GetItem", message="not authorized to perform: kms:Decrypt on resource: arn:aws:kms:us-east-1:1:key/k")
    _, said = refusal(make, env)
    assert "to do: allow kms:Decrypt and kms:GenerateDataKey on the key to own credentials" in said


def test_a_table_that_is_not_there_is_missing(make, front):
    shown, said = refusal(make, guard_env(front, ACCOUNT_TABLE_NAME="nowhere"))
    assert shown["dynamodb:GetItem"] == "missing" and "check the setting that names it" in said


def test_aws_that_does_not_answer_keeps_nobody_from_starting(make, front):
    env = guard_env(front)
    env["AWS_ENDPOINT_URL_DYNAMODB"] = "http://127.0.0.1:1"
    server = make.server(start=False, **env)
    server.start(timeout=120)
    found = rows(server)
    assert found[("dynamodb:GetItem", "own credentials")]["verdict"] == "unreachable"
    assert doctor(server).returncode == FOUND


def test_without_aws_there_is_nothing_to_probe(make):
    reply = Ops(make.server()).get("/v1/ops/doctor/aws")
    assert reply.status == 404 and "LEASEHOLD_CLOUD=aws" in reply.json["error"]["message"]


# What operators are told.


def alarms(server):
    return {a["rule"]: a for a in Ops(server).read("alarms")["alarms"] if a["state"] == "raised"}


def test_a_permission_that_is_taken_away_raises_an_alarm_that_names_it(make, front):
    server = make.server(**guard_env(front, LEASEHOLD_ALARM_INTERVAL_SEC="1"))
    front.do("sts", "deny", action="organizations:ListAccountsForParent")
    assert doctor(server).returncode == FOUND
    alarm = until(lambda: alarms(server).get("aws-permission"), "the alarm", 60)
    assert "organizations:ListAccountsForParent" in alarm["name"] and "AccessDenied" in alarm["evidence"]


def test_throttles_of_one_class_raise_an_alarm_at_the_tenth(make, front):
    server = make.server(**guard_env(front))
    number = front.fault("throttle", "organizations", "ListTagsForResource", count=9)
    while front.hits(number) < 9:  # each doctor asks three times, then it is told that AWS does not answer
        doctor(server)
    assert "aws-throttled" not in alarms(server)
    number = front.fault("throttle", "organizations", "ListTagsForResource", count=1)
    doctor(server)
    assert front.hits(number) == 1
    alarm = until(lambda: alarms(server).get("aws-throttled"), "the alarm", 60)
    assert "org-read" in alarm["name"] and "10 times" in alarm["evidence"]


def test_other_endpoints_are_told_at_the_start(make, front):
    server = make.server(**guard_env(front))
    until(lambda: any("not at AWS's own address" in line and front.url in line for line in map(str, list(server.lines))), "it is told")


# Secrets.


def test_a_secret_may_be_kept_by_secrets_manager(make, front):
    front.do("secretsmanager", "put", name="/InnovationSandbox/front/admin", value='{"token": "admin-token-from-the-store-1"}')
    server = make.server(**front.credentials(), AWS_ENDPOINT_URL=front.url, BROKER_ADMIN_TOKEN="secretsmanager:/InnovationSandbox/front/admin#token")
    assert Ops(server, "admin-token-from-the-store-1").get("/v1/ops/alarms").status == 200
    assert Ops(server, "secretsmanager:/InnovationSandbox/front/admin#token").get("/v1/ops/alarms").status == 401
    assert "admin-token-from-the-store-1" not in "".join(map(str, server.lines))


class Kept:
    """A server whose operators' token is kept by Secrets Manager, and whose test changes it there."""

    NAME = "/InnovationSandbox/front/admin"

    def __init__(self, make, front, **env):
        self.front = front
        self.put("admin-token-from-the-store-1")
        front.do("secretsmanager", "put", name="/InnovationSandbox/front/smtp", value="password")
        self.server = make.server(**front.credentials(), AWS_ENDPOINT_URL=front.url, BROKER_ADMIN_TOKEN="secretsmanager:%s#token" % self.NAME, **env)

    def put(self, token):
        self.front.do("secretsmanager", "put", name=self.NAME, value='{"token": "%s"}' % token)

    def knows(self, token):
        return Ops(self.server, token).get("/v1/ops/alarms").status == 200

    def hup(self, words):
        seen = self.server.output().count(words)
        self.server.signal(signal.SIGHUP)
        until(lambda: self.server.output().count(words) > seen, words)


def test_a_secret_that_has_changed_is_read_again_at_sighup(make, front):
    kept = Kept(make, front)
    kept.put("admin-token-from-the-store-2")
    assert kept.knows("admin-token-from-the-store-1")
    kept.hup("are read again")
    assert kept.knows("admin-token-from-the-store-2") and not kept.knows("admin-token-from-the-store-1")
    assert "BROKER_ADMIN_TOKEN comes from the environment" not in kept.server.output()
    kept.put("short")
    kept.hup("reload failed, the old settings stay: BROKER_ADMIN_TOKEN")
    front.fault("deny", "secretsmanager", "GetSecretValue")
    kept.hup("reload failed, the old settings stay: BROKER_ADMIN_TOKEN")
    assert kept.knows("admin-token-from-the-store-2")
    assert "from-the-store" not in kept.server.output()


def test_a_secret_that_has_changed_is_read_again_by_itself(make, front):
    kept = Kept(make, front, LEASEHOLD_SECRETS_REFRESH_SEC="1", LEASEHOLD_SMTP_PASSWORD="secretsmanager:/InnovationSandbox/front/smtp")
    kept.put("admin-token-from-the-store-2")
    until(lambda: kept.knows("admin-token-from-the-store-2"), "the new one is in force")
    assert not kept.knows("admin-token-from-the-store-1")
    until(lambda: "BROKER_ADMIN_TOKEN has a new value" in kept.server.output(), "it is told")
    front.do("secretsmanager", "put", name="/InnovationSandbox/front/smtp", value="another")
    until(lambda: "LEASEHOLD_SMTP_PASSWORD has a new value, which needs a restart" in kept.server.output(), "it is told")
    number = front.fault("deny", "secretsmanager", "GetSecretValue", count=-1)
    until(lambda: "reload failed, the old settings stay" in kept.server.output(), "it may not be read")
    assert kept.knows("admin-token-from-the-store-2") and front.hits(number)
    front.clear()
    kept.put("admin-token-from-the-store-3")
    until(lambda: kept.knows("admin-token-from-the-store-3"), "the third is in force")


def test_the_loop_does_not_wait_for_secrets(make, front):
    kept = Kept(make, front)
    held = front.fault("hold_before", "secretsmanager", "GetSecretValue")
    kept.server.signal(signal.SIGHUP)
    front.wait_held(held)
    assert kept.knows("admin-token-from-the-store-1"), "it answers meanwhile"
    kept.put("admin-token-from-the-store-2")
    kept.server.signal(signal.SIGHUP)  # while one is being read: then once more
    assert kept.knows("admin-token-from-the-store-1")
    front.release(held)
    until(lambda: kept.knows("admin-token-from-the-store-2"), "both are done")


def test_a_stop_does_not_wait_for_secrets(make, front):
    kept = Kept(make, front)
    held = front.fault("hold_before", "secretsmanager", "GetSecretValue")
    kept.server.signal(signal.SIGHUP)
    front.wait_held(held)
    assert kept.server.stop() == 0
    front.release(held)


@pytest.mark.parametrize("reference,words", [
    ("/InnovationSandbox/front/gone", "ResourceNotFoundException"),
    ("/InnovationSandbox/front/admin#other", "must be a JSON object with a text 'other'"),
    ("/InnovationSandbox/front/short", "16 to 256"),
    ("#token", "NAME#key"),
])
def test_a_secret_that_cannot_be_read_is_a_problem_of_its_setting(front, tmp_path, reference, words):
    front.do("secretsmanager", "put", name="/InnovationSandbox/front/admin", value='{"token": "admin-token-from-the-store-1"}')
    front.do("secretsmanager", "put", name="/InnovationSandbox/front/short", value="tooshort")
    got = run("serve", "--init", "--data", str(tmp_path / "d"), "--listen", "127.0.0.1:0", timeout=60,
              env={**front.credentials(), "AWS_ENDPOINT_URL": front.url, "BROKER_API_TOKEN": "t" * 20,
                   "BROKER_ADMIN_TOKEN": "secretsmanager:" + reference})
    assert got.returncode == 2 and has(got.stderr.splitlines(), "BROKER_ADMIN_TOKEN", words), got.stderr
    assert "admin-token-from-the-store-1" not in got.stderr and "tooshort" not in got.stderr
