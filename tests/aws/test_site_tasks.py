# SPDX-License-Identifier: Apache-2.0
"""The programs of the image for tenants' tasks (deploy/aws/site), run here with what the driver has told ECS: real nginx, PHP, WordPress and MariaDB; the bucket
is moto's, the identity pool a small stand-in."""

import json
import os
import re
import signal
import urllib.parse

import pytest

from aws.front import names
from lib import moto
from lib.mariadb import MariaDb
from lib.server import ADMIN_TOKEN
from lib.site_image import Pool, SiteImage, environment_of
from lib.sites import AwsSites
from lib.wait import until

ADA = {"sub": "0123456789abcdef", "email": "Ada@acme.example", "email_verified": "true", "name": "Ada"}
HOME = "https://%s/tenant/acme" % names.SITE_DOMAIN


class Place:
    """A tenant that the driver has made on the front and on MariaDB, and its image."""

    def __init__(self, make, front, database, bucket):
        self.front, self.bucket = front, bucket
        server = AwsSites(front, database).start(make)
        client = server.client({"Authorization": "Bearer " + ADMIN_TOKEN})
        assert client.request("POST", "/v1.0/tenants/tenant-acme/instances", body={"organizationName": "Acme", "contactEmail": "it@acme.example"}).status == 202
        until(lambda: client.get("/v1.0/tenants/-/instances/tenant-acme").json["status"] == "ACTIVE", "it is active", 180, 0.1)
        self.pool = Pool(dict(ADA))
        # PHP takes localhost for a socket.
        self.here = {"WORDPRESS_DB_HOST": "127.0.0.1:%d" % database.port}
        order = next(t for t in front.state("ecs")["tasks"] if t["command"] == ["leasehold-task", "install"])
        signin = json.loads(environment_of(front, "tenant-acme-install")["LEASEHOLD_SIGNIN"])
        assert signin["authorize_url"].startswith("https://bbws-test-") and signin["client_secret"]
        for name in ("authorize", "token", "userInfo"):
            signin[name.lower() + "_url"] = "%s/%s" % (self.pool.url, name)
        self.task_env = {**environment_of(front, "tenant-acme-install", order["environment"]), **self.here, "LEASEHOLD_SIGNIN": json.dumps(signin)}
        self.signin = signin
        self.image = SiteImage(bucket and bucket.url)

    def serve(self):
        self.image.start({**environment_of(self.front, "tenant-acme-wordpress"), **self.here})

    def task(self, what, **more):
        return self.image.task(what, {**self.task_env, **more})

    def done(self, what, **more):
        got = self.task(what, **more)
        assert got.returncode == 0, got.stderr + got.stdout
        return json.loads(got.stdout.splitlines()[-1]) if got.stdout else None

    def sign_in_with_password(self, user, password):
        body = urllib.parse.urlencode({"log": user, "pwd": password, "testcookie": "1", "redirect_to": HOME + "/wp-admin/"}).encode()
        return self.image.request("POST", "/tenant/acme/wp-login.php", cookies="wordpress_test_cookie=WP%20Cookie%20check", body=body,
                                  headers={"Content-Type": "application/x-www-form-urlencoded"})

    def close(self):
        self.image.close()
        self.pool.close()


def cookies_of(reply):
    return "; ".join(c.split(";")[0] for c in reply.all("Set-Cookie") if not re.match(r"[^=]*=( |%20|;|$)", c))


@pytest.fixture(scope="module")
def place(make_for_module, own_front, tmp_path_factory):
    database = MariaDb(tmp_path_factory.mktemp("mariadb"))
    bucket = moto.Moto() if moto.version() else None
    if bucket:
        bucket.client("s3").create_bucket(Bucket=names.ARCHIVE_BUCKET)
    made = Place(make_for_module, own_front, database, bucket)
    made.serve()
    # Nobody has installed it: the health checks of container and load balancer are content, and the installer is at no other address of the listener.
    assert made.image.get("/").status == 302 and made.image.get("/wp-admin/install.php").status == 200
    assert made.done("install")["installed"] is True
    yield made
    made.close()
    if bucket:
        bucket.close()
    database.close()


def test_installing_again_changes_nothing(place):
    assert place.done("install")["installed"] is False
    got = place.task("install", LEASEHOLD_SIGNIN="{}")
    assert got.returncode != 0 and "LEASEHOLD_SIGNIN" in got.stderr


def test_the_site_is_served_below_its_path(place):
    image = place.image
    front_page = image.get("/tenant/acme/")
    assert front_page.status == 200 and b"<title>Acme</title>" in front_page.body
    assert image.get("/", host="10.0.0.7").status < 400 and image.get("/wp-admin/install.php", host="10.0.0.7").status == 200, "health checks"
    assert image.get("/tenant/acme").status == 301
    script = re.search(rb"src=['\"]%s(/wp-[^'\"]*\.js)" % re.escape(HOME).encode(), image.get("/tenant/acme/wp-login.php").body).group(1).decode()
    assert image.get("/tenant/acme" + script).status == 200
    assert image.get("/tenant/acme/hello-world/").status == 200, "pretty links"
    assert image.get("/tenant/acme/themes/twentytwentythree/style.css").status == 200
    for hidden in ("wp-config.php", "leasehold/settle.php", "leasehold/mu-plugins/leasehold.php", ".git/config"):
        assert image.get("/tenant/acme/" + hidden).status == 404, hidden
    assert image.get("/tenant/other/").status == 404
    (image.root / "wp-content/uploads/evil.php").write_text("<?php echo 'run';")
    assert image.get("/tenant/acme/wp-content/uploads/evil.php").status == 404
    (image.root / "wp-content/uploads/evil.php").unlink()


def test_the_administrator_has_the_secrets_password(place):
    env = place.task_env
    got = place.sign_in_with_password(env["LEASEHOLD_ADMIN_USER"], env["LEASEHOLD_ADMIN_PASSWORD"])
    assert got.status == 302 and got.header("Location") == HOME + "/wp-admin/"
    assert all("secure" in c.lower() for c in got.all("Set-Cookie") if c.startswith("wordpress_sec")) and "wordpress_sec" in str(got.all("Set-Cookie"))
    assert place.image.get("/tenant/acme/wp-admin/", cookies=cookies_of(got)).status == 200
    assert place.sign_in_with_password("admin", "wrong").status == 200


def begin(place):
    page = place.image.get("/tenant/acme/wp-login.php").body.decode()
    link = re.search(r'href="%s(/wp-login.php\?leasehold=signin)"' % re.escape(HOME), page).group(1)
    got = place.image.get("/tenant/acme" + link)
    assert got.status == 302 and got.header("Location").startswith(place.pool.url + "/authorize?")
    return cookies_of(got), dict(urllib.parse.parse_qsl(got.header("Location").split("?")[1]))


def come_back(place, cookies, **query):
    return place.image.get("/tenant/acme/callback?" + urllib.parse.urlencode(query), cookies=cookies)


def profile(place, cookies):
    return place.image.get("/tenant/acme/wp-admin/profile.php", cookies=cookies).status


def test_a_person_of_the_pool_signs_in_and_is_signed_out(place):
    cookies, asked = begin(place)
    assert (asked["redirect_uri"], asked["scope"], asked["client_id"]) == (HOME + "/callback", "openid email profile", place.signin["client_id"])
    got = come_back(place, cookies, code="good", state=asked["state"])
    assert got.status == 302 and got.header("Location") == HOME + "/wp-admin/", got.body
    assert place.pool.asked[-1]["client_secret"] == place.signin["client_secret"] and place.pool.asked[-1]["code_verifier"]
    signed_in = cookies_of(got)
    assert profile(place, signed_in) == 200 and profile(place, "") == 302
    assert place.done("signout", LEASEHOLD_PERSON="nobody@acme.example") == {"done": True, "known": False} and profile(place, signed_in) == 200
    assert place.done("signout", LEASEHOLD_PERSON="ada@acme.example") == {"done": True, "known": True} and profile(place, signed_in) == 302


def test_what_the_pool_did_not_say_is_refused(place):
    cookies, asked = begin(place)
    assert come_back(place, cookies, code="good", state="another").status == 403
    assert come_back(place, "", code="good", state=asked["state"]).status == 403
    assert come_back(place, cookies, code="bad", state=asked["state"]).status == 403
    place.pool.person["email_verified"] = "false"
    try:
        assert come_back(place, cookies, code="good", state=asked["state"]).status == 403
    finally:
        place.pool.person["email_verified"] = "true"


def test_archived_restored_and_dropped(place):
    if not place.bucket:
        pytest.skip("the first python3 on PATH has no moto")
    uploads, bucket = place.image.root / "wp-content/uploads", place.bucket.client("s3")
    (uploads / "kept.txt").write_text("kept")
    name = "b-1"
    made = place.done("archive", LEASEHOLD_ARCHIVE_NAME=name)
    stored = bucket.list_objects_v2(Bucket=names.ARCHIVE_BUCKET)["Contents"]
    assert [(o["Key"], o["Size"]) for o in stored] == [("test/tenant-acme/%s.tar.gz" % name, made["bytes"])] and made["archive"] == name
    (uploads / "later.txt").write_text("later")
    assert place.done("archive", LEASEHOLD_ARCHIVE_NAME=name) == made, "a name that is there is not written again"
    (uploads / "kept.txt").unlink()
    # By then the site has another administrator's password, as a new instance has.
    got = place.task("restore", LEASEHOLD_ARCHIVE_NAME=name, LEASEHOLD_ADMIN_PASSWORD="Another-password-0123456789")
    assert got.returncode == 0, got.stderr
    assert (uploads / "kept.txt").read_text() == "kept" and not (uploads / "later.txt").exists()
    assert place.sign_in_with_password("admin", "Another-password-0123456789").status == 302
    assert place.image.get("/tenant/acme/").status == 200
    assert place.task("restore", LEASEHOLD_ARCHIVE_NAME="none").returncode != 0 and (uploads / "kept.txt").exists()
    place.task("drop", LEASEHOLD_ARCHIVE_NAME=name)
    assert "Contents" not in bucket.list_objects_v2(Bucket=names.ARCHIVE_BUCKET)
    assert place.task("drop", LEASEHOLD_ARCHIVE_NAME=name).returncode == 0, "safe to repeat"


def test_a_word_that_is_none(place):
    assert place.task("dance").returncode == 2


def test_no_secret_is_said(place):
    said = place.image.said() + place.done("install")["version"]
    for secret in ("WORDPRESS_DB_PASSWORD", "LEASEHOLD_ADMIN_PASSWORD"):
        assert place.task_env[secret] not in said


def test_it_ends_with_what_it_runs_and_empties_its_files(place):
    """Last: the site is down after it."""
    place.image.process.send_signal(signal.SIGTERM)
    assert place.image.process.wait(120) == 0, place.image.said()
    place.here["WORDPRESS_DB_HOST"] = "127.0.0.1:1"
    place.serve()
    assert place.image.get("/").status == 500 and place.image.get("/wp-admin/install.php").status == 500, "without its database a task is not healthy"
    os.kill(int((place.image.run_folder / "nginx.pid").read_text()), signal.SIGKILL)
    assert place.image.process.wait(120) == 1
    assert place.task("empty").returncode == 0 and list((place.image.root / "wp-content").iterdir()) == []
    assert place.task("empty").returncode == 0
