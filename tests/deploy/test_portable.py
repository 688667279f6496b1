# SPDX-License-Identifier: Apache-2.0
"""The program in one file, and as a function, for both architectures: scripts/make-portable. Slow: `make check-deploy` runs it."""

import os
import re
import shutil
import subprocess
import time
import zipfile
from pathlib import Path

import pytest

from lib.lambda_runtime import Function, Runtime
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


def test_D19_the_function_is_small_and_asks_for_work_soon(built, tmp_path):
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
    runtime = Runtime()
    env = {"QUARANTINE_MODE": "none"}
    # Not configured as a guard: it starts, and tells the runtime what is missing. That is a call like the first one.
    function = Function(runtime, tmp_path / "data", env, command=[*wrapper, str(program), "lambda"])
    try:
        began = time.monotonic()
        function.start()
        assert function.end(120) == 1
        took = time.monotonic() - began
        assert "must be guard" in runtime.init_error["errorMessage"], runtime.init_error
        assert wrapper or took < 10, took  # the figure of 0.1 s is of a quiet machine: see docs/production.md
    finally:
        function.kill()
        runtime.close()
