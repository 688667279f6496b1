# SPDX-License-Identifier: Apache-2.0
"""From nothing to a configured server: leasehold init."""

import os
import re
import stat
import subprocess
import urllib.parse

from lib.certificate import Certificate
from lib.server import Server, binary, clean_env, run


def init(folder, answers, data="data"):
    """What it says, with the answers on its standard input, one a line."""
    return subprocess.run(
        [binary(), "init", "--file", "leasehold.conf", "--data", data],
        cwd=folder, env=clean_env({}), input="\n".join(answers) + "\n", text=True, capture_output=True, timeout=60,
    )


def settings(folder):
    lines = [line for line in (folder / "leasehold.conf").read_text().splitlines() if not line.startswith("#")]
    return dict(line.split("=", 1) for line in lines)


def test_a_folder_that_the_environment_names_gets_the_store_the_users_and_its_name_in_the_file(tmp_path):
    got = run("init", "--file", str(tmp_path / "leasehold.conf"), env={"LEASEHOLD_DATA": str(tmp_path / "there")})
    assert got.returncode == 0, got.stderr
    assert settings(tmp_path)["LEASEHOLD_DATA"] == str(tmp_path / "there") and (tmp_path / "there/leasehold.db").exists()


class Configured(Server):
    def command(self):
        return [binary(), "serve", "--file", str(self.data.parent / "leasehold.conf"), "--listen", "127.0.0.1:0"]


def test_the_answers_make_a_configuration_that_the_server_starts_with(tmp_path):
    got = init(tmp_path, ["", "", "admin@school.example"])
    assert got.returncode == 0, got.stderr
    password = re.search(r"with the password (\S+)", got.stdout).group(1)
    conf = settings(tmp_path)
    assert conf["LEASEHOLD_LISTEN"] == "127.0.0.1:8080" and conf["LEASEHOLD_DATA"] == str(tmp_path / "data")
    assert len({conf["BROKER_API_TOKEN"], conf["BROKER_ADMIN_TOKEN"], conf["LEASEHOLD_JWT_SECRET"]}) == 3
    assert password not in (tmp_path / "leasehold.conf").read_text() + (tmp_path / "data/users").read_text()
    assert stat.S_IMODE(os.stat(tmp_path / "leasehold.conf").st_mode) == 0o640
    assert stat.S_IMODE(os.stat(tmp_path / "data/users").st_mode) == 0o600
    assert run("config", "--file", str(tmp_path / "leasehold.conf")).returncode == 0
    server = Configured(tmp_path / "data", bare=True).start()
    try:
        assert server.admin(conf["BROKER_ADMIN_TOKEN"]).stats()["total"] >= 0
        browser = server.client()
        page = browser.get("/api/auth/signin")
        cookie = page.header("set-cookie").split(";")[0]
        form = dict(re.findall(r'name="(\w+)"[^>]*value="([^"]*)"', page.body.decode()))
        form.update(email="admin@school.example", password=password)
        reply = browser.post("/api/auth/signin", headers={"Cookie": cookie, "Content-Type": "application/x-www-form-urlencoded"},
                             body=urllib.parse.urlencode(form).encode())
        assert reply.status in (302, 303) and "token=" in reply.header("location"), reply
    finally:
        assert server.stop() == 0


def test_for_others_it_asks_for_a_certificate(tmp_path):
    certificate = Certificate(tmp_path)
    got = init(tmp_path, ["0.0.0.0:8443", certificate.cert, certificate.key, "https://vendor.example/v2", "vendor-token", ""])
    assert got.returncode == 0, got.stderr
    conf = settings(tmp_path)
    assert (conf["LEASEHOLD_TLS_CERT_FILE"], conf["LEASEHOLD_TLS_KEY_FILE"]) == (certificate.cert, certificate.key)
    assert (conf["CSP_BASE_URL"], conf["CSP_API_TOKEN"]) == ("https://vendor.example/v2", "vendor-token")
    assert "LEASEHOLD_JWT_SECRET" not in conf and "password" not in got.stdout


def test_a_wrong_answer_writes_nothing(tmp_path):
    for answers, told in ((["nowhere"], "ADDRESS:PORT"), (["", "", "not an email"], "'not an email'"),
                          (["0.0.0.0:8443", "/no/such.pem", "/no/key.pem"], "/no/such.pem")):
        got = init(tmp_path, answers)
        assert got.returncode == 2 and told in got.stderr, got
        assert list(tmp_path.iterdir()) == []


def test_all_wrong_answers_are_told_at_once(tmp_path):
    got = init(tmp_path, ["0.0.0.0:8443", "/no/such.pem", "/no/key.pem", "ftp://vendor", "vendor-token", "notmail"])
    assert got.returncode == 2 and all(wrong in got.stderr for wrong in ("/no/such.pem", "CSP_BASE_URL", "'notmail'")), got.stderr
    assert list(tmp_path.iterdir()) == []


def test_no_settings_are_made_for_a_store_that_is_there(tmp_path):
    assert run("init", "--data", str(tmp_path / "data")).returncode == 0
    got = init(tmp_path, [])
    assert got.returncode == 2 and "leasehold.db exists already" in got.stderr, got
    assert [f.name for f in tmp_path.iterdir()] == ["data"]


def test_what_is_there_is_left_alone(tmp_path):
    assert init(tmp_path, []).returncode == 0
    before = (tmp_path / "leasehold.conf").read_text()
    again = init(tmp_path, [])
    assert again.returncode == 1 and "exists already" in again.stderr, again
    assert (tmp_path / "leasehold.conf").read_text() == before
