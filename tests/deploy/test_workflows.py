# SPDX-License-Identifier: Apache-2.0
"""D23: the workflows: written well, pinned, without standing rights or long-lived keys, and what they run is there."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
TRUSTED = ("actions/", "aws-actions/")
yaml = pytest.importorskip("yaml")


def steps(workflow):
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


@pytest.fixture(params=WORKFLOWS, ids=lambda p: p.stem)
def workflow(request):
    return yaml.safe_load(request.param.read_text())


def test_D23_there_are_five():
    assert [p.stem for p in WORKFLOWS] == ["ci", "deploy", "destroy", "release", "weekly"]


@pytest.mark.skipif(not shutil.which("yamllint"), reason="no yamllint; scripts/setup deploy installs it")
def test_D23_they_are_good_yaml():
    rules = "{extends: default, rules: {line-length: disable, document-start: disable, truthy: {check-keys: false}, comments: disable}}"
    done = subprocess.run(["yamllint", "--strict", "-d", rules, ".github"], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


def test_D23_nothing_has_rights_that_it_was_not_given(workflow):
    assert workflow["permissions"] == {}
    assert "concurrency" in workflow
    for job in workflow["jobs"].values():
        assert job["permissions"] and set(job["permissions"].values()) <= {"read", "write"}
        writes = {name for name, right in job["permissions"].items() if right == "write"}
        assert writes <= {"id-token", "attestations", "contents", "issues"}, writes
        # Who can write, or become a role, waits for an approval; provenance and issues are no such thing.
        assert not writes & {"contents"} or "environment" in job


def test_D23_actions_are_pinned_and_of_known_owners(workflow):
    for used in [step["uses"] for step in steps(workflow) if "uses" in step]:
        assert re.fullmatch(r"[\w.-]+/[\w.-]+@(v[0-9]+|[0-9a-f]{40})", used), used
        assert used.endswith(tuple("0123456789abcdef")) and (used.startswith(TRUSTED) or len(used.split("@")[1]) == 40), used


def test_D23_what_others_write_never_gets_into_a_script(workflow):
    for script in [step["run"] for step in steps(workflow) if "run" in step]:
        assert "${{" not in script, script


def test_D23_roles_by_openid_connect_and_for_an_hour_at_most(workflow):
    text = str(workflow)
    assert "aws-access-key" not in text and "AWS_SECRET" not in text
    for step in [s for s in steps(workflow) if s.get("uses", "").startswith("aws-actions/configure")]:
        assert step["with"]["role-to-assume"] and int(step["with"]["role-duration-seconds"]) <= 3600
    for checkout in [s for s in steps(workflow) if s.get("uses", "").startswith("actions/checkout")]:
        assert checkout["with"]["persist-credentials"] is False


def test_D23_what_they_make_is_there(workflow):
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    for script in [step["run"] for step in steps(workflow) if "run" in step]:
        for target in re.findall(r"(?:^|[;&]|\bdo)\s*make ([a-z-]+)", script, re.M):
            assert target in targets, target
