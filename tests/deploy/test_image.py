# SPDX-License-Identifier: Apache-2.0
"""The container image, run as production runs it: read-only, without capabilities, as its own user. Slow: `make check-deploy` runs it."""

import json
import os
import platform
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from lib.server import ADMIN_TOKEN, TRACK_TOKEN, clean_env
from lib.wait import until

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [
    pytest.mark.skipif("LEASEHOLD_DEPLOY" not in os.environ, reason="make check-deploy runs it"),
    pytest.mark.skipif(os.geteuid() != 0, reason="buildah and namespaces need root here"),
]
UID = 10001


def run(*args, **kw):
    got = subprocess.run([str(a) for a in args], capture_output=True, text=True, **kw)
    assert got.returncode == 0, (args, got.stdout[-3000:], got.stderr[-3000:])
    return got.stdout


@pytest.fixture(scope="module")
def image():
    return build(run("dpkg", "--print-architecture").strip())


def build(arch):
    digest = run(ROOT / "scripts/make-image", arch).strip().splitlines()[-1]
    folder = ROOT / "build-image" / arch
    return {"digest": digest, "tar": folder / "leasehold.tar", "tree": folder / "tree"}


def unpack(tar, folder):
    """The files of a docker archive, and its settings."""
    folder.mkdir(exist_ok=True)
    run("tar", "-xf", tar, "-C", folder)
    manifest = json.loads((folder / "manifest.json").read_text())[0]
    root = folder / "root"
    root.mkdir()
    for layer in manifest["Layers"]:
        run("tar", "-xf", folder / layer, "-C", root)
    root.chmod(0o755)
    for made in ("proc", "dev"):
        (root / made).mkdir(exist_ok=True)
    return root, json.loads((folder / manifest["Config"]).read_text())


@pytest.fixture(scope="module")
def unpacked(image, tmp_path_factory):
    folder = tmp_path_factory.mktemp("image")
    yield unpack(image["tar"], folder)
    shutil.rmtree(folder, ignore_errors=True)


def test_d10_the_same_again_and_small(image):
    for path in (image["tree"] / "root").rglob("*"):
        if path.is_file():
            os.utime(path)
    assert run(ROOT / "scripts/make-image").strip().splitlines()[-1] == image["digest"]
    assert image["tar"].stat().st_size < 30e6


def test_the_image_says_how_it_is_run(unpacked):
    says_how_it_is_run(unpacked[1])


def says_how_it_is_run(settings):
    config = settings["config"]
    assert config["User"] == "%d:%d" % (UID, UID) and config["StopSignal"] == "SIGTERM"
    assert config["Entrypoint"] == ["/usr/bin/leasehold"] and config["Cmd"] == ["serve"]
    assert config["Healthcheck"]["Test"] == ["CMD", "/usr/bin/leasehold", "health"]
    assert list(config["Volumes"]) == ["/var/lib/leasehold"]


def test_d30_the_list_of_parts_is_what_the_program_loads(image):
    root = image["tree"] / "root"
    listed = {p["value"] for c in json.loads((image["tree"] / "sbom.json").read_text())["components"] for p in c["properties"]}
    loaded = set()
    for line in run("ldd", root / "usr/bin/leasehold").splitlines():
        words = line.split()
        loaded |= {w for w in (words[2:3] if "=>" in words else words[:1]) if w.startswith("/")}
    assert loaded <= listed
    there = {"/" + str(p.relative_to(root)) for p in root.rglob("*") if p.is_file()}
    assert there - listed == {"/usr/bin/leasehold", *WRITTEN}


WRITTEN = {"/etc/passwd", "/etc/group", "/etc/nsswitch.conf"}


def inside(root, *args, env, **kw):
    """The program in namespaces of its own, on a root that cannot be written; only the volume can."""
    script = """set -e
    mount --bind "$0" "$0" && mount -t tmpfs -o size=64m,mode=700,uid=%d,gid=%d none "$0/var/lib/leasehold"
    mount -t proc none "$0/proc" && mount --bind /dev "$0/dev"
    mount -o remount,ro,bind "$0"
    exec chroot --userspec=%d:%d "$0" "$@" """ % (UID, UID, UID, UID)
    return subprocess.Popen(["unshare", "--mount", "--pid", "--fork", "--ipc", "--uts", "sh", "-c", script, str(root), *args],
                            env=clean_env(env), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **kw)


def names_resolve(root, program, port):
    """By the image's own library, and the file that whoever runs an image puts into it."""
    address = {"LEASEHOLD_ADDRESS": "http://somewhere.example:" + port, "BROKER_ADMIN_TOKEN": ADMIN_TOKEN}
    asked = inside(root, *program, "claims", "show", env=address)
    said = asked.communicate(timeout=120)
    assert asked.returncode == 0, said


def test_d11_d12_it_runs_read_only_without_rights_and_ends_in_good_order(unpacked):
    runs_read_only(unpacked[0])


def runs_read_only(root, program=("/usr/bin/leasehold",)):
    volume = os.stat(root / "var/lib/leasehold")
    assert (volume.st_uid, volume.st_gid, volume.st_mode & 0o777) == (UID, UID, 0o700), "a volume takes its owner from the image"
    env = {"LEASEHOLD_LISTEN": "127.0.0.1:0", "LEASEHOLD_DATA": "/var/lib/leasehold", "BROKER_API_TOKEN": TRACK_TOKEN,
           "BROKER_ADMIN_TOKEN": ADMIN_TOKEN, "LOG_LEVEL": "INFO"}
    (root / "etc/hosts").write_text("127.0.0.1 somewhere.example\n")
    (root / "etc/hosts").chmod(0o644)  # its user reads it, whatever the mask is here
    began = time.monotonic()
    process = inside(root, *program, "serve", "--init", env=env)
    try:
        address = None
        while not address:
            line = process.stdout.readline()
            assert line, process.stderr.read()
            if '"message":"listening"' in line:
                address = json.loads(line)["address"]
        print("ready after %.2f s" % (time.monotonic() - began))
        port = address.rpartition(":")[2]
        assert subprocess.run([str(ROOT / "build/leasehold"), "health", "--ready", "--listen", "127.0.0.1:" + port], env=clean_env({})).returncode == 0
        names_resolve(root, program, port)
        server = until(lambda: program_of(process.pid, program[0]), "its process")
        status = Path("/proc/%d/status" % server).read_text()
        assert "CapEff:\t0000000000000000" in status and "Uid:\t%d" % UID in status
        with pytest.raises(OSError):
            Path("/proc/%d/root/usr/forbidden" % server).write_text("x")
        os.kill(server, 15)
        assert process.wait(90) == 0
        assert subprocess.run([str(ROOT / "build/leasehold"), "health", "--listen", "127.0.0.1:" + port], env=clean_env({}),
                              capture_output=True).returncode == 6
    finally:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the other architecture is that of this machine")
def test_d10_d11_d12_d30_the_image_for_the_other_architecture_is_small_runs_the_same_and_lists_its_parts(tmp_path):
    """Emulated: the emulator is put into the files of the image, and all that the program loads is the image's own."""
    image = build("arm64")
    assert build("arm64")["digest"] == image["digest"]
    assert image["tar"].stat().st_size < 30e6
    listed = {p["value"] for c in json.loads((image["tree"] / "sbom.json").read_text())["components"] for p in c["properties"]}
    there = {"/" + str(p.relative_to(image["tree"] / "root")) for p in (image["tree"] / "root").rglob("*") if p.is_file()}
    assert there - listed == WRITTEN and listed <= there
    root, settings = unpack(image["tar"], tmp_path / "image")
    assert settings["architecture"] == "arm64"
    says_how_it_is_run(settings)
    shutil.copy(shutil.which("qemu-aarch64-static"), root / "emulator")
    runs_read_only(root, ("/emulator", "/usr/bin/leasehold"))


class Storage:
    """buildah with layers of its own."""

    def __init__(self, folder):
        self.words = ["buildah", "--storage-driver", "vfs", "--root", folder / "layers", "--runroot", folder / "run"]

    def __call__(self, *args):
        env = {**os.environ, "PATH": os.environ["PATH"] + ":/usr/sbin"}
        return run(*self.words, *args, env=env).strip()


@pytest.mark.skipif("LEASEHOLD_SLOW" not in os.environ, reason="make check-deploy SLOW=1 runs it")
def test_d13_the_file_for_docker_builds_an_image_that_runs_the_same(tmp_path):
    """On a base that mmdebstrap makes: no registry is asked. It stands for the one that the file names by its digest."""
    run("mmdebstrap", "--variant=minbase", "--include=ca-certificates", "bookworm", tmp_path / "base.tar")
    context = tmp_path / "context"
    context.mkdir()
    run("sh", "-c", 'git -C "$0" archive HEAD | tar -x -C "$1"', ROOT, context)
    buildah = Storage(tmp_path)
    try:
        base = buildah("from", "scratch")
        buildah("add", "--quiet", base, tmp_path / "base.tar", "/")
        buildah("commit", "--quiet", "--rm", base, "localhost/base")
        buildah("bud", "--quiet", "--format", "docker", "--isolation", "chroot", "--layers=false", "--build-arg", "BASE=localhost/base",
                "--file", context / "deploy/container/Containerfile", "--tag", "localhost/leasehold", context)
        buildah("push", "--quiet", "localhost/leasehold", "docker-archive:%s" % (tmp_path / "image.tar"))
        root, config = unpack(tmp_path / "image.tar", tmp_path / "image")
        assert (tmp_path / "image.tar").stat().st_size < 30e6
        says_how_it_is_run(config)
        runs_read_only(root)
    finally:
        shutil.rmtree(tmp_path, ignore_errors=True)  # half a gigabyte


def program_of(pid, program):
    for child in Path("/proc/%d/task/%d/children" % (pid, pid)).read_text().split():
        if os.readlink("/proc/%s/exe" % child).endswith(program):
            return int(child)
    return None
