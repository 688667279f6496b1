# SPDX-License-Identifier: Apache-2.0
"""After all other tests of this folder: every permission that a policy gives was used by its role. The front has kept who called what."""

from pathlib import Path

import pytest

from lib.aws_front import policies

# AWS itself uses them on our behalf.
NEVER_CALLED = {"kms:Decrypt", "kms:GenerateDataKey", "iam:PassRole"}


def test_every_permission_was_used(one_front, request):
    ran = {Path(item.fspath).name for item in request.session.items}
    own_front = ("every_call", "instances_on_aws")  # and run in make check only
    missing = {path.name for path in Path(__file__).parent.glob("test_*.py") if not any(word in path.name for word in own_front)} - ran
    if missing:
        pytest.skip("did not run with: %s" % ", ".join(sorted(missing)))
    used = {tuple(pair) for pair in one_front.ask("used")}
    unused = [(role, action) for role, actions in policies().items() for action in actions
              if action != "*" and action not in NEVER_CALLED and (role, action) not in used]
    assert not unused, unused
