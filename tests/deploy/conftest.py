# SPDX-License-Identifier: Apache-2.0
"""What could not be tried is said where it is seen: at the end of the run."""

import os

from lib import moto


def pytest_terminal_summary(terminalreporter):
    if "LEASEHOLD_DEPLOY" in os.environ and not moto.version():
        terminalreporter.section("The stacks were NOT deployed on moto (D6, D7, D8, D29): the first python3 on PATH has none", "!", red=True)
