# SPDX-License-Identifier: Apache-2.0
"""Requests made from an OpenAPI document: mostly decent, some hostile, each from a dice of its own.

What a request looks like depends on its dice and on what earlier replies have told (ids, cursors, keys); the number of
rolls does not depend on the replies, so a seed makes the same kind of requests again.
"""

import json
import random
import string
from collections import defaultdict, deque
from urllib.parse import quote

KEPT = 40  # values of one name, the newest
WRAPPERS = ("data", "result")
METHODS = ("get", "put", "post", "patch", "delete")

# What the document cannot say: forms of browsers, and texts that mean something.
FORMS = {"signIn": ("email", "password", "form")}
WORDS = {
    "email": ("user@example.com", "manager@example.com", "admin@example.com", "nobody@example.com"),
    "url": ("http://127.0.0.1:9/", "https://127.0.0.1:9/hook", "https://[::1]:9/"),  # nothing leaves this machine
    "document": ("{}", "maintenanceMode: false\n", "rules: []\n", "version: 1\n", "a: &a [*a]\n", "- - - -\n"),
    "time": ("2026-11-16T10:00:00Z", "1970-01-01T00:00:00Z", "1794830400", "9999-12-31T23:59:59Z", "0"),
    "month": ("2026-10", "2026-11", "0001-01", "9999-12"),
    "prefer": ("wait=1", "wait=0", "respond-async", "wait=99999999999", "wait=1, respond-async"),
    "filter": ("*", "Lease*", "Alarm*"),
    "scope": ("read", "read,approve", "pool-admin,cost"),
    "track": ("track-1", "track-2", "track-3", "track-4"),
    "source": ("cloudtrail", "budgets"),
    "action": ("Approve", "Deny"),
}
SAME = {
    "useremail": "email", "createdby": "email", "password": "email", "since": "time", "until": "time",
    "dueat": "time", "expirationdate": "time", "lasteventid": "event", "lastevent": "event", "xtrack": "track",
    "xinstruqtsandbox": "track", "xinstruqttrack": "track", "account": "awsaccount", "nextpageidentifier": "cursor",
    "pageidentifier": "cursor", "to": "ou", "from": "ou", "ifmatch": "version",
}
HOSTILE = (
    "", " ", "\"" * 3900, "<script>&'\"" * 40, "\\" * 500, "%00%ff%2e%2e%2f", "../../etc/passwd", "\u0000", "\ud83d\ude00" * 60,
    "\u202e\ufeff", "a" * 127, "a" * 128, "a" * 129, "a" * 1025, "x" * 70000, "{}", "[]", "null", "-1", "0", "1e999",
    "9223372036854775807", "9223372036854775808", "18446744073709551616", "2026-13-41T99:99:99Z", "true", "%", "%s%n%p", "'; --",
    "\r\nX-Injected: 1", "\t\x7f\x1b[31m", "\u00e9" * 240, "&amp;" * 100, "=&=&=&", "??//#", "a@b", "@", "a" * 250 + "@example.com",
)
NUMBERS = (0, 1, -1, 2, 99, 100, 101, 1 << 31, -(1 << 31), (1 << 53) + 1, (1 << 63) - 1, -(1 << 63), 1 << 64, 0.5, -0.0, 1e308, 1e-308)


def hostile(dice):
    """A text that something may choke on: every other one is only long, and grows when it is escaped."""
    if dice.random() < 0.5:
        return dice.choice(HOSTILE)
    return dice.choice("\"<&\\'%\u00e9\u0001+a") * dice.choice((100, 250, 500, 1000, 2000, 3900, 4000, 8000, 16000, 70000))


def plain(name):
    """hold_id, holdId, holds and hold are one name."""
    name = "".join(c for c in name.lower() if c.isalnum())
    for end in ("uuid", "id"):
        if name.endswith(end) and name != end:
            name = name[: -len(end)]
    return name[:-1] if name.endswith("s") and not name.endswith("ss") and len(name) > 3 else name


class Told:
    """What replies told, by name."""

    def __init__(self):
        self.values = defaultdict(lambda: deque(maxlen=KEPT))
        self.cookies = {}

    def learn(self, path, body):
        resource = next((plain(p) for p in reversed(path.split("/")) if p and not p.startswith("{")), "")
        self._walk(resource, body, 0)

    def _walk(self, resource, value, depth):
        if isinstance(value, list):
            for item in value[:10]:
                self._walk(resource, item, depth + 1)
        elif isinstance(value, dict):
            names = ("id", "uuid") if any(k in ("id", "uuid") or plain(k) == resource for k in value) else ("name",)
            for key, item in value.items():
                if isinstance(item, (dict, list)):
                    self._walk(plain(key) if depth and key not in WRAPPERS else resource, item, depth + 1)
                elif isinstance(item, str) and item or isinstance(item, int) and not isinstance(item, bool):
                    self.add(resource if key in names else key, item)

    def add(self, name, value):
        values = self.values[plain(name)]
        if value not in values:
            values.append(value)

    def find(self, name, dice):
        """One of the values, or None. Always one roll."""
        roll, name = dice.random(), plain(name)
        like = SAME.get(name, name)
        told = self.values.get(name) or self.values.get(like) or self._ending(name)
        words = WORDS.get(like)
        values = words if words and (roll < 0.5 or not told) else told
        return values[int(roll * len(values))] if values else None


    def _ending(self, name):
        """A letter is known as a dead letter."""
        return next((v for n, v in self.values.items() if len(name) > 3 and n.endswith(name)), None)

    def learn_form(self, value):
        """Only the newest belongs to the cookie."""
        self.values["form"].clear()
        self.add("form", value)


class Request:
    def __init__(self, operation, method, target, headers, body, is_strange):
        self.operation, self.method, self.target = operation, method, target
        self.headers, self.body = headers, body
        self.is_strange = is_strange  # it may not be this operation at all

    def __str__(self):
        return "%s %s" % (self.method, self.target.decode("utf-8", "replace"))

    def bytes(self):
        head = [self.method.encode() + b" " + self.target + b" HTTP/1.1"]
        head += [name.encode() + b": " + value for name, value in self.headers]
        return b"\r\n".join(head) + b"\r\n\r\n" + (self.body or b"")


class Operation:
    def __init__(self, path, method, spec, document):
        self.path, self.method, self.spec = path, method, spec
        self.id = spec["operationId"]
        self.schemes = [name for item in spec.get("security", []) for name in item]
        self.replies = {int(code): resolve(document, r) for code, r in spec["responses"].items()}
        self.weight = 1 + bool(spec.get("parameters")) + 3 * ("requestBody" in spec or self.id in FORMS)
        self.is_endless = any("text/event-stream" in r.get("content", {}) for r in self.replies.values())


def resolve(document, node):
    while "$ref" in node:
        at = document
        for part in node["$ref"].split("/")[1:]:
            at = at[part]
        node = at
    return node


class Maker:
    """Makes requests. tokens: {scheme or "": [token]}."""

    def __init__(self, document, host, tokens):
        self.document, self.host, self.tokens, self.told = document, host, tokens, Told()
        self.operations = [
            Operation(path, method, spec, document)
            for path, item in document["paths"].items()
            for method, spec in item.items()
            if method in METHODS
        ]

    def choose(self, dice, without):
        """Those that take more are asked more often; some of them, others in each round, much more often."""
        self.operations = [o for o in self.operations if o.id not in without]
        self.weights = [o.weight * dice.choice((1, 1, 1, 1, 6)) for o in self.operations]

    def make(self, dice):
        operation = dice.choices(self.operations, self.weights)[0]
        wild = dice.choice((0, 0, 0, 0.05, 0.05, 0.3, 0.9))  # how likely each value is a bad one
        values = Values(self.document, self.told, dice, wild)
        target, is_strange = self._target(operation, values, dice, wild)
        headers = [("Host", self.host.encode())] + self._headers(operation, values, dice)
        body, kind = self._body(operation, values, dice, wild)
        if body is not None:
            headers += [("Content-Type", kind), ("Content-Length", b"%d" % len(body))]
        elif operation.method in ("post", "put", "patch"):
            headers.append(("Content-Length", b"0"))
        method = operation.method.upper()
        if dice.random() < 0.04:
            method, is_strange = dice.choice(("HEAD", "OPTIONS", "GET", "PUT", "DELETE", "TRACE", "QUERY")), True
        return Request(operation, method, target, headers, body, is_strange)

    def _target(self, operation, values, dice, wild):
        path, is_strange, query = operation.path, False, []
        for p in operation.spec.get("parameters", []):
            roll, value = dice.random(), values.parameter(p)
            if p["in"] == "path":
                is_strange |= wild > 0
                path = path.replace("{%s}" % p["name"], encode(value, dice, wild))
            elif p["in"] == "query" and (p.get("required") or roll < 0.4):
                query.append(encode(p["name"], dice, 0) + "=" + encode(value, dice, wild))
        if dice.random() < wild / 4:
            query.append(encode(hostile(dice), dice, 1) + "=" + encode(hostile(dice), dice, 1))
        target = path + ("?" + "&".join(query) if query else "")
        return target.encode("utf-8", "replace"), is_strange

    def _headers(self, operation, values, dice):
        headers, token = [], self._token(operation, dice)
        if token:
            headers.append(("Authorization", b"Bearer " + token.encode("utf-8", "replace")))
        for p in operation.spec.get("parameters", []):
            roll, value = dice.random(), values.parameter(p)
            if p["in"] == "header" and (p.get("required") or roll < 0.7):
                headers.append((p["name"], str(value).encode("utf-8", "replace").translate(None, b"\r\n")))
        if dice.random() < 0.1:
            headers.append(("Accept", dice.choice((b"text/html", b"text/csv", b"*/*", b"application/json"))))
        if operation.path.startswith("/api/auth") and dice.random() < 0.7:
            headers.append(("Cookie", "; ".join("%s=%s" % c for c in self.told.cookies.items()).encode()))
        return headers

    def _token(self, operation, dice):
        """Mostly a right one; a wrong one, another's or none otherwise."""
        roll, pick = dice.random(), dice.random()
        known = [t for s in operation.schemes for t in self.tokens.get(s, [])]
        if roll < 0.1 or not operation.schemes and roll < 0.8:
            return None
        if roll < 0.8 and known:
            return known[int(pick * len(known))]
        key = self.told.find("key", dice)
        others = [t for ts in self.tokens.values() for t in ts] + ([str(key)] if key else [])
        return others[int(pick * len(others))]

    def _body(self, operation, values, dice, wild):
        content = operation.spec.get("requestBody", {}).get("content", {})
        kind = dice.choice((b"application/json",) * 9 + (b"text/plain", b"application/x-www-form-urlencoded", b"a/" + b"b" * 300))
        if operation.id in FORMS:
            fields = ["%s=%s" % (f, encode(values.text(f, {}), dice, wild)) for f in FORMS[operation.id]]
            return "&".join(fields).encode("utf-8", "replace"), b"application/x-www-form-urlencoded"
        value = values.of("", next(iter(content.values()))["schema"]) if content else None
        text = spoil(json.dumps(value), dice, wild).encode("utf-8", "replace")
        if content:
            return text, kind
        return (text, kind) if dice.random() < wild / 3 else (None, kind)


class Values:
    """Values for schemas."""

    def __init__(self, document, told, dice, wild):
        self.document, self.told, self.dice, self.wild = document, told, dice, wild

    def parameter(self, p):
        return self.of(p["name"], p["schema"])

    def of(self, name, schema, depth=0):
        schema = resolve(self.document, schema)
        dice = random.Random(self.dice.getrandbits(32))  # the same number of rolls whatever is made
        kinds = schema.get("type", "object" if "properties" in schema else "string")
        if dice.random() < self.wild / (1 + depth):
            return self._bad(dice)
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return dice.choice(schema["enum"])
        for choice in ("anyOf", "oneOf"):
            if choice in schema:
                return self._inner(dice).of(name, schema[choice][0 if dice.random() < 0.8 else -1], depth + 1)
        kind = kinds[0 if dice.random() < 0.85 else -1] if isinstance(kinds, list) else kinds  # null is the last one
        return getattr(self._inner(dice), "_" + kind)(name, schema, depth)

    def _inner(self, dice):
        return Values(self.document, self.told, dice, self.wild)

    def text(self, name, schema):
        return self.of(name, {"type": "string", **schema})

    def _bad(self, dice):
        roll = dice.random()
        if roll < 0.6:
            return hostile(dice)
        if roll < 0.8:
            return dice.choice(NUMBERS)
        return dice.choice((None, True, False, [], {}, [[]], {"": None}, ["a"] * 200, nested(dice.choice((5, 40, 600)))))

    def _string(self, name, schema, depth):
        known = self.told.find(name, self.dice)
        low, high = schema.get("minLength", 1), schema.get("maxLength", 64)
        size = self.dice.choice((low, min(high, low + 8), high)) if self.dice.random() < 0.2 else min(high, max(low, 8))
        made = "".join(self.dice.choice(string.ascii_letters + string.digits + "-_. ") for _ in range(size))
        return str(known) if known is not None and self.dice.random() < 0.8 else made

    def _integer(self, name, schema, depth):
        low, high = schema.get("minimum", 0), schema.get("maximum", 200)
        known = self.told.find(name, self.dice)
        made = self.dice.choice((low, high, self.dice.randint(low, high)))
        return known if isinstance(known, int) and self.dice.random() < 0.5 else made

    def _number(self, name, schema, depth):
        return self.dice.choice((self._integer(name, schema, depth), round(self.dice.random() * 100, 2)))

    def _boolean(self, name, schema, depth):
        return self.dice.random() < 0.5

    def _null(self, name, schema, depth):
        return None

    def _array(self, name, schema, depth):
        count = 0 if depth > 4 else self.dice.choice((0, 1, 1, 2, 3, 101 if self.wild else 4))
        return [self.of(name, schema.get("items", {"type": "string"}), depth + 1) for _ in range(count)]

    def _object(self, name, schema, depth):
        required, made = schema.get("required", []), {}
        for key, member in schema.get("properties", {}).items():
            is_there = key in required or self.dice.random() < 0.6
            if depth < 6 and is_there and self.dice.random() >= self.wild / 8:
                made[key] = self.of(key, member, depth + 1)
        if not schema.get("properties") or self.dice.random() < self.wild / 8:
            made[hostile(self.dice)] = hostile(self.dice)
        return made


def nested(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return value


def encode(value, dice, wild):
    """For a path or a query; now and then not, or too often."""
    text = value if isinstance(value, str) else json.dumps(value)
    if dice.random() < wild / 5:
        return "".join(c for c in text if c not in "\r\n ")
    once = quote(text, safe="", errors="replace")
    return quote(once, safe="") if dice.random() < wild / 10 else once


def spoil(text, dice, wild):
    """JSON that is none any more, or is unusual."""
    if dice.random() >= wild / 4:
        return text
    at = dice.randrange(len(text) + 1)
    return dice.choice((
        text[:at], text + text, text[:at] + "\u0000" + text[at:], " " * 3000 + text, text.replace(":", ":1e999,\"a\":", 1),
        text.replace("{", "{\"name\":1,\"name\":2,", 1), "[" * 5000, "\ufeff" + text, text.replace("\"", "'"), "\"\\ud800\"", "NaN", "",
    ))
