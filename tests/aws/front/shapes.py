# SPDX-License-Identifier: Apache-2.0
"""Values held against a shape of a model, both ways: what came as JSON or as a form, and what we are about to answer.

Stricter than any service: unknown members, null, wrong types, lengths, ranges, enumerations, patterns and unions are all named. `lax` leaves out
enumerations and patterns, for answers of an emulator that does not keep them."""

import base64
import binascii
import datetime
import functools
import re

UTC = datetime.timezone.utc


class Broken(Exception):
    """It does not fit. The text names the member."""


# Java's classes as far as the models use them; a pattern that Python cannot read is left out.
CLASSES = {r"\p{L}": "a-zA-Z\u00c0-\u024f\u0400-\u04ff\u4e00-\u9fff", r"\p{M}": "\u0300-\u036f", r"\p{S}": "+<=>^`|~$",
           r"\p{N}": "0-9", r"\p{P}": r"!-#%-*,-/:;?@\[-\]_{}", r"\p{Z}": " \u00a0", r"\p{Zs}": " \u00a0",
           r"\p{Print}": " -~", r"\p{ASCII}": "\\x00-\\x7f", r"\p{IsAlphabetic}": "a-zA-Z", r"\p{Graph}": "!-~"}


@functools.lru_cache(None)
def pattern(text):
    made, is_inside = "", False
    for part in re.findall(r"\\p\{\w+\}|\\.|.", text, re.DOTALL):
        if part.startswith("\\p{"):
            part = CLASSES.get(part, "") if is_inside else "[%s]" % CLASSES.get(part, "")
        elif part in "[]":
            is_inside = part == "["
        made += part
    try:
        return re.compile(made, re.DOTALL)
    except re.error:
        return None


def moment(value, where):
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise Broken("%s: a time is a number of seconds, not %r" % (where, value))
    return datetime.datetime.fromtimestamp(value, UTC)


def from_text(value, shape, where):
    """A value of a form, a query or a header: its type is told by the shape."""
    kind = shape.type_name
    if kind in ("integer", "long"):
        if not re.fullmatch(r"-?[0-9]+", value):
            raise Broken("%s: not a whole number: %r" % (where, value))
        return int(value)
    if kind in ("float", "double"):
        return float(value)
    if kind == "boolean":
        if value not in ("true", "false"):
            raise Broken("%s: neither true nor false: %r" % (where, value))
        return value == "true"
    if kind == "timestamp":
        try:
            return datetime.datetime.strptime(value, "%Y-%m-%dT%H:%M:%SZ").replace(tzinfo=UTC)
        except ValueError as e:
            raise Broken("%s: not a time: %r" % (where, value)) from e
    if kind == "blob":
        return blob(value, where)
    return value


def blob(value, where):
    if isinstance(value, (bytes, bytearray)):
        return bytes(value)
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, TypeError, ValueError) as e:
        raise Broken("%s: not base64" % where) from e


class Walk:
    """Checks a decoded value. json: times and blobs are still as JSON has them, and are made to what botocore takes."""

    def __init__(self, lax=False, json=False, renamed=False):
        self.lax, self.json, self.renamed = lax, json, renamed

    def __call__(self, value, shape, where=""):
        if value is None:
            raise Broken("%s: null" % (where or "the whole"))
        if getattr(shape, "is_document_type", False):
            return value
        return getattr(self, "do_" + shape.type_name)(value, shape, where)

    def name_of(self, key, member):
        return member.serialization.get("name", key) if self.renamed else key

    def do_structure(self, value, shape, where):
        if not isinstance(value, dict):
            raise Broken("%s: not an object: %r" % (where, value))
        names = {self.name_of(key, member): key for key, member in shape.members.items()}
        got = {}
        for name, inner in value.items():
            if name not in names:
                raise Broken("%s: no such member; known are %s" % ("%s.%s" % (where, name), ", ".join(sorted(names))))
            got[names[name]] = self(inner, shape.members[names[name]], "%s.%s" % (where, name))
        for key in shape.required_members:
            if key not in got:
                raise Broken("%s.%s: missing" % (where, key))
        if getattr(shape, "is_tagged_union", False) and len(got) != 1:
            raise Broken("%s: exactly one of %s" % (where, ", ".join(sorted(names))))
        return got

    def size(self, size, shape, where, what):
        least, most = shape.metadata.get("min"), shape.metadata.get("max")
        if least is not None and size < least or most is not None and size > most:
            raise Broken("%s: %s %s is not in %s..%s" % (where, what, size, least, most))

    def do_list(self, value, shape, where):
        if not isinstance(value, (list, tuple)):
            raise Broken("%s: not a list: %r" % (where, value))
        self.size(len(value), shape, where, "length")
        return [self(item, shape.member, "%s[%d]" % (where, i)) for i, item in enumerate(value)]

    def do_map(self, value, shape, where):
        if not isinstance(value, dict):
            raise Broken("%s: not a map: %r" % (where, value))
        self.size(len(value), shape, where, "length")
        return {self(k, shape.key, "%s (key)" % where): self(v, shape.value, "%s[%s]" % (where, k)) for k, v in value.items()}

    def do_string(self, value, shape, where):
        if not isinstance(value, str):
            raise Broken("%s: not a text: %r" % (where, value))
        self.size(len(value), shape, where, "length")
        if self.lax:
            return value
        if shape.enum and value not in shape.enum:
            raise Broken("%s: %r is none of %s" % (where, value, ", ".join(shape.enum)))
        rule = shape.metadata.get("pattern")
        if rule and pattern(rule) and not pattern(rule).fullmatch(value):
            raise Broken("%s: %r does not match %s" % (where, value, rule))
        return value

    do_character = do_string

    def do_integer(self, value, shape, where):
        if isinstance(value, bool) or not isinstance(value, int):
            raise Broken("%s: not a whole number: %r" % (where, value))
        self.size(value, shape, where, "value")
        return value

    do_long = do_integer

    def do_float(self, value, shape, where):
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise Broken("%s: not a number: %r" % (where, value))
        self.size(value, shape, where, "value")
        return value

    do_double = do_float

    def do_boolean(self, value, _shape, where):
        if not isinstance(value, bool):
            raise Broken("%s: neither true nor false: %r" % (where, value))
        return value

    def do_timestamp(self, value, _shape, where):
        if isinstance(value, datetime.datetime):
            return value
        if not self.json:
            raise Broken("%s: not a time: %r" % (where, value))
        return moment(value, where)

    def do_blob(self, value, _shape, where):
        return blob(value, where) if self.json or isinstance(value, (bytes, bytearray)) else value
