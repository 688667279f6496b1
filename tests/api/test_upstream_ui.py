# SPDX-License-Identifier: Apache-2.0
"""The original's web pages (1.2) and the programs in the field, as clients: their requests to the letter, and every member of the answers that they
read. docs/upstream-clients.md has the same as tables. The pages themselves are not run here."""

import base64
import datetime
import json
import math
import re
import time
import urllib.parse

import pytest

from lib import jwt, leases
from lib.http import Client
from lib.leases import ADMIN, MANAGER, USER, Pool
from lib.ops import Ops
from lib.wait import until

PORTAL = "https://d-0123456789.awsapps.com/start"
LISTED = 2010  # accounts: more than a page has
POLICY = "maintenanceMode: false\nleases: {maxLeasesPerUser: 20, allowSelfApproval: true}\nauth: {awsAccessPortalUrl: '%s'}\nisbManagedRegions: [us-east-1, eu-west-1]\n" % PORTAL
REPORTING = "costReportGroups: [research, teaching]\nrequireCostReportGroup: false\n"


# What is expected of an answer. A shape is a check of one value; a dict of shapes, for an object that may have other members too; a list with one
# shape, for a list of such; Maybe(shape), for a member that may be missing. A null is never as good as a missing member: the pages call methods of
# what is not undefined.


class Maybe:
    def __init__(self, shape):
        self.shape = shape


class Exactly(dict):
    """An object without other members: the pages send it back, and our bodies are strict."""


def text(v):
    return isinstance(v, str)


def name(v):
    return isinstance(v, str) and v != ""


def flag(v):
    return isinstance(v, bool)


def number(v):
    return isinstance(v, (int, float)) and not isinstance(v, bool) and math.isfinite(v)


def whole(v):
    return isinstance(v, int) and not isinstance(v, bool)


def moment(v):
    return isinstance(v, str) and re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,3})?Z", v) is not None


def account_id(v):
    return isinstance(v, str) and re.fullmatch(r"\d{12}", v) is not None


def uuid_text(v):
    return isinstance(v, str) and re.fullmatch(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", v) is not None


def email(v):
    return isinstance(v, str) and re.fullmatch(r"[^@\s]+@[^@\s]+", v) is not None


def or_null(shape):
    return lambda v: v is None or shape(v)


def one_of(*words):
    return lambda v: v in words


def approver(v):
    return v == "AUTO_APPROVED" or email(v)


def wrong(value, shape, where="data"):
    """All that is not as expected, as texts."""
    if isinstance(shape, dict):
        if not isinstance(value, dict):
            return ["%s is no object: %r" % (where, value)]
        found = []
        for member, part in shape.items():
            inner = part.shape if isinstance(part, Maybe) else part
            if member in value:
                found += wrong(value[member], inner, "%s.%s" % (where, member))
            elif not isinstance(part, Maybe):
                found.append("%s.%s is missing" % (where, member))
        if isinstance(shape, Exactly):
            found += ["%s.%s is not expected" % (where, m) for m in value if m not in shape]
        return found
    if isinstance(shape, list):
        if not isinstance(value, list):
            return ["%s is no list: %r" % (where, value)]
        return [w for i, v in enumerate(value) for w in wrong(v, shape[0], "%s.%d" % (where, i))]
    return [] if shape(value) else ["%s is not a %s: %r" % (where, getattr(shape, "__name__", "value"), value)]


def fits(value, shape):
    assert wrong(value, shape) == []
    return value


META = {"createdTime": moment, "lastEditTime": moment, "schemaVersion": whole}
ACTION = one_of("ALERT", "FREEZE_ACCOUNT")
BUDGET_THRESHOLDS = [Exactly({"dollarsSpent": number, "action": ACTION})]
DURATION_THRESHOLDS = [Exactly({"hoursRemaining": number, "action": ACTION})]

WISH = {
    "leaseId": name, "userEmail": email, "uuid": uuid_text, "originalLeaseTemplateUuid": uuid_text, "originalLeaseTemplateName": name,
    "comments": Maybe(text), "createdBy": Maybe(email), "blueprintId": Maybe(or_null(uuid_text)), "blueprintName": Maybe(or_null(text)),
    "maxSpend": Maybe(number), "budgetThresholds": Maybe(BUDGET_THRESHOLDS), "leaseDurationInHours": Maybe(number),
    "durationThresholds": Maybe(DURATION_THRESHOLDS), "costReportGroup": Maybe(name), "meta": META,
}
COURSE = {"awsAccountId": account_id, "approvedBy": approver, "startDate": moment, "lastCheckedDate": moment, "expirationDate": Maybe(moment),
          "totalCostAccrued": number}
PENDING = {**WISH, "status": one_of("PendingApproval")}
DENIED = {**WISH, "status": one_of("ApprovalDenied"), "ttl": whole}
MONITORED = {**WISH, **COURSE, "status": one_of("Active", "Frozen", "Provisioning")}
ENDED = {**WISH, **COURSE, "endDate": moment, "ttl": whole,
         "status": one_of("Expired", "BudgetExceeded", "ManuallyTerminated", "AccountQuarantined", "Ejected", "ProvisioningFailed")}
LEASES = {"PendingApproval": PENDING, "ApprovalDenied": DENIED, "Active": MONITORED, "Frozen": MONITORED, "Provisioning": MONITORED}

TEMPLATE = Exactly({
    "uuid": uuid_text, "name": name, "description": Maybe(text), "requiresApproval": flag, "createdBy": email, "visibility": one_of("PUBLIC", "PRIVATE"),
    "costReportGroup": Maybe(name), "blueprintId": Maybe(or_null(uuid_text)), "blueprintName": Maybe(or_null(text)), "maxSpend": Maybe(number),
    "budgetThresholds": Maybe(BUDGET_THRESHOLDS), "leaseDurationInHours": Maybe(number), "durationThresholds": Maybe(DURATION_THRESHOLDS),
    "meta": Exactly(META),
})
ACCOUNT = {
    "awsAccountId": account_id, "name": Maybe(text), "email": Maybe(email), "status": one_of("Available", "Active", "CleanUp", "Quarantine", "Frozen"),
    "driftAtLastScan": Maybe(flag), "meta": META,
    "cleanupExecutionContext": Maybe({"stateMachineExecutionArn": name, "stateMachineExecutionStartTime": moment}),
}
UNREGISTERED = {"Id": account_id, "Email": email, "Name": text}
CONFIGURATION = {
    "termsOfService": text, "maintenanceMode": flag,
    "leases": {"requireMaxBudget": flag, "maxBudget": number, "requireMaxDuration": flag, "maxDurationHours": number, "maxLeasesPerUser": number, "ttl": number},
    "cleanup": {"numberOfFailedAttemptsToCancelCleanup": number, "waitBeforeRetryFailedAttemptSeconds": number,
                "numberOfSuccessfulAttemptsToFinishCleanup": number, "waitBeforeRerunSuccessfulAttemptSeconds": number},
    "auth": {"awsAccessPortalUrl": text, "webAppUrl": text}, "isbManagedRegions": [name], "costReportGroups": [name], "requireCostReportGroup": flag,
}
BLUEPRINT = {
    "blueprintId": uuid_text, "name": name, "tags": lambda v: isinstance(v, dict) and all(map(text, v.values())), "createdBy": email,
    "deploymentTimeoutMinutes": number, "regionConcurrencyType": one_of("SEQUENTIAL", "PARALLEL"), "meta": META,
    "totalHealthMetrics": {"totalDeploymentCount": number, "totalSuccessfulCount": number, "lastDeploymentAt": Maybe(moment)},
}
STACK_SET = {
    "blueprintId": uuid_text, "stackSetId": name, "administrationRoleArn": text, "executionRoleName": text, "regions": [name], "deploymentOrder": number,
    "maxConcurrentPercentage": number, "failureTolerancePercentage": number, "meta": META,
    "concurrencyMode": one_of("STRICT_FAILURE_TOLERANCE", "SOFT_FAILURE_TOLERANCE"),
    "healthMetrics": {"deploymentCount": number, "successfulDeploymentCount": number, "consecutiveFailures": number},
}
DEPLOYMENT = {
    "operationId": name, "leaseId": name, "accountId": account_id, "status": one_of("RUNNING", "SUCCEEDED", "FAILED", "QUEUED"),
    "deploymentStartedAt": moment, "deploymentCompletedAt": Maybe(moment), "duration": Maybe(number), "errorType": Maybe(text), "errorMessage": Maybe(text),
}
BLUEPRINT_WHOLE = {"blueprint": BLUEPRINT, "stackSets": [STACK_SET], "recentDeployments": Maybe([DEPLOYMENT])}
SESSION = {"authenticated": flag, "session": {"user": {"email": email, "displayName": Maybe(name), "roles": [name]}, "iat": whole, "exp": whole}}


def fit_lease(lease):
    return fits(lease, LEASES.get(lease.get("status"), ENDED))


# The clients.


class Shown(Exception):
    """What the pages show when a call is refused."""


class Ui:
    """The pages of one who is signed in: how they call, and what they make of the answer."""

    def __init__(self, server, token):
        origin = server.url
        self.client = Client(server.address)
        self.headers = {"Authorization": "Bearer " + token, "Content-Type": "application/json", "Accept": "*/*", "Accept-Encoding": "gzip, deflate, br",
                        "Accept-Language": "en-GB,en;q=0.9", "Origin": origin, "Referer": origin + "/", "Sec-Fetch-Mode": "cors",
                        "Sec-Fetch-Site": "same-origin", "Sec-Fetch-Dest": "empty", "User-Agent": "Mozilla/5.0"}

    def call(self, method, path, body=None):
        data = None if body is None else json.dumps(body, separators=(",", ":")).encode()
        reply = self.client.request(method, "/api" + path, headers=self.headers, body=data)
        assert reply.header("content-type") == "application/json", reply
        if not 200 <= reply.status < 300:
            first = ((reply.json.get("data") or {}).get("errors") or [{}])[0]
            if first.get("field") and first.get("message"):
                raise Shown("%d %s: %s" % (reply.status, first["field"], first["message"]))
            raise Shown("%d %s" % (reply.status, first.get("message") or "HTTP error"))
        assert reply.json["status"] == "success", reply
        return reply.json.get("data")

    def get(self, path):
        return self.call("GET", path)

    def post(self, path, body=None):
        return self.call("POST", path, body)

    def all(self, path, query="", size=None):
        """The loop of the three lists: the token goes back as it is, and only a null ends it."""
        items, token, calls = [], None, 0
        while True:
            first = [] if size is None else ["pageSize=%d" % size]
            parts = (["pageIdentifier=" + token] if token else first) + ([query] if query else [])
            data = self.get(path + ("?" + "&".join(parts) if parts else ""))
            items += data["result"]
            calls += 1
            assert calls < 100, "a list without end"
            assert "nextPageIdentifier" in data, "undefined is not null: the pages would ask for ever"
            if data["nextPageIdentifier"] is None:
                return items, calls
            token = data["nextPageIdentifier"]
            assert re.fullmatch(r"[A-Za-z0-9_-]+", token), "not safe in a URL without encoding"

    def leases(self, owner=None):
        return self.all("/leases", "userEmail=" + encoded(owner) if owner else "")[0]

    def unregistered(self):
        items, token, calls = [], None, 0
        while True:
            data = self.get("/accounts/unregistered" + ("?pageIdentifier=" + encoded(token) if token else ""))
            items += data["result"]
            calls += 1
            token = data.get("nextPageIdentifier")
            if token is None:
                return items, calls
            assert calls < 100


def encoded(value):
    """What encodeURIComponent makes of it."""
    return urllib.parse.quote(value, safe="!'()*~")


class IsbClient:
    """@co-cddo/isb-client: makes its own token of the shared secret; takes an answer without data for a failure."""

    def __init__(self, server):
        now = int(time.time())
        token = jwt.sign({"user": {"email": "service@example.com", "roles": ["Admin"]}, "iat": now, "exp": now + 3600})
        self.client = Client(server.address, {"Authorization": "Bearer " + token, "Content-Type": "application/json", "X-Correlation-Id": "c-1"}, timeout=5.0)

    def fetch(self, kind, key):
        reply = self.client.get("/api/%s/%s" % (kind, encoded(key)))
        got = reply.json if reply.status < 400 else {}
        return got["data"] if got.get("status") == "success" and got.get("data") else None

    def mutate(self, path, body):
        reply = self.client.post("/api" + path, body=json.dumps(body, separators=(",", ":")).encode())
        got = reply.json
        return got["data"] if 200 <= reply.status < 300 and got["status"] == "success" and got.get("data") else None

    def accounts(self):
        """It sends the token back under the name that it came with."""
        items, token, calls = [], None, 0
        while True:
            reply = self.client.get("/api/accounts" + ("?" + urllib.parse.urlencode({"nextPageIdentifier": token}) if token else ""))
            assert reply.status == 200, reply
            items += reply.json["data"]["result"]
            calls += 1
            token = reply.json["data"].get("nextPageIdentifier")
            if not token or calls == 100:
                return items, calls


class Script:
    """The command line tools of -utils: urllib, a body only where there is something in it."""

    def __init__(self, server, who="admin@innovation-sandbox.local"):
        now = int(time.time())
        token = jwt.sign({"user": {"email": who, "roles": ["Admin"]}, "iat": now, "exp": now + 3600})
        self.client = Client(server.address, {"Content-Type": "application/json", "Authorization": "Bearer " + token, "Accept-Encoding": "identity",
                                              "User-Agent": "Python-urllib/3.12", "Connection": "close"})

    def call(self, method, path, body=None, **query):
        tail = "&".join("%s=%s" % (k, urllib.parse.quote(str(v))) for k, v in query.items() if v is not None)
        reply = self.client.request(method, "/api" + path + ("?" + tail if tail else ""), body=json.dumps(body).encode() if body else None)
        return reply.status, reply.json

    def all(self, path, **query):
        items, token = [], None
        while True:
            status, body = self.call("GET", path, pageIdentifier=token, **query)
            assert status == 200, body
            items += body["data"]["result"]
            token = body["data"].get("nextPageIdentifier")
            if not token:
                return items


class Site(Pool):
    """A server and the pages of one person of each role."""

    def __init__(self, server):
        super().__init__(server)
        self.pages = {role: self.ui(who, role) for who, role in [(ADMIN, "Admin"), (MANAGER, "Manager"), (USER, "User")]}

    def ui(self, who, *roles):
        return Ui(self.server, jwt.token(who, *roles, displayName="Somebody"))


def configure(server, **documents):
    ops = Ops(server)
    for path, document in documents.items():
        body = {"document": document, "version": ops.read(path)["version"]}
        assert ops.request("PUT", "/v1/ops/" + path, body=body).status == 200


@pytest.fixture(scope="module")
def site(make_for_module):
    env = leases.env(make_for_module.folder, LEASEHOLD_SIM_ACCOUNTS=str(LISTED), LEASEHOLD_SIM_ENTRY_ACCOUNTS="45")
    site = Site(make_for_module.server(args=["--dev"], **env))
    configure(site.server, policy=POLICY, reporting=REPORTING)
    until(lambda: site.pages["User"].get("/configurations")["costReportGroups"], "the configuration is in force")
    return site


def template_of(site, **fields):
    return site.template(budgetThresholds=[{"dollarsSpent": 20, "action": "ALERT"}, {"dollarsSpent": 30.5, "action": "FREEZE_ACCOUNT"}],
                         durationThresholds=[{"hoursRemaining": 2, "action": "ALERT"}], **fields)


# Signing in, and what every page asks for.


def test_the_browser_is_led_to_a_token_and_out_again(make):
    server = make.server(args=["--dev"], bare=True, LEASEHOLD_SIM_SANDBOXES="3")
    printed = dict(re.findall(r"^  (\S+@example.com) +password (\S+)$", server.says("leasehold demo"), re.M))
    client = server.client()
    assert client.get("/api/auth/login/status", headers={"Authorization": "Bearer stale", "Content-Type": "application/json"}).json["authenticated"] is False
    sent = client.get("/api/auth/login")
    assert sent.status == 302
    page = client.get(sent.header("location"))
    form = re.search(rb'name="form" value="([^"]+)"', page.body).group(1).decode()
    fields = urllib.parse.urlencode({"form": form, "email": MANAGER, "password": printed[MANAGER]}).encode()
    cookie = page.header("set-cookie").partition(";")[0]
    back = client.post("/api/auth/signin", headers={"Cookie": cookie, "Content-Type": "application/x-www-form-urlencoded"}, body=fields)
    assert back.status == 302, back
    query = urllib.parse.parse_qs(urllib.parse.urlparse(back.header("location")).query)
    token = query["token"][0]
    state = client.get("/api/auth/login/status", headers={"Authorization": "Bearer " + token, "Content-Type": "application/json"})
    assert state.status == 200
    user = fits(state.json, SESSION)["session"]["user"]
    assert user["email"] == MANAGER and user["roles"] == ["Manager"] and user["displayName"]
    out = client.get("/api/auth/logout")
    assert out.status == 302 and out.header("location")


@pytest.mark.parametrize("role", ["Admin", "Manager", "User"])
def test_every_page_and_home(site, role):
    ui = site.pages[role]
    person = {"Admin": ADMIN, "Manager": MANAGER, "User": USER}[role]
    assert fits(ui.get("/configurations"), CONFIGURATION)["auth"]["awsAccessPortalUrl"] == PORTAL
    ui.post("/leases", {"leaseTemplateUuid": template_of(site)["uuid"], "comments": ""})
    mine = ui.leases(person)
    assert mine and all(fit_lease(lease)["userEmail"] == person for lease in mine)
    if role != "User":
        assert any(lease["status"] == "PendingApproval" for lease in map(fit_lease, ui.leases()))
    if role == "Admin":
        fits(ui.all("/accounts")[0], [ACCOUNT])


def test_an_owner_with_a_plus_in_his_address_finds_his_leases(make):
    people = make.folder / "people"
    people.write_text(json.dumps({"email": "ann+lab@example.com", "roles": ["User"]}) + "\n")
    people.chmod(0o600)
    server = make.server(args=["--dev"], LEASEHOLD_JWT_SECRET=jwt.SECRET, LEASEHOLD_USERS_FILE=str(people))
    ui, manager = (Ui(server, jwt.token(who, role)) for who, role in [("ann+lab@example.com", "User"), (MANAGER, "Manager")])
    template = manager.post("/leaseTemplates", {"name": "t", "requiresApproval": True, "maxSpend": 1, "leaseDurationInHours": 1})
    ui.post("/leases", {"leaseTemplateUuid": template["uuid"], "comments": ""})
    lease = fit_lease(ui.leases("ann+lab@example.com")[0])
    assert ui.get("/leases/" + lease["leaseId"])["uuid"] == lease["uuid"]


def test_in_maintenance_a_person_is_told_so_and_an_admin_goes_on(make):
    site = Site(make.server(args=["--dev"], **leases.env(make.folder)))
    configure(site.server, policy="maintenanceMode: true\n")
    until(lambda: site.pages["User"].get("/configurations")["maintenanceMode"], "maintenance is known")
    with pytest.raises(Shown, match="^403 .*maintenance"):
        site.pages["User"].leases(USER)
    assert site.pages["Admin"].leases() == []


# Request and assign.


def test_request_lease(site):
    who = site.person().email
    ui = site.ui(who, "User")
    template = template_of(site, requiresApproval=False, description="for all")
    assert template["uuid"] in [t["uuid"] for t in fits(ui.all("/leaseTemplates")[0], [TEMPLATE])]
    fits(ui.get("/leaseTemplates/" + template["uuid"]), TEMPLATE)
    ui.post("/leases", {"leaseTemplateUuid": template["uuid"], "comments": "for a course"})
    (lease,) = ui.leases(who)
    assert fit_lease(lease)["status"] in ("Provisioning", "Active") and lease["approvedBy"] == "AUTO_APPROVED" and lease["comments"] == "for a course"
    lease = fit_lease(site.until_status(lease, "Active"))
    assert moment(lease["expirationDate"])


def test_assign_lease(site):
    person = site.person()
    template = template_of(site, visibility="PRIVATE")
    site.pages["Manager"].post("/leases", {"leaseTemplateUuid": template["uuid"], "comments": "", "userEmail": person.email})
    (lease,) = site.pages["Manager"].leases(person.email)
    assert fit_lease(lease)["createdBy"] == MANAGER and lease["status"] in ("Provisioning", "Active")


# Approvals.


def test_approvals_in_a_batch_and_one_by_one(site):
    ui = site.pages["Manager"]
    asked = [site.pending(site.person(), budgetThresholds=[], durationThresholds=[]) for _ in range(4)]
    shown = {lease["uuid"]: lease for lease in ui.leases() if lease["status"] == "PendingApproval"}
    for lease in asked[:2]:
        ui.post("/leases/%s/review" % fits(shown[lease["uuid"]], PENDING)["leaseId"], {"action": "Approve"})
    ui.post("/leases/%s/review" % asked[2]["leaseId"], {"action": "Deny"})
    fits(ui.get("/leases/" + asked[3]["leaseId"]), PENDING)
    ui.post("/leases/%s/review" % asked[3]["leaseId"], {"action": "Approve"})
    states = {lease["uuid"]: fit_lease(lease)["status"] for lease in ui.leases()}
    assert [states[a["uuid"]] in ("Provisioning", "Active") for a in asked] == [True, True, False, True]
    assert states[asked[2]["uuid"]] == "ApprovalDenied"
    with pytest.raises(Shown, match="^409 "):
        ui.post("/leases/%s/review" % asked[2]["leaseId"], {"action": "Approve"})


# Leases.


def test_leases_are_frozen_unfrozen_and_terminated(site):
    ui = site.pages["Manager"]
    lease = site.active(site.person())
    for act, status in (("freeze", "Frozen"), ("unfreeze", "Active"), ("terminate", "ManuallyTerminated")):
        ui.post("/leases/%s/%s" % (lease["leaseId"], act))
        (found,) = [one for one in ui.leases() if one["uuid"] == lease["uuid"]]
        assert fit_lease(found)["status"] == status
        assert fit_lease(ui.get("/leases/" + lease["leaseId"]))["status"] == status
    fits(ui.get("/leases/" + lease["leaseId"]), ENDED)
    with pytest.raises(Shown, match="^409 "):
        ui.post("/leases/%s/freeze" % lease["leaseId"])


def soon(hours):
    """What the pages' date field makes: milliseconds, Z."""
    at = datetime.datetime.now(datetime.timezone.utc).replace(second=0, microsecond=0) + datetime.timedelta(hours=hours)
    return at.strftime("%Y-%m-%dT%H:%M:%S.000Z")


def test_a_lease_is_edited(site):
    ui = site.pages["Manager"]
    path = "/leases/" + site.active(site.person())["leaseId"]
    at = soon(20)
    budget = {"budgetThresholds": [{"dollarsSpent": 12.5, "action": "ALERT"}], "maxSpend": 45}
    duration = {"durationThresholds": [{"hoursRemaining": 3, "action": "FREEZE_ACCOUNT"}], "expirationDate": at}
    for body in (budget, duration, {"costReportGroup": "research"}):
        ui.call("PATCH", path, body)
        got = fits(ui.get(path), MONITORED)
        for member, value in body.items():
            if member == "expirationDate":
                assert got[member].rstrip("Z").partition(".")[0] == at.partition(".")[0]
            else:
                assert got[member] == value
    ui.call("PATCH", path, {"costReportGroup": None})
    ui.call("PATCH", path, {"budgetThresholds": [], "maxSpend": 45})
    got = fits(ui.get(path), MONITORED)
    assert "costReportGroup" not in got and got.get("budgetThresholds", []) == []
    for body in ({"budgetThresholds": [], "maxSpend": None}, {"durationThresholds": [], "expirationDate": None}):
        with pytest.raises(Shown, match="^400 (maxSpend|expirationDate|leaseDurationInHours): "):  # the limits are required here
            ui.call("PATCH", path, body)


def test_limits_are_cleared_where_they_are_not_required(make):
    site = Site(make.server(args=["--dev"], **leases.env(make.folder)))
    configure(site.server, policy="maintenanceMode: false\nleases: {requireMaxBudget: false, requireMaxDuration: false}\n")
    ui = site.pages["Manager"]
    until(lambda: not ui.get("/configurations")["leases"]["requireMaxBudget"], "the configuration is in force")
    path = "/leases/" + site.active(site.person())["leaseId"]
    ui.call("PATCH", path, {"budgetThresholds": [], "maxSpend": None})
    ui.call("PATCH", path, {"durationThresholds": [], "expirationDate": None})
    got = fits(ui.get(path), MONITORED)
    assert "maxSpend" not in got and "expirationDate" not in got
    template = ui.post("/leaseTemplates", {"name": "no limits", "description": "", "requiresApproval": True, "visibility": "PRIVATE",
                                           "budgetThresholds": [], "durationThresholds": []})
    got = fits(ui.get("/leaseTemplates/" + template["uuid"]), TEMPLATE)
    assert "maxSpend" not in got and "leaseDurationInHours" not in got, "the pages format whatever is not undefined"


# Templates.

WIZARD = {"name": "from the wizard", "description": "", "requiresApproval": True, "visibility": "PRIVATE", "maxSpend": 25, "budgetThresholds": [],
          "leaseDurationInHours": 48, "durationThresholds": []}


def sent_back(template, without=("uuid", "blueprintName"), **changes):
    """What the pages PUT: all that they were given, but for some members; what is undefined is not sent."""
    body = {**{k: v for k, v in template.items() if k not in without}, **changes}
    return {k: v for k, v in body.items() if v is not ...}


def test_a_template_is_made_edited_on_each_page_and_deleted(site):
    ui = site.pages["Manager"]
    made = fits(ui.post("/leaseTemplates", {**WIZARD, "costReportGroup": "teaching", "blueprintId": None}), TEMPLATE)
    path = "/leaseTemplates/" + made["uuid"]
    assert made["blueprintName"] is None and made["costReportGroup"] == "teaching"
    for changes in (
        {"name": "edited", "description": "all new", "requiresApproval": False, "visibility": "PUBLIC"},
        {"maxSpend": 30, "budgetThresholds": [{"dollarsSpent": 10, "action": "ALERT"}]},
        {"leaseDurationInHours": 24, "durationThresholds": [{"hoursRemaining": 1, "action": "FREEZE_ACCOUNT"}]},
        {"costReportGroup": ...},
        {"blueprintId": None},
    ):
        ui.call("PUT", path, sent_back(fits(ui.get(path), TEMPLATE), **changes))
        got = fits(ui.get(path), TEMPLATE)
        assert all(got.get(k, ...) == v for k, v in changes.items()), got
    assert got["blueprintName"] is None and got["createdBy"] == MANAGER and got["meta"]["createdTime"] == made["meta"]["createdTime"]
    assert got["name"] == "edited", "an edit on one page lost what another had set"
    assert ui.call("DELETE", path) is None
    assert made["uuid"] not in [t["uuid"] for t in ui.all("/leaseTemplates")[0]]


def test_pages_of_before_blueprints_send_a_template_back_whole(site):
    ui = site.pages["Manager"]
    made = ui.post("/leaseTemplates", {**WIZARD, "name": "of 1.1"})
    got = ui.call("PUT", "/leaseTemplates/" + made["uuid"], sent_back(made, without=("uuid",), maxSpend=30))
    assert got["maxSpend"] == 30 and got["blueprintName"] is None
    forged = sent_back(made, without=("uuid",), blueprintName="forged")
    assert ui.call("PUT", "/leaseTemplates/" + made["uuid"], forged)["blueprintName"] is None


# Accounts.


def test_accounts_are_added_cleaned_and_ejected(site):
    ui = site.pages["Admin"]
    offered, calls = ui.unregistered()
    assert calls > 1 and len({a["Id"] for a in fits(offered, [UNREGISTERED])}) == len(offered) > 20
    ids = [a["Id"] for a in offered[-2:]]
    for one in ids:
        ui.post("/accounts", {"awsAccountId": one})
    assert not set(ids) & {a["Id"] for a in ui.unregistered()[0]}
    listed = {a["awsAccountId"]: a for a in fits(ui.all("/accounts")[0], [ACCOUNT])}
    assert all(listed[one]["status"] == "CleanUp" and listed[one]["name"] for one in ids)
    with pytest.raises(Shown, match="^409 "):  # while one runs
        until(lambda: ui.post("/accounts/%s/retryCleanup" % ids[0]), "the cleanup has begun")
    started = until(lambda: ui.get("/accounts/" + ids[0]).get("cleanupExecutionContext"), "the cleanup has begun")
    assert moment(started["stateMachineExecutionStartTime"])
    free = next(a["awsAccountId"] for a in listed.values() if a["status"] == "Available")
    ui.post("/accounts/%s/eject" % free)
    assert free not in [a["awsAccountId"] for a in ui.all("/accounts")[0]]
    with pytest.raises(Shown, match="^409 "):
        ui.post("/accounts/%s/eject" % ids[0])


# Blueprints.


def register(ui, called, **more):
    """The request of the wizard's last step; without tags it has none."""
    return fits(ui.post("/blueprints", {"name": called, "stackSetId": "network:0f3a", "regions": ["us-east-1", "eu-west-1"], **more,
                                        "deploymentTimeoutMinutes": 30, "regionConcurrencyType": "SEQUENTIAL", "maxConcurrentPercentage": 100,
                                        "failureTolerancePercentage": 0, "concurrencyMode": "STRICT_FAILURE_TOLERANCE"}), BLUEPRINT)


def test_a_blueprint_is_registered_viewed_edited_and_unregistered(site):
    ui = site.pages["Admin"]
    made = register(ui, "with-tags", tags={"team": "a", "empty": ""})
    path = "/blueprints/" + made["blueprintId"]
    fits(ui.get("/blueprints"), {"blueprints": [BLUEPRINT_WHOLE]})
    assert fits(ui.get(path), BLUEPRINT_WHOLE)["blueprint"]["tags"] == {"team": "a", "empty": ""}
    ui.call("PUT", path, {"name": "renamed", "tags": {}})
    ui.call("PUT", path, {"deploymentTimeoutMinutes": 60, "regionConcurrencyType": "PARALLEL", "maxConcurrentPercentage": 50,
                          "failureTolerancePercentage": 10, "concurrencyMode": "SOFT_FAILURE_TOLERANCE"})
    got = fits(site.pages["Manager"].get(path), BLUEPRINT_WHOLE)
    assert got["blueprint"]["tags"] == {} and got["blueprint"]["name"] == "renamed" and got["blueprint"]["deploymentTimeoutMinutes"] == 60
    assert got["stackSets"][0]["failureTolerancePercentage"] == 10 and got["stackSets"][0]["concurrencyMode"] == "SOFT_FAILURE_TOLERANCE"
    ui.call("DELETE", path)
    with pytest.raises(Shown, match="^404 "):
        ui.get(path)


def test_the_wizard_is_offered_no_stack_set(site):
    for query in ("", "?pageSize=100", "?maxResults=100"):
        assert site.pages["Admin"].get("/blueprints/stacksets" + query)["result"] == []


# Lists.


def test_lists_of_more_than_a_page_end(site):
    ui = site.pages["Admin"]
    accounts, calls = ui.all("/accounts")
    assert calls > 1 and len({a["awsAccountId"] for a in accounts}) == len(accounts) > 2000
    for _ in range(3):
        template_of(site)
        site.pending(site.person())
    for path, key in (("/leases", "uuid"), ("/leaseTemplates", "uuid")):
        items, calls = ui.all(path, size=2)
        assert calls > 1 and len({i[key] for i in items}) == len(items) > 2
        assert [i[key] for i in items] == [i[key] for i in ui.all(path)[0]]


# Refusals.


@pytest.mark.parametrize(
    "role,method,path,body,begins",
    [
        ("User", "POST", "/leases", {"leaseTemplateUuid": "", "comments": ""}, "400 leaseTemplateUuid: "),
        ("User", "GET", "/leases", None, "403 "),
        ("User", "GET", "/accounts", None, "403 "),
        ("Manager", "GET", "/leases/" + leases.nowhere(USER), None, "404 "),
        ("Manager", "POST", "/leaseTemplates", {**WIZARD, "maxSpend": 1e6}, "400 maxSpend: "),
        ("Manager", "POST", "/leaseTemplates", {**WIZARD, "costReportGroup": "nobody's"}, "400 costReportGroup: "),
        ("Admin", "POST", "/accounts", {"awsAccountId": "000000000000"}, "409 "),
    ],
)
def test_a_refusal_is_shown_as_a_sentence(site, role, method, path, body, begins):
    with pytest.raises(Shown) as shown:
        site.pages[role].call(method, path, body)
    said = str(shown.value)
    assert said.startswith(begins) and "HTTP error" not in said and len(said[len(begins):].split()) > 2, said


# Programs.


def test_the_client_library(site):
    client = IsbClient(site.server)
    person = site.person()
    lease = site.pending(person, name="Client Library %d" % int(time.time() * 1000))
    assert client.fetch("leases", lease["leaseId"])["status"] == "PendingApproval"
    assert client.fetch("leases", leases.nowhere(USER)) is None
    by_name = client.fetch("leaseTemplates", lease["originalLeaseTemplateName"])
    assert fits(by_name, TEMPLATE)["uuid"] == lease["originalLeaseTemplateUuid"]
    key = base64.b64encode(json.dumps({"userEmail": lease["userEmail"], "uuid": lease["uuid"]}, separators=(",", ":")).encode()).decode()
    got = client.mutate("/leases/%s/review" % encoded(key), {"action": "Approve", "approverEmail": "boss@example.com"})
    fits(got, {"leaseId": name, "status": one_of("Provisioning", "Active")})
    lease = fit_lease(site.until_status(lease, "Active"))
    assert lease["approvedBy"] == "service@example.com"
    assert fits(client.fetch("accounts", lease["awsAccountId"]), ACCOUNT)["status"] == "Active"
    items, calls = client.accounts()
    assert 1 < calls < 100 and len({a["awsAccountId"] for a in items}) == len(items) > 2000
    fresh = site.pages["Admin"].unregistered()[0][0]
    made = client.mutate("/accounts", {"awsAccountId": fresh["Id"], "name": "mine", "email": "mine@example.com"})
    assert fits(made, ACCOUNT)["status"] == "CleanUp"


def test_the_scripts(site):
    owner = site.person().email
    script = Script(site.server, owner)
    template = template_of(site, name="Script %d" % int(time.time() * 1000))
    found = [t for t in script.all("/leaseTemplates") if t["name"].lower() == template["name"].lower()]
    assert [t["uuid"] for t in found] == [template["uuid"]]
    status, body = script.call("POST", "/leases", {"leaseTemplateUuid": template["uuid"], "userEmail": owner})
    lease = fits(body["data"], MONITORED)
    assert status == 201 and lease["leaseId"]
    site.until_status(lease, "Active")
    admin = Script(site.server)
    live = [one for one in admin.all("/leases", userEmail=owner) if one["status"] in ("Active", "Frozen", "Provisioning", "PendingApproval")]
    assert [one["uuid"] for one in live] == [lease["uuid"]]
    status, body = admin.call("POST", "/leases/%s/terminate" % urllib.parse.quote(live[0]["leaseId"], safe=""))
    assert status == 200 and body["status"] == "success"
    status, body = admin.call("POST", "/accounts/%s/retryCleanup" % lease["awsAccountId"])
    assert status == 200
    status, body = admin.call("POST", "/accounts/000000000000/retryCleanup")
    assert status == 404 and body["data"]["errors"][0]["message"]
    fresh = site.pages["Admin"].unregistered()[0][0]["Id"]
    status, body = admin.call("POST", "/accounts", {"awsAccountId": fresh})
    assert status == 201 and body["status"] == "success" and body["data"]["status"] == "CleanUp"
