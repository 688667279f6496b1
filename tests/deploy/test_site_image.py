# SPDX-License-Identifier: Apache-2.0
"""The image of tenants' tasks on AWS, built and run. Slow: `make check-deploy` runs it. What its programs do in detail is in tests/aws/test_site_tasks.py."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from lib.http import Broken, Client
from lib.mariadb import MariaDb
from lib.ports import free_port
from lib.wait import until

ROOT = Path(__file__).resolve().parents[2]
pytestmark = [
    pytest.mark.skipif("LEASEHOLD_DEPLOY" not in os.environ, reason="make check-deploy runs it"),
    pytest.mark.skipif(os.geteuid() != 0, reason="buildah and namespaces need root here"),
]
HOME = "https://sites.example.com/tenant/acme"
SIGNIN = {"provider": "custom", "client_id": "c", "client_secret": "s", "scope": "openid email profile", "authorize_url": "https://a.example/authorize",
          "token_url": "https://a.example/token", "userinfo_url": "https://a.example/userInfo"}


@pytest.fixture(scope="module")
def image(tmp_path_factory):
    """Its files and its settings."""
    tar = Path(os.environ.get("LEASEHOLD_SITE_IMAGE", ROOT / "build-site-image/site.tar"))
    if "LEASEHOLD_SITE_IMAGE" not in os.environ:
        subprocess.run([ROOT / "scripts/make-site-image"], check=True, timeout=3600)
    folder = tmp_path_factory.mktemp("image")
    subprocess.run(["tar", "-xf", tar, "-C", folder], check=True)
    manifest = json.loads((folder / "manifest.json").read_text())[0]
    root = folder / "root"
    root.mkdir()
    for layer in manifest["Layers"]:
        subprocess.run(["tar", "-xf", folder / layer, "-C", root, "--exclude=dev/*"], check=True)
    root.chmod(0o755)
    yield root, json.loads((folder / manifest["Config"]).read_text())["config"]
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    """As ECS gives it to a task."""
    database = MariaDb(tmp_path_factory.mktemp("mariadb"))
    database.ask("CREATE DATABASE tenant_acme_db; CREATE USER tenant_acme_user@'%' IDENTIFIED BY 'Secret-0123' REQUIRE SSL; "
                 "GRANT ALL ON tenant_acme_db.* TO tenant_acme_user@'%'")
    extra = "define('MYSQL_CLIENT_FLAGS', MYSQLI_CLIENT_SSL); define('WP_HOME', '%s'); define('WP_SITEURL', '%s');" % (HOME, HOME)
    yield {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LEASEHOLD_SITE_PATH": "/tenant/acme", "LEASEHOLD_SITE_URL": HOME,
           "WORDPRESS_DB_HOST": "127.0.0.1:%d" % database.port, "WORDPRESS_DB_NAME": "tenant_acme_db", "WORDPRESS_DB_USER": "tenant_acme_user",
           "WORDPRESS_DB_PASSWORD": "Secret-0123", "WORDPRESS_CONFIG_EXTRA": extra, "LEASEHOLD_ADMIN_USER": "admin", "LEASEHOLD_ADMIN_PASSWORD": "Admin-0123456789",
           "LEASEHOLD_SIGNIN": json.dumps(SIGNIN), "LEASEHOLD_SITE_TITLE": "Acme", "LEASEHOLD_SITE_EMAIL": "it@acme.example"}
    database.close()


def inside(image, env, *command, **kw):
    script = 'set -e; mount -t proc none "$0/proc"; mount --rbind /dev "$0/dev"; exec chroot "$0" "$@"'
    return subprocess.Popen(["unshare", "--mount", "sh", "-c", script, str(image[0]), *command], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            text=True, **kw)


def said_by(process):
    said, _ = process.communicate(timeout=600)
    return process.returncode, said


def test_it_says_how_it_is_run(image):
    assert image[1]["Cmd"] == ["leasehold-site"] and not image[1].get("Entrypoint") and image[1]["StopSignal"] == "SIGTERM"


@pytest.mark.parametrize("command", [("aws", "--version"), ("mariadb-dump", "--version"), ("curl", "--version"), ("php", "-r", "exit(extension_loaded('mysqli') ? 0 : 1);")])
def test_what_its_programs_need_is_there(image, environment, command):
    status, said = said_by(inside(image, environment, *command))
    assert status == 0, said


def test_a_site_is_installed_and_served(image, environment):
    status, said = said_by(inside(image, environment, "leasehold-task", "install"))
    assert status == 0 and '"installed":true' in said, said
    port = free_port()
    process = inside(image, {**environment, "LEASEHOLD_SITE_LISTEN": "127.0.0.1:%d" % port}, "leasehold-site")

    def page():
        client = Client(("127.0.0.1", port), {"Host": "sites.example.com", "X-Forwarded-Proto": "https"})
        try:
            return client.get("/tenant/acme/")
        except (OSError, Broken):
            assert process.poll() is None, process.stdout.read()
            return None
        finally:
            client.close()

    try:
        got = until(page, "the site answers", 120)
        assert got.status == 200 and b"<title>Acme</title>" in got.body
    finally:
        process.terminate()
        status, said = said_by(process)
    assert status == 0, said
