# SPDX-License-Identifier: Apache-2.0
"""What the services' state machines have in common: a method for each operation, named after it, from members to members."""

import datetime

from aws.front.request import Refused

UTC = datetime.timezone.utc


class Machine:
    """self.world: the front, with its clock, ids and the other machines. Operations take (params, request) and run one at a time; ctl_NAME are for
    the tests. A machine that waits (long poll) says so in `slow`, and takes the lock itself."""

    slow = ()

    def __init__(self, world):
        self.world = world
        self.reset()

    def reset(self):
        pass

    def show(self):
        return {}

    def now(self):
        return self.world.now()

    def time(self, seconds=None):
        return datetime.datetime.fromtimestamp(int(self.now() if seconds is None else seconds), UTC)

    @staticmethod
    def fail(code, message="", status=400):
        raise Refused(code, message or code, status)

    def page(self, items, params, least=20, most="MaxResults", token="NextToken", name="Items"):
        """One page of a list, and the token behind it. Tokens are only good for the same question."""
        asked = {k: v for k, v in params.items() if k not in (token, most)}
        start = 0
        if token in params:
            start = self.world.tokens.get((params[token], repr(sorted(asked.items(), key=str))))
            if start is None:
                self.fail(self.bad_token, "the token is not one of ours for this question")
        end = start + min(params.get(most, least), least)
        got = {name: items[start:end]}
        if end < len(items):
            made = self.world.new_token()
            self.world.tokens[made, repr(sorted(asked.items(), key=str))] = end
            got[token] = made
        return got

    bad_token = "InvalidInputException"

    def wait(self, looks, seconds):
        return Wait(self, looks, seconds)

    @staticmethod
    def tags(params, name="Tags", key="Key", value="Value"):
        return {t[key]: t[value] for t in params.get(name, [])}

    @staticmethod
    def tag_list(tags, key="Key", value="Value"):
        return [{key: k, value: v} for k, v in tags.items()]

    def all_tags(self):
        """(ARN, tags) of all that has tags, for the tagging API."""
        return []


class Wait:
    """Something that takes AWS a while: over after so many looks at it or so many seconds of the front's clock. looks -1: never by looking."""

    def __init__(self, machine, looks, seconds):
        self.machine, self.looks, self.end = machine, looks, machine.now() + seconds

    def is_over(self, looked=True):
        if self.looks == 0 or self.machine.now() >= self.end:
            return True
        if looked and self.looks > 0:
            self.looks -= 1
        return False
