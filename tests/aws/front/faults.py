# SPDX-License-Identifier: Apache-2.0
"""Faults to order. A rule says which requests it means, how many of them pass first, how many it strikes, and what happens:

    throttle      the service's own word for "too fast", nothing done
    error         `code` with `status` and `message`, nothing done; 500 is InternalFailure unless a code is given
    deny          AccessDenied for the permission, nothing done
    cut_before    the connection ends without an answer, nothing done
    cut_after     it is done, then the connection ends without an answer
    done_error    it is done, then the answer is `code` with `status`
    delay         `ms` later all goes its way
    hold_before   it waits, not done, until it is released or the caller is gone
    hold_after    it is done, the answer waits
    reply         `body` (JSON members of the output) is the answer, nothing done
    garbage       an answer as it stands, with status 200: `text`

`where` names service, operation, role (of the caller), account (of the caller); all that are given must agree. count -1: for ever."""

import threading

THROTTLES = {  # code, status
    "organizations": ("TooManyRequestsException", 400), "ce": ("LimitExceededException", 400), "sts": ("Throttling", 400),
    "sesv2": ("TooManyRequestsException", 429), "sns": ("Throttled", 429), "scheduler": ("ThrottlingException", 429),
    "sqs": ("RequestThrottled", 400), "iam": ("Throttling", 400), "dynamodb": ("ProvisionedThroughputExceededException", 400),
}
KINDS = {"throttle", "error", "deny", "cut_before", "cut_after", "done_error", "delay", "hold_before", "hold_after", "reply", "garbage"}


class Rule:
    def __init__(self, number, spec):
        self.number, self.spec = number, spec
        self.kind, self.where = spec["kind"], spec.get("where", {})
        self.skip, self.count = spec.get("skip", 0), spec.get("count", 1)
        self.hits, self.holding = 0, 0
        self.released = threading.Event()
        unknown = set(spec) - {"kind", "where", "skip", "count", "code", "status", "message", "ms", "body", "text"}
        unknown |= set(self.where) - {"service", "operation", "role", "account"}
        if self.kind not in KINDS or unknown:
            raise ValueError("no such fault: %r %s" % (self.kind, sorted(unknown)))

    def strikes(self, facts):
        if any(facts.get(k) != v for k, v in self.where.items()) or self.count == 0:
            return False
        if self.skip:
            self.skip -= 1
            return False
        self.count -= self.count > 0
        self.hits += 1
        return True

    def throttle(self, service):
        return THROTTLES.get(service, ("ThrottlingException", 400))

    def show(self):
        return {**self.spec, "number": self.number, "hits": self.hits, "holding": self.holding, "left": self.count, "skip": self.skip}


class Faults:
    def __init__(self):
        self.lock, self.rules, self.last = threading.Lock(), [], 0

    def add(self, spec):
        with self.lock:
            self.last += 1
            self.rules.append(Rule(self.last, spec))
            return self.last

    def clear(self):
        with self.lock:
            for rule in self.rules:
                rule.released.set()
            self.rules = []

    def release(self, number=None):
        with self.lock:
            for rule in self.rules:
                if number in (None, rule.number):
                    rule.count = 0
                    rule.released.set()

    def struck(self, facts):
        """The first rule that means this request, or None."""
        with self.lock:
            return next((rule for rule in self.rules if rule.strikes(facts)), None)

    def show(self):
        with self.lock:
            return [rule.show() for rule in self.rules]
