# SPDX-License-Identifier: Apache-2.0
"""What is installed, as a Debian package and without one. Slow: `make check-deploy` runs it."""

import hashlib
import os
import re
import subprocess
from pathlib import Path

import pytest

from lib.server import binary

ROOT = Path(__file__).resolve().parents[2]
slow = pytest.mark.skipif("LEASEHOLD_DEPLOY" not in os.environ, reason="make check-deploy runs it")


def run(*args, **kw):
    got = subprocess.run([str(a) for a in args], capture_output=True, text=True, **kw)
    assert got.returncode == 0, (args, got.stdout[-3000:], got.stderr[-3000:])
    return got.stdout


def version():
    return re.search(r"version: '([\d.]+)'", (ROOT / "meson.build").read_text()).group(1)


def test_d30_program_build_and_changelogs_have_one_version():
    changelog = (ROOT / "deploy/debian/changelog").read_text()
    assert changelog.startswith("leasehold (%s)" % version())
    assert re.search(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.M).group(1) == version()
    assert run(binary(), "version") == "leasehold %s\n" % version()


def test_d17_no_symbol_is_newer_than_glibc_2_34():
    found = {tuple(map(int, v.split("."))) for v in re.findall(r"GLIBC_([\d.]+)", run("objdump", "-T", binary()))}
    assert max(found) <= (2, 34), max(found)


def test_d16_the_unit_is_right_and_closed(tmp_path):
    unit = (ROOT / "deploy/systemd/leasehold.service.in").read_text().replace("@bindir@/leasehold", binary())
    (tmp_path / "leasehold.service").write_text(unit)
    (tmp_path / "leasehold.socket").write_text((ROOT / "deploy/systemd/leasehold.socket").read_text())
    for name in ("leasehold.service", "leasehold.socket"):
        got = subprocess.run(["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", str(tmp_path / name)],
                             capture_output=True, text=True)
        mine = [line for line in (got.stdout + got.stderr).splitlines() if "leasehold" in line]
        assert got.returncode == 0 and not mine, got
    told = run("systemd-analyze", "security", "--offline=true", tmp_path / "leasehold.service")
    level = float(re.search(r"exposure level for \S+: ([\d.]+)", told).group(1))
    assert level <= 1.5, told[-2000:]


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    return Path(run(ROOT / "scripts/make-deb", tmp_path_factory.mktemp("deb")).strip())


@slow
def test_d14_the_package_is_clean_and_the_same_twice(package, tmp_path):
    other = tmp_path / "another place"
    env = {**os.environ, "TZ": "Pacific/Auckland", "LC_ALL": "C"}
    again = Path(run("sh", "-c", 'umask 027; exec "$@"', "sh", ROOT / "scripts/make-deb", other, env=env).strip())
    assert hashlib.sha256(package.read_bytes()).digest() == hashlib.sha256(again.read_bytes()).digest()
    told = run("lintian", "--info", "--display-level=>=info", "--allow-root", package)
    found = [line for line in told.splitlines() if re.match("[EWI]: ", line)]
    assert [line for line in found if "no-init.d-script" not in line] == [], told  # there is systemd only


@slow
def test_the_package_has_all_and_starts_nothing(package):
    files = run("dpkg-deb", "--contents", package)
    for path in ("usr/bin/leasehold", "usr/lib/systemd/system/leasehold.service", "usr/lib/systemd/system/leasehold.socket",
                 "usr/lib/sysusers.d/leasehold.conf", "usr/lib/tmpfiles.d/leasehold.conf", "usr/share/man/man1/leasehold.1.gz",
                 "usr/share/bash-completion/completions/leasehold", "usr/share/zsh/site-functions/_leasehold",
                 "usr/share/doc/leasehold/leasehold.conf.example", "usr/share/doc/leasehold/README.Debian"):
        assert "./%s\n" % path in files, path
    script = run("dpkg-deb", "--info", package, "postinst")
    assert "systemd-sysusers" in script and "systemd-tmpfiles" in script
    assert "deb-systemd-invoke start" not in script and "deb-systemd-helper enable" not in script
