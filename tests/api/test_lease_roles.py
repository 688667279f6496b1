# SPDX-License-Identifier: Apache-2.0
"""Who may do what under /api: every row of the role matrix, its extra rules, maintenance, and callers who are none."""

import re
import time
import uuid

import pytest

from lib import jwt, leases
from lib.leases import ADMIN, MANAGER, USER, Api, Pool, lease_id, nowhere
from lib.server import ADMIN_TOKEN

NO_ID = str(uuid.uuid4())
TEMPLATE = {"name": "of the matrix", "requiresApproval": True, "maxSpend": 10, "leaseDurationInHours": 8}
BLUEPRINT = {"name": "of-the-matrix", "stackSetId": "s:1", "regions": ["us-east-1"]}
REVIEW = {"action": "Approve"}

# method, path ({own}: a lease id of the caller's that nobody has), body, roles, what those get
MATRIX = [
    ("GET", "/leases?userEmail={email}", None, "UMA", 200),
    ("POST", "/leases", {"leaseTemplateUuid": NO_ID}, "UMA", 404),
    ("GET", "/leases/{own}", None, "UMA", 404),
    ("PATCH", "/leases/{own}", {}, "MA", 404),
    ("POST", "/leases/{own}/review", REVIEW, "MA", 404),
    ("PATCH", "/leases/{own}/review", REVIEW, "MA", 404),
    ("POST", "/leases/{own}/freeze", None, "MA", 404),
    ("POST", "/leases/{own}/unfreeze", None, "MA", 404),
    ("POST", "/leases/{own}/terminate", None, "UMA", 404),
    ("POST", "/leases/{own}/withdraw", None, "UMA", 404),
    ("GET", "/leases/{own}/statement", None, "UMA", 404),
    ("GET", "/leases/{own}/explain", None, "UMA", 404),
    ("GET", "/leases/{own}/spend", None, "UMA", 404),
    ("GET", "/leaseTemplates", None, "UMA", 200),
    ("GET", "/leaseTemplates/" + NO_ID, None, "UMA", 404),
    ("POST", "/leaseTemplates", TEMPLATE, "MA", 201),
    ("PUT", "/leaseTemplates/" + NO_ID, {**TEMPLATE, "createdBy": MANAGER}, "MA", 404),
    ("DELETE", "/leaseTemplates/" + NO_ID, None, "MA", 200),
    ("GET", "/configurations", None, "UMA", 200),
    ("GET", "/accounts", None, "MA", 200),
    ("GET", "/accounts/111122223333", None, "MA", 404),
    ("GET", "/accounts/111122223333/explain", None, "MA", 404),
    ("GET", "/accounts/unregistered", None, "A", 200),
    ("POST", "/accounts", {"awsAccountId": "111122223333"}, "A", 409),
    ("POST", "/accounts/111122223333/eject", None, "A", 404),
    ("POST", "/accounts/111122223333/retryCleanup", None, "A", 404),
    ("POST", "/accounts/111122223333/quarantine", {"reason": "of the matrix"}, "A", 404),
    ("GET", "/blueprints", None, "MA", 200),
    ("GET", "/blueprints/" + NO_ID, None, "MA", 404),
    ("GET", "/blueprints/stacksets", None, "MA", 200),
    ("POST", "/blueprints", BLUEPRINT, "A", 201),
    ("PUT", "/blueprints/" + NO_ID, {}, "A", 404),
    ("DELETE", "/blueprints/" + NO_ID, None, "A", 404),
    ("GET", "/reports/costs?month=2026-10", None, "MA", 200),
]
ROLES = [("User", USER, "U"), ("Manager", MANAGER, "M"), ("Admin", ADMIN, "A")]


@pytest.fixture(scope="module")
def pool(make_for_module):
    folder = make_for_module.folder
    return Pool(make_for_module.server(args=["--dev"], **leases.env(folder)))


def test_the_matrix_has_every_route_but_sign_in(pool):
    described = pool.server.admin().request("GET", "/v1/openapi.json").json["paths"]
    routes = {(method.upper(), path) for path, methods in described.items() for method in methods
              if path.startswith("/api/") and not path.startswith("/api/auth/")}
    tested = set()
    for method, path, *_ in MATRIX:
        plain = "/api" + path.partition("?")[0].replace("{own}", "{leaseId}").replace("111122223333", "{awsAccountId}")
        resource = plain.split("/")[2]
        plain = plain.replace(NO_ID, {"leaseTemplates": "{leaseTemplateId}", "blueprints": "{blueprintId}"}.get(resource, ""))
        tested.add((method, plain))
    assert routes == tested


def label(value):
    return value if isinstance(value, str) else ""


@pytest.mark.parametrize("role,email,letter", ROLES, ids=[r[0] for r in ROLES])
@pytest.mark.parametrize("method,path,body,roles,status", MATRIX, ids=["%s %s" % (m[0], m[1]) for m in MATRIX])
def test_the_matrix(pool, method, path, body, roles, status, role, email, letter):
    caller = pool.by_role[role]
    path = path.format(own=nowhere(email), email=email)
    if letter in roles:
        assert caller.call(method, path, body).status == status
    else:
        assert "role" in caller.errors(method, path, body, 403)[0]["message"]


@pytest.mark.parametrize("method,path,body,roles,status", MATRIX, ids=["%s %s" % (m[0], m[1]) for m in MATRIX])
def test_nobody_without_a_role_does_anything(pool, method, path, body, roles, status):
    nobody = Api(pool.server, USER)
    assert nobody.call(method, path.format(own=nowhere(USER), email=USER), body).status in (400, 403)


@pytest.mark.parametrize("method,path,body,roles,status", MATRIX, ids=["%s %s" % (m[0], m[1]) for m in MATRIX])
def test_nobody_without_a_token_does_anything(pool, method, path, body, roles, status):
    reply = pool.server.client().request(method, "/api" + path.format(own=nowhere(USER), email=USER), body=body)
    assert reply.status == 401 and reply.json["status"] == "fail", reply


@pytest.mark.parametrize(
    "what,header,status",
    [
        ("not a bearer", "Basic dTpw", 403),
        ("another secret", "Bearer " + jwt.token(ADMIN, "Admin", secret="x" * 32), 401),
        ("expired", "Bearer " + jwt.token(ADMIN, "Admin", lives=-60), 401),
        ("no signature", "Bearer " + jwt.token(ADMIN, "Admin").rsplit(".", 1)[0] + ".", 401),
        ("no algorithm", "Bearer " + jwt.sign({"user": {"email": ADMIN, "roles": ["Admin"]}}, header={"alg": "none"}), 401),
        ("no user", "Bearer " + jwt.sign({"iat": 1, "exp": int(time.time()) + 7 * 86400}), 400),
    ],
)
def test_bad_tokens(pool, what, header, status):
    reply = pool.server.client({"Authorization": header}).get("/api/leases")
    assert reply.status == status, reply
    assert reply.json["data"]["errors"][0]["message"], reply


# Extra rules.


def test_a_user_lists_only_his_own(pool):
    assert pool.user.errors("GET", "/leases", status=403)
    assert pool.user.errors("GET", "/leases?userEmail=" + MANAGER, status=403)
    assert pool.user.data("GET", "/leases?userEmail=" + USER)["nextPageIdentifier"] is None
    assert pool.manager.call("GET", "/leases").status == 200


def test_a_user_with_another_role_beside_it_is_not_only_a_user(pool):
    both = Api(pool.server, USER, "User", "Manager")
    assert both.call("GET", "/leases").status == 200


def test_own_email_compares_without_case(pool):
    shouting = Api(pool.server, USER.upper(), "User")
    assert shouting.call("GET", "/leases?userEmail=" + USER).status == 200
    assert shouting.call("GET", "/leases/" + nowhere(USER)).status == 404
    assert pool.user.call("GET", "/leases/" + nowhere(USER.upper())).status == 404


def test_roles_are_exact_words(pool):
    assert Api(pool.server, ADMIN, "admin").call("GET", "/accounts").status in (400, 403)


def test_a_user_asks_only_for_himself(pool):
    template = pool.template()
    body = {"leaseTemplateUuid": template["uuid"], "userEmail": MANAGER}
    assert pool.user.errors("POST", "/leases", body, 403)


def test_a_user_who_names_himself_does_not_skip_the_approval(pool):
    person = pool.person()
    template = pool.template()
    body = {"leaseTemplateUuid": template["uuid"], "userEmail": person.email.upper()}
    assert person.data("POST", "/leases", body, 201)["status"] == "PendingApproval"


def test_a_user_reads_no_lease_of_another(pool):
    owner = pool.person()
    lease = pool.pending(owner)
    assert pool.user.errors("GET", "/leases/" + lease["leaseId"], status=403)
    assert owner.data("GET", "/leases/" + lease["leaseId"])["uuid"] == lease["uuid"]


def test_a_lease_id_with_another_owner_opens_nothing(pool):
    owner, thief = pool.person(), pool.person()
    lease = pool.pending(owner)
    assert thief.errors("GET", "/leases/" + lease_id(thief.email, lease["uuid"]), status=404)
    assert thief.errors("POST", "/leases/%s/terminate" % lease_id(thief.email, lease["uuid"]), status=404)


def test_private_templates_are_not_there_for_users(pool):
    template = pool.template(visibility="PRIVATE")
    path = "/leaseTemplates/" + template["uuid"]
    listed = [t["uuid"] for t in pool.user.everything("/leaseTemplates", 5)]
    assert template["uuid"] not in listed
    assert template["uuid"] in [t["uuid"] for t in pool.manager.everything("/leaseTemplates", 5)]
    assert pool.user.errors("GET", path, status=404)
    assert pool.user.errors("POST", "/leases", {"leaseTemplateUuid": template["uuid"]}, 404)
    assert pool.manager.data("GET", path)["visibility"] == "PRIVATE"


def test_the_owner_ends_his_own_lease_and_no_other(pool):
    owner, other = pool.person(), pool.person()
    lease = pool.active(owner)
    path = "/leases/%s/terminate" % lease["leaseId"]
    assert other.errors("POST", path, status=403)
    assert owner.data("POST", path) is None
    ended = pool.until_status(lease, "ManuallyTerminated")
    assert ended["terminatedBy"].lower() == owner.email
    assert owner.errors("POST", path, status=409)


def test_the_owner_withdraws_and_nobody_else(pool):
    owner = pool.person()
    lease = pool.pending(owner)
    path = "/leases/%s/withdraw" % lease["leaseId"]
    assert pool.person().errors("POST", path, status=403)
    assert pool.manager.errors("POST", path, status=403)
    assert owner.errors("POST", "/leases/%s/terminate" % lease["leaseId"], status=409)
    assert owner.data("POST", path)["leaseId"] == lease["leaseId"]
    assert owner.errors("POST", path, status=409)


# Maintenance.


def set_maintenance(pool, is_on):
    operator = pool.server.client({"Authorization": "Bearer " + ADMIN_TOKEN})
    now = operator.get("/v1/ops/policy")
    text = re.sub(r"maintenanceMode: *\w+", "maintenanceMode: " + ("true" if is_on else "false"), now.json["text"])
    reply = operator.request("PUT", "/v1/ops/policy", body=text.encode(), headers={"If-Match": now.header("etag")})
    assert reply.status == 200, reply


def test_in_maintenance_only_admins_come_in_and_the_configuration_stays_readable(make):
    pool = Pool(make.server(args=["--dev"], **leases.env(make.folder)))
    set_maintenance(pool, True)
    for method, path, body, roles, status in MATRIX:
        for role, email, letter in ROLES:
            reply = pool.by_role[role].call(method, path.format(own=nowhere(email), email=email), body)
            is_open = letter == "A" or path == "/configurations"
            assert reply.status == (status if is_open else 403), (role, method, path, reply)
    assert pool.user.data("GET", "/configurations")["maintenanceMode"] is True
    set_maintenance(pool, False)
    assert pool.user.call("GET", "/leaseTemplates").status == 200
