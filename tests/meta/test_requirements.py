# SPDX-License-Identifier: Apache-2.0
"""docs/requirements.md: every requirement has its row, and every test named there exists."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = (ROOT / "docs" / "requirements.md").read_text()
ROWS = [line for line in DOCUMENT.splitlines() if line.startswith("|")]
NAMED = sorted(set(re.findall(r"`([\w.]+\.(?:c|py|ts)):(\w+)`", DOCUMENT)))
WANTED = ["FR%d" % n for n in range(1, 39)] + [
    "NFR-" + n for n in "S1 S2 S3 S4 R1 R2 R3 R4 I1 I2 I3 I4 O1 O2 O3 O4 O5 D1 P1".split()]


def find_file(name):
    found = [p for folder in ("tests", "deploy/cdk/test") for p in (ROOT / folder).glob("**/" + name) if p.name == name]
    assert len(found) < 2, "two files are called " + name
    return found[0] if found else None


def has_test(file, test):
    # A test of the stacks is named by what its title begins with.
    pattern = {".c": r"^TEST\(%s\)", ".py": r"^def %s\(", ".ts": r"^\s*test\([\"`]%s: "}[file.suffix]
    return re.search(pattern % test, file.read_text(), re.M) is not None


@pytest.mark.parametrize("file,test", NAMED, ids=[":".join(n) for n in NAMED])
def test_every_test_named_there_exists(file, test):
    path = find_file(file)
    assert path, "there is no file tests/**/%s" % file
    assert has_test(path, test), "%s has no test %s" % (path.relative_to(ROOT), test)


@pytest.mark.parametrize("requirement", WANTED)
def test_every_requirement_has_one_row_with_a_test_or_is_open(requirement):
    rows = [r for r in ROWS if r.startswith("| %s |" % requirement)]
    assert len(rows) == 1, requirement
    assert re.search(r"`[\w.]+\.(?:c|py|ts):\w+`", rows[0]) or "**open**" in rows[0], rows[0]


def test_no_row_is_of_a_requirement_that_does_not_exist():
    ids = [m.group(1) for m in (re.match(r"\| (N?FR[\w-]+) \|", r) for r in ROWS) if m]
    assert sorted(ids) == sorted(WANTED)


@pytest.mark.parametrize("kind,count", [("p", 20), ("h", 18), ("r", 11), ("x", 22)])
def test_every_conformance_case_is_a_test_with_its_name(kind, count):
    texts = "\n".join(p.read_text() for p in (ROOT / "tests").glob("**/test_*.*") if p.suffix in (".c", ".py"))
    missing = [n for n in range(1, count + 1) if not re.search(r"(?:TEST\(|def test_|_)%s%d_\w+\(?" % (kind, n), texts)]
    assert not missing, "%s: no test for %s" % (kind.upper(), missing)
