# SPDX-License-Identifier: Apache-2.0
"""What is installed, as a Debian package and without one. Slow: `make check-deploy` runs it."""

import hashlib
import json
import os
import re
import subprocess
from pathlib import Path

import pytest

from lib.server import binary

ROOT = Path(__file__).resolve().parents[2]
deploy = pytest.mark.skipif("LEASEHOLD_DEPLOY" not in os.environ, reason="make check-deploy runs it")
slow = pytest.mark.skipif("LEASEHOLD_SLOW" not in os.environ, reason="make check-deploy SLOW=1 runs it")
root_only = pytest.mark.skipif(os.geteuid() != 0, reason="chroots need root")


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
    assert json.loads((ROOT / "deploy/cdk/package.json").read_text())["version"] == version()
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


@deploy
def test_d14_the_package_is_clean_and_the_same_twice(package, tmp_path):
    other = tmp_path / "another place"
    env = {**os.environ, "TZ": "Pacific/Auckland", "LC_ALL": "C"}
    again = Path(run("sh", "-c", 'umask 027; exec "$@"', "sh", ROOT / "scripts/make-deb", other, env=env).strip())
    assert hashlib.sha256(package.read_bytes()).digest() == hashlib.sha256(again.read_bytes()).digest()
    told = run("lintian", "--info", "--display-level=>=info", "--allow-root", package)
    found = [line for line in told.splitlines() if re.match("[EWI]: ", line)]
    assert [line for line in found if "no-init.d-script" not in line] == [], told  # there is systemd only


@deploy
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


# In a Debian of its own.


@pytest.fixture(scope="module")
def debian(tmp_path_factory):
    """An archive of the smallest Debian there is, which finds its packages where this machine does."""
    base = tmp_path_factory.mktemp("debian") / "base.tar.gz"
    # With systemd, which makes folders of its own when it comes.
    run("mmdebstrap", "--variant=minbase", "--include=systemd,ca-certificates", "--customize-hook=copy-in /etc/hosts /etc", "bookworm", base)
    return base


@slow
@root_only
def test_d15_it_is_installed_removed_and_purged_and_leaves_only_what_it_says(package, debian, tmp_path):
    # /etc/leasehold and /var/lib/leasehold say what is lent: they stay, also when it is purged.
    mirror = next(line.split()[1] for line in run("apt-get", "indextargets", "--format", "x $(SITE)").splitlines() if "/debian" in line)
    got = subprocess.run(["piuparts", "--basetgz", str(debian), "--distribution", "bookworm", "--mirror", mirror + " main", "--no-eatmydata",
                          "--ignore-regex", "^/(etc|var/lib)/leasehold(/.*)?$", "--ignore", "/etc/hosts", "--tmpdir", str(tmp_path), str(package)],
                         capture_output=True, text=True)
    assert got.returncode == 0, got.stdout[-5000:] + got.stderr[-1000:]
    assert "PASS: All tests." in got.stdout


class Debian:
    """The archive unpacked: a machine whose systemd is a script that writes down what it was told."""

    SYSTEMCTL = """#!/bin/sh
echo "$*" >>/var/log/systemctl
case $* in *is-enabled*) echo enabled ;; esac
"""

    def __init__(self, base, root):
        self.root = root
        root.mkdir()
        run("tar", "-xf", base, "-C", root)

    def __call__(self, script, code=0):
        words = 'mount -t proc none "$0/proc" && mkdir -p "$0/run/systemd/system" && exec chroot "$0" sh -euc "$1"'
        env = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive", "HOME": "/root", "LC_ALL": "C.UTF-8"}
        got = subprocess.run(["unshare", "--mount", "--pid", "--fork", "sh", "-c", words, str(self.root), script],
                             capture_output=True, text=True, env=env, stdin=subprocess.DEVNULL)
        assert got.returncode == code, (script, got.returncode, got.stdout[-3000:], got.stderr[-3000:])
        return got.stdout + got.stderr

    def install(self, package):
        (self.root / "tmp/leasehold.deb").write_bytes(Path(package).read_bytes())
        return self("apt-get install --yes --quiet --allow-downgrades --no-install-recommends /tmp/leasehold.deb")

    def fake_systemctl(self):
        (self.root / "usr/local/systemctl").write_text(self.SYSTEMCTL)
        self("chmod 755 /usr/local/systemctl; dpkg-divert --local --rename --add /bin/systemctl; ln -s /usr/local/systemctl /bin/systemctl")

    def told(self):
        log = self.root / "var/log/systemctl"
        text = log.read_text() if log.exists() else ""
        log.unlink(missing_ok=True)
        return text


def older(package, folder):
    """LEASEHOLD_OLD_DEB, or where there is none the same package under an older number."""
    if "LEASEHOLD_OLD_DEB" in os.environ:
        return os.environ["LEASEHOLD_OLD_DEB"]
    run("dpkg-deb", "--raw-extract", package, folder)
    control = folder / "DEBIAN/control"
    control.write_text(re.sub(r"(?m)^Version: .*$", "Version: %s~older" % version(), control.read_text()))
    return run("dpkg-deb", "--build", "--root-owner-group", folder, str(folder) + ".deb") and str(folder) + ".deb"


@slow
@root_only
def test_d15_an_upgrade_keeps_the_data_and_restarts_only_what_takes_it(package, debian, tmp_path):
    machine = Debian(debian, tmp_path / "root")
    machine("apt-get update --quiet")
    before = older(package, tmp_path / "older")
    assert "not started yet" in machine.install(before)
    machine.fake_systemctl()
    machine("leasehold init --file /etc/leasehold/leasehold.conf </dev/null")
    assert machine("stat -c '%U %a' /var/lib/leasehold/leasehold.db").split() == ["leasehold", "600"]
    machine.told()

    store = machine.root / "var/lib/leasehold/leasehold.db"
    kept = hashlib.sha256(store.read_bytes()).digest()
    machine.install(package)
    assert "restart leasehold.service" in machine.told()
    assert hashlib.sha256(store.read_bytes()).digest() == kept
    assert list((machine.root / "var/lib/leasehold").glob("before-*.db")), "a backup is beside it"

    # Settings that the new program does not take: the old one goes on.
    machine.install(before)
    machine("echo LEASEHOLD_NO_SUCH_THING=1 >>/etc/leasehold/leasehold.conf")
    machine.told()
    assert "the old one still runs" in machine.install(package)
    assert "restart leasehold.service" not in machine.told()

    machine("apt-get purge --yes --quiet leasehold")
    for file in ("var/lib/leasehold/leasehold.db", "etc/leasehold/leasehold.conf"):
        assert (machine.root / file).exists(), "purging keeps what says what is lent"
