# SPDX-License-Identifier: Apache-2.0
"""Every case of a deployment is a test with its number in its name, and deploy/README.md says where each runs. And what needs no building to be seen."""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CASES = range(1, 32)
TIERS = ("make test", "make check-deploy", "make check-deploy SLOW=1")


def tier(*marks):
    """By the variables that the marks of a test look at."""
    text = " ".join(marks)
    return TIERS[2 if "LEASEHOLD_SLOW" in text else 1 if "LEASEHOLD_DEPLOY" in text else 0]


def read_tests(file):
    """(name, where it runs) of each test of a file."""
    module = ast.parse(file.read_text())
    named = {t.id: ast.unparse(n.value) for n in module.body if isinstance(n, ast.Assign) for t in n.targets if isinstance(t, ast.Name)}

    def with_names(text):
        return text + " " + " ".join(value for name, value in named.items() if re.search(r"\b%s\b" % name, text))

    for node in module.body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            yield node.name, tier(named.get("pytestmark", ""), *(with_names(ast.unparse(d)) for d in node.decorator_list))


def found():
    """{case: {where: files}}"""
    cases = {number: {} for number in CASES}
    for file in sorted([*ROOT.glob("tests/deploy/test_*.py"), *ROOT.glob("tests/ddb/test_*.py"), ROOT / "tests/api/test_leaving.py"]):
        for name, where in read_tests(file):
            for number in re.findall(r"(?<=_)[dD](\d+)(?=_)", name):
                cases[int(number)].setdefault(where, set()).add(str(file.relative_to(ROOT)))
    for file in sorted((ROOT / "deploy/cdk/test").glob("*.test.ts")):  # test_cdk.py runs them
        for number in re.findall(r"test\([\"`]D(\d+): ", file.read_text()):
            cases[int(number)].setdefault(TIERS[1], set()).add(str(file.relative_to(ROOT)))
    return cases


def listed():
    cases = {}
    for line in (ROOT / "deploy/README.md").read_text().splitlines():
        row = re.fullmatch(r"\| D(\d+) \| [^|]+ \|([^|]*)\|([^|]*)\|([^|]*)\|", line)
        if row:
            cells = {where: set(re.findall(r"`([^`]+)`", cell)) for where, cell in zip(TIERS, row.groups()[1:])}
            assert int(row[1]) not in cases, line
            cases[int(row[1])] = {where: files for where, files in cells.items() if files}
    return cases


def test_every_case_is_a_test_with_its_number_in_its_name():
    assert [number for number, where in found().items() if not where] == []


def test_the_list_says_where_each_case_runs():
    assert listed() == found()


def test_the_file_for_docker_ends_as_the_image_that_we_build():
    ours, theirs = ((ROOT / "deploy/container" / name).read_text() for name in ("Containerfile.scratch", "Containerfile"))
    assert theirs[theirs.index("\nENV ") :] == ours[ours.index("\nENV ") :]
    assert re.search(r"^ARG BASE=\S+@sha256:[0-9a-f]{64}$", theirs, re.M), "the base is named by its digest"
