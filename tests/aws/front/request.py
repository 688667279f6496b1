# SPDX-License-Identifier: Apache-2.0
"""One request: whose it is, which operation it means, and whether every byte of it is as the official model wants it.

Signature by botocore's own signer; operation by X-Amz-Target, Action and Version, or method and path; members by the walk of shapes.py and botocore's validator;
and last the decoded values are serialised again by botocore and compared with what came. Anything else is refused with the reason."""

import calendar
import json
import re
import time
from urllib.parse import parse_qsl, unquote, urlsplit

from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.compat import HTTPHeaders
from botocore.credentials import Credentials
from botocore.serialize import SERIALIZERS
from botocore.validate import ParamValidator

from aws.front import models
from aws.front.shapes import Broken, Walk, from_text

SKEW = 300
AUTHORIZATION = re.compile(
    r"AWS4-HMAC-SHA256 Credential=([^/]+)/(\d{8})/([a-z0-9-]+)/([a-z0-9-]+)/aws4_request, ?SignedHeaders=([a-z0-9;-]+), ?"
    r"Signature=([0-9a-f]{64})")


class Refused(Exception):
    """An answer that is an error. broken: the request is malformed, which no client of ours may send."""

    def __init__(self, code, message, status=400, broken=False):
        super().__init__(message)
        self.code, self.message, self.status, self.broken = code, message, status, broken


class Request:
    """Filled step by step: what is known when a check fails is in the log."""

    def __init__(self, method, target, headers, body, url):
        self.method, self.target, self.headers, self.body, self.url = method, target, headers, body, url
        self.service = self.operation = self.protocol = self.params = self.model = None
        self.key = self.region = self.principal = None
        self.lax = False  # an emulator answers whose own ids break the patterns

    # Whose it is.

    def check_signature(self, secret_of, now):
        """secret_of(key): (secret, token or None) or None."""
        found = AUTHORIZATION.fullmatch(self.headers.get("Authorization", ""))
        if not found:
            raise Refused("MissingAuthenticationToken", "no Authorization header of signature version 4", 403, True)
        self.key, day, self.region, self.signed_as, names, signature = found.groups()
        names = names.split(";")
        self.check_headers(names, day)
        known = secret_of(self.key)
        if known is None:
            raise Refused("InvalidClientTokenId", "the security token included in the request is invalid", 403)
        secret, token = known
        self.check_token(token)
        if signature != self.signature(secret, names):
            raise Refused("SignatureDoesNotMatch", "the signature we calculated does not match the one provided", 403, True)
        self.check_date(now)

    def check_headers(self, names, day):
        if names != sorted(set(names)):
            raise Refused("IncompleteSignature", "SignedHeaders are not sorted", 403, True)
        for name in names:
            if len(self.headers.get_all(name, [])) != 1:
                raise Refused("SignatureDoesNotMatch", "signed header %s came not once" % name, 403, True)
        unsigned = [n.lower() for n in self.headers if n.lower().startswith("x-amz-") and n.lower() not in names]
        if unsigned or "host" not in names or self.body and self.headers.get("Content-Type") and "content-type" not in names:
            raise Refused("SignatureDoesNotMatch", "must be signed: host, content-type and %s" % unsigned, 403, True)
        if not re.fullmatch(r"\d{8}T\d{6}Z", self.headers.get("X-Amz-Date", "")) or self.headers["X-Amz-Date"][:8] != day:
            raise Refused("IncompleteSignature", "X-Amz-Date is missing or of another day than the scope", 403, True)

    def check_token(self, token):
        if self.headers.get("X-Amz-Security-Token") != token:
            raise Refused("InvalidClientTokenId", "the session token is missing or that of other credentials", 403, True)

    def check_date(self, now):
        sent = calendar.timegm(time.strptime(self.headers["X-Amz-Date"], "%Y%m%dT%H%M%SZ"))
        if abs(sent - now) > SKEW:
            raise Refused("SignatureDoesNotMatch", "Signature expired: %s is not within 5 minutes of %s" % (
                self.headers["X-Amz-Date"], time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(now))), 403)

    def signature(self, secret, names):
        headers = HTTPHeaders()
        for name in names:
            headers[name] = self.headers[name]
        request = AWSRequest(self.method, self.url + self.target, headers=headers, data=self.body)
        parts = urlsplit(self.url + self.target)
        request.url, request.params = parts._replace(query="").geturl(), parse_qsl(parts.query, keep_blank_values=True)
        request.context["timestamp"] = self.headers["X-Amz-Date"]
        auth = SigV4Auth(Credentials(self.key, secret), self.signed_as, self.region)
        canonical = [self.method, auth._normalize_url_path(parts.path or "/"), self.canonical_query(parts.query),
                     auth.canonical_headers(headers) + "\n", ";".join(names), auth.payload(request)]
        if self.headers.get("X-Amz-Content-SHA256", canonical[-1]) not in (canonical[-1], "UNSIGNED-PAYLOAD"):
            raise Refused("XAmzContentSHA256Mismatch", "X-Amz-Content-SHA256 is not that of the body", 400, True)
        canonical[-1] = self.headers.get("X-Amz-Content-SHA256", canonical[-1])
        return auth.signature(auth.string_to_sign(request, "\n".join(canonical)), request)

    @staticmethod
    def canonical_query(query):
        return "&".join("%s=%s" % pair for pair in sorted(
            (part.partition("=")[0], part.partition("=")[2]) for part in query.split("&") if part))

    # What it asks for.

    def find_operation(self):
        target = self.headers.get("X-Amz-Target")
        path, _, query = self.target.partition("?")
        if target:
            self.find_json(target, path, query)
        elif self.headers.get("Content-Type", "").startswith("application/x-www-form-urlencoded") and self.body:
            self.find_query(path, query)
        else:
            self.find_rest(path)

    def named(self, service, protocol, operation):
        model = models.load(service)[protocol]
        if operation not in model.operation_names:
            raise Refused("UnknownOperationException", "no operation %s of %s" % (operation, service), 404, True)
        self.service, self.protocol, self.operation = service, protocol, operation
        self.model = model.operation_model(operation)
        if self.signed_as != models.SERVICES[service][0]:
            raise Refused("SignatureDoesNotMatch", "credential should be scoped to correct service: '%s'" %
                          models.SERVICES[service][0], 403, True)

    def find_json(self, target, path, query):
        prefix, _, operation = target.partition(".")
        service = models.by_target(prefix)
        if not service:
            raise Refused("UnknownOperationException", "no such X-Amz-Target: %s" % target, 404, True)
        self.named(service, "json", operation)
        wanted = "application/x-amz-json-" + self.model.metadata["jsonVersion"]
        if self.headers.get("Content-Type") != wanted:
            raise Refused("UnknownOperationException", "Content-Type must be %s" % wanted, 404, True)
        if self.method != "POST" or path != "/" or query:
            raise Refused("UnknownOperationException", "POST / it must be, not %s %s" % (self.method, self.target), 404, True)

    def find_query(self, path, query):
        self.form = self.pairs()
        names = models.by_signed_name(self.signed_as, models.QUERY)
        if not names:
            raise Refused("SignatureDoesNotMatch", "scoped to a service without forms: %s" % self.signed_as, 403, True)
        self.named(names[0], "query", self.form.pop("Action", ""))
        if self.form.pop("Version", "") != self.model.metadata["apiVersion"]:
            raise Refused("NoSuchVersion", "Version must be %s" % self.model.metadata["apiVersion"], 400, True)
        # SQS's older clients post to the queue's own address.
        if self.method != "POST" or query or path != "/" and self.service != "sqs":
            raise Refused("InvalidAction", "POST / it must be, not %s %s" % (self.method, self.target), 400, True)

    def pairs(self):
        try:
            pairs = parse_qsl(self.body.decode("ascii"), keep_blank_values=True, strict_parsing=True)
        except ValueError as e:
            raise Refused("MalformedQueryString", "the form cannot be read: %s" % e, 400, True) from e
        if len(pairs) != len(dict(pairs)):
            raise Refused("MalformedQueryString", "a member came twice", 400, True)
        return dict(pairs)

    def find_rest(self, path):
        for service in models.by_signed_name(self.signed_as, models.REST):
            model = models.load(service)["rest-json"]
            for name in model.operation_names:
                operation = model.operation_model(name)
                labels = self.match(operation, path)
                if labels is not None:
                    self.named(service, "rest-json", name)
                    self.labels = labels
                    return
        raise Refused("UnknownOperationException", "no operation: %s %s of %s" % (self.method, path, self.signed_as), 404, True)

    def match(self, operation, path):
        if operation.http["method"] != self.method:
            return None
        template = operation.http["requestUri"].split("?")[0]
        rule = "".join("(.+)" if part.endswith("+}") else "([^/]+)" if part.startswith("{") else re.escape(part)
                       for part in re.split(r"(\{[^}]+\})", template))
        found = re.fullmatch(rule, path)
        names = [name.rstrip("+") for name in re.findall(r"\{([^}]+)\}", template)]
        return dict(zip(names, (unquote(value) for value in found.groups()))) if found else None

    # Its members.

    def decode(self):
        try:
            self.params = getattr(self, "decode_" + self.protocol.replace("-", "_"))()
            shape = self.model.input_shape
            if shape is not None:
                Walk(lax=self.lax)(self.params, shape)
                report = ParamValidator().validate(self.params, shape)
                if report.has_errors():
                    raise Broken(report.generate_report())
            self.compare()
        except Broken as e:
            code = "ValidationError" if self.protocol == "query" else "ValidationException"
            raise Refused(code, "%s: %s" % (self.operation, e), 400, True) from e

    def json_body(self):
        def unique(pairs):
            if len(pairs) != len(dict(pairs)):
                raise Broken("a member came twice among %s" % [k for k, _ in pairs])
            return dict(pairs)

        try:
            return json.loads(self.body.decode("utf-8"), object_pairs_hook=unique)
        except ValueError as e:
            raise Broken("the body is not JSON: %s" % e) from e

    def decode_json(self):
        body = self.json_body()
        if self.model.input_shape is None:
            if body:
                raise Broken("this operation takes no members")
            return {}
        return Walk(json=True, renamed=True, lax=self.lax)(body, self.model.input_shape)

    def decode_query(self):
        if self.model.input_shape is None:
            used, got = set(), {}
        else:
            used = set()
            got = self.form_value("", self.model.input_shape, used)
        left = sorted(set(self.form) - used)
        if left:
            raise Broken("no such member: %s" % ", ".join(left))
        return got or {}

    def form_value(self, prefix, shape, used):
        """None: nothing of it came."""
        kind = shape.type_name
        if kind == "structure":
            got = {}
            for key, member in shape.members.items():
                name = member.serialization.get("name", key)
                value = self.form_value(prefix + "." + name if prefix else name, member, used)
                if value is not None:
                    got[key] = value
            return got if got or not prefix else None
        if kind == "list":
            return self.form_list(prefix, shape, used)
        if kind == "map":
            return self.form_map(prefix, shape, used)
        if prefix not in self.form:
            return None
        used.add(prefix)
        return from_text(self.form[prefix], shape, prefix)

    def count_below(self, prefix):
        found = {int(m.group(1)) for m in (re.match(re.escape(prefix) + r"\.([1-9][0-9]*)(\.|$)", k) for k in self.form) if m}
        if found != set(range(1, len(found) + 1)):
            raise Broken("%s: counts with gaps: %s" % (prefix, sorted(found)))
        return len(found)

    def form_list(self, prefix, shape, used):
        if self.form.get(prefix) == "":
            used.add(prefix)
            return []
        base = prefix
        if not shape.serialization.get("flattened"):
            base += "." + shape.member.serialization.get("name", "member")
        elif shape.member.serialization.get("name"):
            base = ".".join(prefix.split(".")[:-1] + [shape.member.serialization["name"]])
        count = self.count_below(base)
        return [self.form_value("%s.%d" % (base, i), shape.member, used) for i in range(1, count + 1)] or None

    def form_map(self, prefix, shape, used):
        base = prefix if shape.serialization.get("flattened") else prefix + ".entry"
        names = [shape.key.serialization.get("name", "key"), shape.value.serialization.get("name", "value")]
        got = {}
        for i in range(1, self.count_below(base) + 1):
            key = self.form_value("%s.%d.%s" % (base, i, names[0]), shape.key, used)
            got[key] = self.form_value("%s.%d.%s" % (base, i, names[1]), shape.value, used)
        return got or None

    def decode_rest_json(self):
        shape = self.model.input_shape
        asked = self.target.partition("?")[2]
        try:
            query = parse_qsl(asked, keep_blank_values=True, strict_parsing=True) if asked else []
        except ValueError as e:
            raise Broken("the query cannot be read: %s" % e) from e
        got, lists = {}, {}
        for name, value in query:
            lists.setdefault(name, []).append(value)
        members = shape.members if shape is not None else {}
        for key, member in members.items():
            self.take_rest(key, member, lists, got)
        if lists:
            raise Broken("no such query parameter: %s" % ", ".join(sorted(lists)))
        inside = {k: m for k, m in members.items() if "location" not in m.serialization}
        if self.body:
            self.take_body(shape, inside, got)
        return got

    def take_rest(self, key, member, lists, got):
        place, name = member.serialization.get("location"), member.serialization.get("name", key)
        if place == "uri":
            got[key] = from_text(self.labels[name], member, key)
        elif place == "querystring" and name in lists:
            values = lists.pop(name)
            if member.type_name == "list":
                got[key] = [from_text(v, member.member, key) for v in values]
            elif len(values) > 1:
                raise Broken("%s: came twice" % name)
            else:
                got[key] = from_text(values[0], member, key)
        elif place == "header" and self.headers.get(name) is not None:
            got[key] = from_text(self.headers[name], member, key)

    def take_body(self, shape, inside, got):
        body = self.json_body()
        if not inside:
            if body not in ({}, None):
                raise Broken("this operation takes no body")
            return
        if not isinstance(body, dict):
            raise Broken("the body is not an object")
        names = {m.serialization.get("name", k): k for k, m in inside.items()}
        for name, value in body.items():
            if name not in names:
                raise Broken(".%s: no such member; known are %s" % (name, ", ".join(sorted(names))))
            got[names[name]] = Walk(json=True, renamed=True)(value, inside[names[name]], "." + name)

    # Serialised again it must be the same.

    def compare(self):
        again = SERIALIZERS[self.protocol]().serialize_to_request(self.params, self.model)
        if again["method"] != self.method:
            raise Broken("method %s instead of %s" % (self.method, again["method"]))
        getattr(self, "compare_" + self.protocol.replace("-", "_"))(again)

    def compare_json(self, again):
        if not same(json.loads(again["body"]), self.json_body()):
            raise Broken("written again it is %r" % again["body"][:500])

    def compare_query(self, again):
        wanted = {k: str(v) for k, v in again["body"].items() if k not in ("Action", "Version")}
        if wanted != self.form:
            raise Broken("written again it is %r" % wanted)

    def compare_rest_json(self, again):
        path = self.target.partition("?")[0]
        if unquote(again["url_path"].partition("?")[0]) != unquote(path):
            raise Broken("path %s instead of %s" % (path, again["url_path"]))
        if again["body"] and not self.body and again["body"] != b"{}":
            raise Broken("a body is missing: %r" % again["body"][:500])
        if self.body and not same(json.loads(again["body"] or b"{}"), self.json_body()):
            raise Broken("written again it is %r" % again["body"][:500])
        kind = self.headers.get("Content-Type", "").partition(";")[0]
        if self.body and kind != "application/json":
            raise Broken("Content-Type must be application/json, not %r" % kind)


def same(a, b):
    """Equal, but for the fraction of a second, which botocore leaves out."""
    if isinstance(a, dict) and isinstance(b, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b))
    if isinstance(b, float) and isinstance(a, int) and not isinstance(a, bool):
        return a == int(b)
    return type(a) is type(b) and a == b
