# SPDX-License-Identifier: Apache-2.0
"""The front itself: from a request to an answer, and the record of both."""

import http.client
import json
import threading
import time
import traceback
import uuid
from urllib.parse import urlsplit

from aws.front import models, policy, reply
from aws.front.ce import CostExplorer
from aws.front.codebuild import CodeBuild
from aws.front.cognito import Cognito
from aws.front.ecs import Ecs
from aws.front.efs import Efs
from aws.front.elbv2 import Elbv2
from aws.front.faults import Faults
from aws.front.identitystore import IdentityStore
from aws.front.keeping import DynamoDb, Iam, SecretsManager, Ssm
from aws.front.logs import Logs, Tagging
from aws.front.messages import EventBridge, Ses, Sns
from aws.front.names import MANAGEMENT
from aws.front.organizations import Organizations
from aws.front.request import Refused, Request
from aws.front.scheduler import Scheduler
from aws.front.shapes import Broken
from aws.front.sqs import Sqs
from aws.front.sso_admin import SsoAdmin
from aws.front.sts import Sts

MACHINES = {"organizations": Organizations, "sts": Sts, "sso-admin": SsoAdmin, "identitystore": IdentityStore, "sqs": Sqs,
            "ce": CostExplorer, "codebuild": CodeBuild, "events": EventBridge, "sns": Sns, "sesv2": Ses, "secretsmanager": SecretsManager,
            "ssm": Ssm, "iam": Iam, "dynamodb": DynamoDb, "scheduler": Scheduler, "efs": Efs, "elbv2": Elbv2, "ecs": Ecs,
            "cognito-idp": Cognito, "logs": Logs, "resourcegroupstaggingapi": Tagging}
# Services that only an account of the administration may ask.
MANAGED = {"organizations": MANAGEMENT, "ce": MANAGEMENT}
GLOBAL = {"organizations", "ce"}
SECRETS = {"SecretString", "SecretBinary", "ClientRequestToken"}


class Cut(Exception):
    """No answer: the connection ends."""


class World:
    def __init__(self, forward=None, forwarded=()):
        """forward: where moto listens; forwarded: services that it answers although there is a machine for them."""
        self.lock = threading.RLock()
        self.forward, self.forwarded = forward, set(forwarded)
        self.url = None
        self.faults = Faults()
        self.used = set()  # (role, permission) of all calls that a policy let through, ever
        self.reset()

    def reset(self):
        with self.lock:
            self.offset, self.tokens, self.number = 0.0, {}, 0
            self.log, self.entry_faults = [], []
            self.faults.clear()
            self.machines = {}
            for name, kind in MACHINES.items():
                self.machines[name] = kind(self)

    # For the machines.

    def now(self):
        return time.time() + self.offset

    def uuid(self):
        return str(uuid.uuid4())

    def new_token(self):
        return "token-" + self.uuid()

    def is_gone(self, request):
        return request.is_gone()

    def pick_entry_fault(self, entry):
        """The code that a test wants for this entry of a batch, or None. Faults wait in line: an entry that may pass is None."""
        return self.entry_faults.pop(0) if self.entry_faults else None

    # For the tests.

    def control(self, what, body):
        if what == "machine":
            method = getattr(self.machines[body["service"]], "ctl_" + body["do"])
            with self.lock:
                return method(**body.get("with", {}))
        if what == "fault":
            return self.faults.add(body)
        if what == "entry_faults":
            self.entry_faults = list(body["codes"])
            return None
        if what == "release":
            return self.faults.release(body.get("number"))
        if what == "clear":
            return self.faults.clear()
        if what == "reset":
            return self.reset()
        if what == "clock":
            self.offset += body["add"]
            return self.now()
        raise KeyError(what)

    def show(self, what, since=0):
        with self.lock:
            if what == "log":
                return self.log[since:]
            if what == "count":
                return len(self.log)
            if what == "forward":
                return {"url": self.forward}
            if what == "used":
                return sorted(pair for pair in self.used if pair[1])
            if what == "faults":
                return self.faults.show()
            if what == "state":
                return {name: machine.show() for name, machine in self.machines.items()}
            return self.machines[what].show()

    # A request.

    def handle(self, request):
        """status, headers, body; or Cut."""
        request_id, started = self.uuid(), time.monotonic()
        entry = {"service": None, "operation": None, "permission": None, "role": None, "account": None, "region": None, "status": None, "code": None,
                 "broken": None, "fault": None, "done": False, "params": None, "time": self.now(), "agent": request.headers.get("User-Agent"),
                 "host": request.headers.get("Host"), "request_id": request_id}
        with self.lock:
            self.number += 1
            entry["number"] = self.number
            self.log.append(entry)
        try:
            answer = self.judge(request, entry, request_id)
        except Refused as e:
            if e.broken:
                entry["broken"] = e.message
            entry["code"] = reply.JSON_CODES.get(e.code, e.code) if reply.protocol_of(request) != "query" else e.code
            answer = reply.write_error(request, e, request_id)
        except Cut:
            entry["ms"] = round((time.monotonic() - started) * 1000)
            raise
        except Exception:  # pylint: disable=broad-except
            entry["broken"] = "the front itself: " + traceback.format_exc()
            answer = reply.write_error(request, Refused("FrontBroken", entry["broken"], 500), request_id)
        entry["status"] = answer[0]
        entry["ms"] = round((time.monotonic() - started) * 1000)
        return answer

    def judge(self, request, entry, request_id):
        with self.lock:
            sts = self.machines["sts"]
            request.check_signature(sts.secret_of, self.now())
            request.principal = principal = sts.principal(request.key)
            entry.update(role=principal["role"], account=principal["account"], region=request.region)
        request.find_operation()
        action = models.action(request.service, request.operation)
        entry.update(service=request.service, operation=request.operation, permission=action)
        request.lax = bool(self.forward) and request.service in self.forwarded
        request.decode()
        entry["params"] = readable(request.params)
        self.check_rights(request, principal, action)
        if principal["role"] in self.machines["sts"].allowed:  # else the test has put the policies out of force
            self.used.update((principal["role"], needed) for needed, _ in policy.needed(action, request.params))
        return self.act(request, entry, request_id)

    def check_rights(self, request, principal, action):
        with self.lock:
            sts = self.machines["sts"]
            if sts.is_expired(principal):
                raise Refused("ExpiredToken", "The security token included in the request is expired", 403)
            if request.service in GLOBAL and request.region != "us-east-1":
                raise Refused("SignatureDoesNotMatch", "Credential should be scoped to a valid region: us-east-1", 403, True)
            if action and not sts.may(principal, action, request.params) or MANAGED.get(request.service, principal["account"]) != principal["account"]:
                raise Refused("AccessDenied", "User: %s is not authorized to perform: %s" % (principal["arn"], action), 403)

    def act(self, request, entry, request_id):
        facts = {"service": request.service, "operation": request.operation, "role": request.principal["role"], "account": request.principal["account"]}
        rule = self.faults.struck(facts)
        kind, spec = (rule.kind, rule.spec) if rule else (None, {})
        if rule:
            entry["fault"] = kind
        if kind == "throttle":
            code, status = rule.throttle(request.service)
            raise Refused(code, "Rate exceeded", status)
        if kind == "error":
            raise Refused(spec.get("code", "InternalFailure"), spec.get("message", "as the test asked"), spec.get("status", 500))
        if kind == "deny":
            raise Refused("AccessDenied", spec.get("message", "User: %s is not authorized to perform: %s" % (
                request.principal["arn"], entry["permission"])), 403)
        if kind == "cut_before":
            raise Cut
        if kind == "delay":
            time.sleep(spec["ms"] / 1000)
        if kind == "hold_before":
            self.hold(rule, request)
        if kind == "garbage":
            return 200, {"Content-Type": "application/x-amz-json-1.1"}, spec.get("text", "<html>no").encode()
        if kind == "reply":
            return reply.write(request, spec["body"], request_id)
        answer = self.do(request, entry, request_id)
        if kind == "cut_after":
            raise Cut
        if kind == "hold_after":
            self.hold(rule, request)
        if kind == "done_error":
            raise Refused(spec.get("code", "InternalFailure"), spec.get("message", "as the test asked"), spec.get("status", 500))
        return answer

    def hold(self, rule, request):
        rule.holding += 1
        while not rule.released.wait(0.02):
            if request.is_gone():
                rule.holding -= 1
                raise Cut
        rule.holding -= 1

    def do(self, request, entry, request_id):
        machine = self.machines.get(request.service)
        method = getattr(machine, request.operation, None)
        if self.forward and (method is None or request.service in self.forwarded):
            return self.pass_on(request, entry)
        if method is None:
            raise Refused("NotHere", "the front has no %s of %s" % (request.operation, request.service), 501, True)
        if request.operation in machine.slow:
            output = method(request.params, request)
        else:
            with self.lock:
                output = method(request.params, request)
        entry["done"] = True
        try:
            return reply.write(request, output, request_id)
        except Broken as e:
            raise AssertionError("our own answer to %s is wrong: %s" % (request.operation, e)) from e

    def pass_on(self, request, entry):
        """To moto. A long poll is many short ones there, for nobody else is served while moto waits."""
        wait, body = request.params.get("WaitTimeSeconds", 0), request.body
        if wait and request.operation == "ReceiveMessage" and body.startswith(b"{"):
            body = json.dumps({**json.loads(body), "WaitTimeSeconds": 0}).encode()
        until = time.monotonic() + wait
        status, kept, answer = self.pass_one(request, body)
        while body is not request.body and status == 200 and not json.loads(answer).get("Messages") and time.monotonic() < until:
            if request.is_gone():
                raise Cut
            time.sleep(0.05)
            status, kept, answer = self.pass_one(request, body)
        entry.update(done=status < 300, forwarded=True)
        return status, kept, answer

    def pass_one(self, request, body):
        """One at a time: moto loses updates otherwise."""
        with self.lock:
            connection = http.client.HTTPConnection(urlsplit(self.forward).netloc, timeout=60)
            headers = {k: v for k, v in request.headers.items() if k.lower() not in ("connection", "content-length", "transfer-encoding")}
            connection.request(request.method, request.target, body, headers)
            got = connection.getresponse()
            answer = got.read()
            connection.close()
        return got.status, {k: v for k, v in got.getheaders() if k.lower().startswith(("x-amzn", "content-type"))}, answer


def readable(value):
    """Parameters for the log: JSON, and no secrets."""
    if isinstance(value, dict):
        return {k: "(kept back)" if k in SECRETS else readable(v) for k, v in value.items()}
    if isinstance(value, list):
        return [readable(v) for v in value]
    if isinstance(value, bytes):
        return "(%d bytes)" % len(value)
    return value if isinstance(value, (str, int, float, bool)) or value is None else str(value)


__all__ = ["Cut", "Request", "World"]
