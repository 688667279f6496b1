# SPDX-License-Identifier: Apache-2.0
"""The program in one file, and as a function, for both architectures: scripts/make-portable. Slow: `make check-deploy` runs it."""

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from lib.lambda_runtime import Runtime
from lib.server import QUIET, clean_env

ROOT = Path(__file__).resolve().parents[2]
pytestmark = pytest.mark.skipif("LEASEHOLD_DEPLOY" not in os.environ, reason="make check-deploy runs it")
ARCHITECTURES = {"amd64": ("x86_64-linux-gnu", []), "arm64": ("aarch64-linux-gnu", ["qemu-aarch64-static", "-L", "/usr/aarch64-linux-gnu"])}
NEWEST = (2, 34)  # of Amazon Linux 2023


@pytest.fixture(scope="module", params=ARCHITECTURES)
def built(request):
    """(folder, triplet, how it is run)"""
    triplet, wrapper = ARCHITECTURES[request.param]
    if request.param != subprocess.run(["dpkg", "--print-architecture"], capture_output=True, text=True).stdout.strip():
        missing = [tool for tool in (triplet + "-gcc", *wrapper[:1]) if not shutil.which(tool)]
        assert not missing, "scripts/setup deploy installs %s" % missing
    done = subprocess.run([ROOT / "scripts/make-portable", request.param], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return ROOT / "build-portable" / request.param, triplet, wrapper


def test_D17_it_needs_glibc_and_none_newer_than_2_34(built):
    folder, triplet, _ = built
    said = subprocess.run([triplet + "-objdump", "-p", "-T", str(folder / "leasehold")], check=True, capture_output=True, text=True).stdout
    assert set(re.findall(r"NEEDED +(\S+)", said)) <= {"libc.so.6", "libm.so.6", "ld-linux-aarch64.so.1", "ld-linux-x86-64.so.2"}
    assert max(tuple(map(int, v.split("."))) for v in re.findall(r"GLIBC_([0-9.]+)", said)) <= NEWEST


def test_D18_it_runs_as_a_server_would(built, tmp_path):
    folder, _, wrapper = built
    command = [*wrapper, str(folder / "leasehold")]
    said = subprocess.run([*command, "version"], check=True, capture_output=True, text=True).stdout
    assert said.startswith("leasehold ")
    for words in (("init", "--data", str(tmp_path / "data")), ("store", "check", "--data", str(tmp_path / "data"))):
        done = subprocess.run([*command, *words], env=clean_env(QUIET), capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=300)
        assert done.returncode == 0, (words, done.stdout, done.stderr)


# What depends on the processor and on the C library, not on the rest.
BASE_TESTS = ("addr", "base", "base64", "breaker", "http1", "jwt", "sigv4", "trace", "yaml")


@pytest.mark.skipif("LEASEHOLD_SLOW" not in os.environ, reason="make check-deploy SLOW=1 runs it")
def test_D18_the_unit_tests_of_the_base_pass_on_its_processor(built):
    folder, _, wrapper = built
    tests = ["tests/unit/test_" + name for name in BASE_TESTS]
    made = subprocess.run(["ninja", "-C", folder / "program", "--quiet", *tests], capture_output=True, text=True)
    assert made.returncode == 0, made.stdout[-3000:]
    for test in tests:
        done = subprocess.run([*wrapper, str(folder / "program" / test)], capture_output=True, text=True, cwd=ROOT)
        assert done.returncode == 0, (test, done.stdout[-2000:], done.stderr[-2000:])


@pytest.fixture
def bootstrap(built, tmp_path):
    """The program out of the archive, and how it is run."""
    folder, _, wrapper = built
    archive = folder / "lambda.zip"
    assert archive.stat().st_size < 10e6
    with zipfile.ZipFile(archive) as z:
        (entry,) = z.infolist()
        assert entry.filename == "bootstrap" and entry.external_attr >> 16 == 0o100755
        z.extract(entry, tmp_path)
    program = tmp_path / "bootstrap"
    program.chmod(0o755)
    assert program.read_bytes() == (folder / "leasehold").read_bytes()
    return program, wrapper


def seconds_until_the_first_call(program, wrapper, folder):
    """Of the processor. Not configured as a guard, it tells the runtime what is missing: a call like the first one, and then it ends."""
    runtime = Runtime()
    env = clean_env({"LEASEHOLD_QUARANTINE": "none", "AWS_LAMBDA_RUNTIME_API": runtime.address})
    try:
        process = subprocess.Popen([*wrapper, str(program), "lambda"], env=env, cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 1
        assert "must be guard" in runtime.init_error["errorMessage"], runtime.init_error
    finally:
        runtime.close()
    return used.ru_utime + used.ru_stime


def test_D19_the_function_is_small_and_asks_for_work_soon(bootstrap, tmp_path):
    program, wrapper = bootstrap
    # What the machine is busy with otherwise does not count: time of the processor, and the best of some.
    used = min(seconds_until_the_first_call(program, wrapper, tmp_path) for _ in range(1 if wrapper else 7))
    assert wrapper or used < 0.1, used


def test_D19_the_function_out_of_the_archive_passes_the_tests_of_the_guard_as_a_function(bootstrap):
    program, wrapper = bootstrap
    if wrapper:
        pytest.skip("emulated it would take hours; test_D18 shows that it runs")
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "tests/aws/test_lambda.py"], cwd=ROOT, env={**os.environ, "LEASEHOLD_BIN": str(program)},
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-5000:]
