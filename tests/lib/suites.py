# SPDX-License-Identifier: Apache-2.0
"""A suite of tests/api once more, with other fixtures: those of the module that asks for it. Its asserts are rewritten if that module has said so before."""

import importlib


def suite(name, left_out):
    """A class for pytest with the tests of tests/api/NAME.py; left_out: {name: why}."""
    found = {n: t for n, t in vars(importlib.import_module("api." + name)).items() if n.startswith("test_") and callable(t)}
    assert set(left_out) <= set(found), "no longer in %s: %s" % (name, set(left_out) - set(found))
    return type(name, (), {n: staticmethod(t) for n, t in found.items() if n not in left_out})
