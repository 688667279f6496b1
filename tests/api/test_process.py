# SPDX-License-Identifier: Apache-2.0
"""The process: starting and refusing to, settings, dev mode, token rotation, TLS, stopping with work under way."""

import json
import os
import re
import signal
import ssl
import stat
import subprocess
import threading
import time
import warnings
from pathlib import Path

import pytest

from lib.crowd import Background
from lib.http import Broken, Client
from lib.server import ADMIN_TOKEN, QUIET, TRACK_TOKEN, Server, binary, clean_env, run
from lib.wait import until

TOKENS = {"BROKER_API_TOKEN": TRACK_TOKEN, "BROKER_ADMIN_TOKEN": ADMIN_TOKEN}


def refused(tmp_path, *args, **env):
    got = run("serve", "--listen", "127.0.0.1:0", "--data", str(tmp_path), *args, env=env, timeout=15)
    assert got.returncode == 2, (got.returncode, got.stdout, got.stderr)
    return got.stderr


# Settings.


def test_without_tokens_it_does_not_start_and_names_both(tmp_path):
    said = refused(tmp_path)
    assert "BROKER_API_TOKEN" in said and "BROKER_ADMIN_TOKEN" in said


@pytest.mark.parametrize("missing", sorted(TOKENS))
def test_without_one_of_the_tokens_it_does_not_start(tmp_path, missing):
    env = {k: v for k, v in TOKENS.items() if k != missing}
    assert missing in refused(tmp_path, **env)


def test_all_problems_are_named_at_once(tmp_path):
    said = refused(
        tmp_path,
        **TOKENS,
        LEASEHOLD_BOGUS="1",
        LAB_DURATION_HOURS="0",
        SYNC_INTERVAL_SEC="soon",
        LEASEHOLD_WAIT_MAX_SEC="-1",
        LEASEHOLD_SYNC_MAX_STALE_PERCENT="lots"
    )
    for name in (
        "LEASEHOLD_BOGUS",
        "LAB_DURATION_HOURS",
        "SYNC_INTERVAL_SEC",
        "LEASEHOLD_WAIT_MAX_SEC",
        "LEASEHOLD_SYNC_MAX_STALE_PERCENT",
    ):
        assert name in said, name


@pytest.mark.parametrize(
    "name,value",
    [
        ("LAB_DURATION_HOURS", "4.5"),
        ("LAB_DURATION_HOURS", "4h"),
        ("GRACE_PERIOD_MINUTES", "-1"),
        ("DELETION_RETRY_MAX_ATTEMPTS", "x"),
        ("CIRCUIT_BREAKER_THRESHOLD", "99999999999999999999"),
        ("CLEANUP_BATCH_SIZE", "-3"),
        ("LEASEHOLD_CONNECTIONS_MAX", "many"),
        ("LEASEHOLD_RATE_LIMIT_PER_SEC", "fast"),
        ("LEASEHOLD_TYPO", "1"),
        ("LEASEHOLD_TLS_CERT_FILE", "only-the-certificate.pem"),
    ],
)
def test_a_bad_value_is_refused_by_name(tmp_path, name, value):
    assert name in refused(tmp_path, **TOKENS, **{name: value})


def test_problems_outside_the_settings_are_in_the_same_list(tmp_path):
    got = run(
        "serve",
        "--listen",
        "localhost",
        "--data",
        str(tmp_path / "data"),
        env={"LEASEHOLD_TLS_CERT_FILE": "/none/c", "LEASEHOLD_TLS_KEY_FILE": "/none/k", "LOG_LEVEL": "LOUD"},
        timeout=15,
    )
    assert got.returncode == 2
    for text in ("--listen: must be", "BROKER_API_TOKEN", "LOG_LEVEL", "/none/c cannot be read", "/none/k cannot be read"):
        assert text in got.stderr, text
    assert not (tmp_path / "data").exists(), "nothing was made"


def test_wrong_mail_settings_are_refused_at_the_start(tmp_path):
    mail = {"LEASEHOLD_SMTP_URL": "smtp://127.0.0.1:25", "LEASEHOLD_MAIL_FROM": "nobody", "LEASEHOLD_MAIL_TO": "somebody"}
    text = refused(tmp_path, **TOKENS, **mail)
    assert "LEASEHOLD_MAIL_FROM" in text
    assert "LEASEHOLD_MAIL_TO" in text


def test_each_problem_of_sign_in_has_its_own_reason(tmp_path):
    text = refused(tmp_path, **TOKENS, LEASEHOLD_JWT_SECRET="short", LEASEHOLD_USERS_FILE="/nonexistent/users")
    assert "LEASEHOLD_JWT_SECRET: must have at least 32 bytes" in text
    assert "users file /nonexistent/users: cannot be opened" in text


def test_config_has_the_same_problems_but_only_notes_missing_tokens(tmp_path):
    got = run("config", env={"LEASEHOLD_LISTEN": "localhost"})
    assert got.returncode == 2
    assert "LEASEHOLD_LISTEN: must be" in got.stderr
    got = run("config", env={"LAB_DURATION_HOUR": "3"})
    assert got.returncode == 0
    assert "note: 'leasehold serve' needs BROKER_API_TOKEN" in got.stderr
    assert "LAB_DURATION_HOUR: there is no such setting; did you mean LAB_DURATION_HOURS?" in got.stderr


def test_the_example_of_the_configuration_has_only_settings_that_exist(tmp_path):
    example = (Path(__file__).parents[2] / "deploy" / "leasehold.conf.example").read_text()
    names = re.findall(r"^#([A-Z_0-9]+)=", example, re.M)
    assert {"BROKER_API_TOKEN", "BROKER_ADMIN_TOKEN", "CSP_BASE_URL", "CSP_API_TOKEN"} <= set(names)
    file = tmp_path / "settings"
    file.write_text(example)
    assert run("config", "--file", str(file)).returncode == 0
    file.write_text(re.sub(r"^#([A-Z_0-9]+=)", r"\1", example, flags=re.M))
    assert "there is no setting" not in run("config", "--file", str(file)).stderr


def test_a_secret_is_not_in_the_refusal(tmp_path):
    assert TRACK_TOKEN not in refused(tmp_path, **TOKENS, LEASEHOLD_BOGUS="1")


def test_config_prints_values_and_where_they_are_from_without_secrets(tmp_path):
    file = tmp_path / "settings"
    file.write_text("GRACE_PERIOD_MINUTES=17\nLAB_DURATION_HOURS=9\n")
    got = run(
        "config",
        env={**TOKENS, "CSP_API_TOKEN": "vendor-secret", "LAB_DURATION_HOURS": "6", "LEASEHOLD_CONFIG_FILE": str(file)},
    )
    assert got.returncode == 0, got.stderr
    lines = {line.split("=")[0].split()[0]: line for line in got.stdout.splitlines() if line.strip()}
    assert "6" in lines["LAB_DURATION_HOURS"], "the environment wins"
    assert "17" in lines["GRACE_PERIOD_MINUTES"]
    assert "600" in lines["SYNC_INTERVAL_SEC"]
    origins = [
        lines[n].replace("LAB_DURATION_HOURS", "")
        for n in ("LAB_DURATION_HOURS", "GRACE_PERIOD_MINUTES", "SYNC_INTERVAL_SEC")
    ]
    assert "env" in origins[0].lower() and "file" in origins[1].lower() and "default" in origins[2].lower()
    for secret in (TRACK_TOKEN, ADMIN_TOKEN, "vendor-secret"):
        assert secret not in got.stdout + got.stderr
    assert "BROKER_API_TOKEN" in lines


def test_settings_from_a_file(make, tmp_path, owner):
    file = tmp_path / "settings"
    file.write_text(
        "# a comment\n\nBROKER_API_TOKEN=from-the-file-track\nBROKER_ADMIN_TOKEN=from-the-file-admin\n"
        "LEASEHOLD_SIM_SANDBOXES=7\nLAB_DURATION_HOURS=3\n"
    )
    server = make.server(bare=True, LEASEHOLD_CONFIG_FILE=str(file), LAB_DURATION_HOURS=5)
    admin = server.admin(token="from-the-file-admin")
    until(lambda: admin.stats()["available"] == 7, "the first sync")
    got = server.track(owner, token="from-the-file-track").claim()
    assert got["expires_at"] - got["allocated_at"] == 5 * 3600, "the environment wins"


def test_an_unknown_name_in_the_file_is_refused(tmp_path):
    file = tmp_path / "settings"
    file.write_text("LEASEHOLD_TYPO=1\n")
    assert "LEASEHOLD_TYPO" in refused(tmp_path, **TOKENS, LEASEHOLD_CONFIG_FILE=str(file))


def test_a_missing_settings_file_is_refused(tmp_path):
    got = run(
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--data",
        str(tmp_path),
        env={**TOKENS, "LEASEHOLD_CONFIG_FILE": str(tmp_path / "none")},
        timeout=15,
    )
    assert got.returncode != 0


def test_a_port_in_use_is_an_error(make, tmp_path):
    server = make.server(1)
    port = "127.0.0.1:%d" % server.address[1]
    got = run("serve", "--listen", port, "--data", str(tmp_path), "--init", env=TOKENS, timeout=15)
    assert got.returncode != 0
    assert str(server.address[1]) in got.stderr + got.stdout
    assert "; choose another with --listen ADDR:PORT (make run LISTEN=ADDR:PORT)" in got.stderr


def test_without_a_vendor_it_warns(make):
    server = make.server(1)
    until(lambda: "no CSP_BASE_URL: lending simulated sandboxes" in server.output(), "the warning")
    said = "This server lends simulated sandboxes: nothing here is real."
    assert server.client().get("/").json["notice"] == said
    assert said in run("status", env={**TOKENS, "LEASEHOLD_ADDRESS": server.url}).stdout


def test_config_refuses_the_users_file_that_serve_refuses(tmp_path):
    file = tmp_path / "users.yaml"
    file.write_text("users: []\n")
    file.chmod(0o644)
    env = {**TOKENS, "LEASEHOLD_USERS_FILE": str(file)}
    got = run("config", env=env)
    assert got.returncode == 2 and "chmod 600" in got.stderr
    file.chmod(0o600)
    file.write_text("nonsense: true\n")
    assert run("config", env=env).returncode == 2


# Dev mode.


def test_dev_mode_makes_tokens_that_only_we_can_read(make, owner):
    server = make.server(bare=True, args=["--dev"])
    file = server.data / "tokens"
    assert stat.S_IMODE(os.stat(file).st_mode) == 0o600
    tokens = dict(line.split("=", 1) for line in file.read_text().splitlines() if line)
    assert set(tokens) == set(TOKENS)
    assert len(set(tokens.values())) == 2 and all(len(t) >= 20 for t in tokens.values())
    client = server.data / "client"  # for commands on this machine
    assert stat.S_IMODE(os.stat(client).st_mode) == 0o600
    assert all("%s=%s\n" % token in client.read_text() for token in tokens.items())
    admin = server.admin(token=tokens["BROKER_ADMIN_TOKEN"])
    until(lambda: admin.stats()["available"] > 0, "the first sync")
    assert server.track(owner, token=tokens["BROKER_API_TOKEN"]).allocate().status == 201


def test_dev_mode_tokens_are_in_the_file_after_a_restart_too(make):
    server = make.server(bare=True, args=["--dev"])
    server.restart()
    tokens = dict(line.split("=", 1) for line in (server.data / "tokens").read_text().splitlines() if line)
    assert server.admin(token=tokens["BROKER_ADMIN_TOKEN"]).get("/v1/admin/stats").status == 200


def test_dev_mode_refuses_a_real_vendor(tmp_path):
    said = refused(tmp_path, "--dev", CSP_BASE_URL="http://127.0.0.1:1", CSP_API_TOKEN="x")
    assert (
        "--dev uses the simulated vendor, but CSP_BASE_URL is set (environment); unset it, or start without --dev" in said
    )


def test_dev_mode_says_where_the_tokens_are(make):
    server = make.server(bare=True, args=["--dev"])
    until(lambda: "Address and tokens are in %s/client." % server.data in server.output(), "the banner")
    server = make.server(bare=True, args=["--dev"], **TOKENS)
    until(lambda: "The tokens are those of your environment." in server.output(), "the banner")
    assert not (server.data / "tokens").exists()
    assert not any(token in (server.data / "client").read_text() for token in TOKENS.values())


# SIGHUP.


def write_tokens(file, track, admin):
    file.write_text("BROKER_API_TOKEN=%s\nBROKER_ADMIN_TOKEN=%s\nLEASEHOLD_SIM_SANDBOXES=9\n" % (track, admin))


def test_sighup_rotates_tokens(make, tmp_path, new_owner):
    file = tmp_path / "settings"
    write_tokens(file, "old-track-token-0123456789", "old-admin-token-0123456789")
    server = make.server(bare=True, LEASEHOLD_CONFIG_FILE=str(file))
    old = server.admin(token="old-admin-token-0123456789")
    until(lambda: old.stats()["available"] == 9, "the first sync")
    mine = new_owner()
    held = server.track(mine, token="old-track-token-0123456789").claim()

    write_tokens(
        file,
        "old-track-token-0123456789,new-track-token-0123456789",
        "old-admin-token-0123456789,new-admin-token-0123456789",
    )
    server.signal(signal.SIGHUP)
    until(
        lambda: server.admin(token="new-admin-token-0123456789").get("/v1/admin/stats").status == 200,
        "the new token works",
    )
    assert old.get("/v1/admin/stats").status == 200
    assert server.track(new_owner(), token="old-track-token-0123456789").allocate().status == 201

    write_tokens(file, "new-track-token-0123456789", "new-admin-token-0123456789")
    server.signal(signal.SIGHUP)
    until(lambda: old.get("/v1/admin/stats").status == 401, "the old token is gone, on an open connection too")
    assert server.track(mine, token="old-track-token-0123456789").allocate().status == 401
    again = server.track(mine, token="new-track-token-0123456789").allocate()
    assert (again.status, again.json) == (200, held)


def test_sighup_without_a_file_does_no_harm(make, owner):
    server = make.server(2)
    server.signal(signal.SIGHUP)
    for name in TOKENS:
        said = "%s comes from the environment, which a running program cannot read again; put it in" % name
        until(lambda: said in server.output(), said)
    assert server.track(owner).allocate().status == 201
    assert server.is_alive()


# TLS.


def certificate(folder, name, kind="ec"):
    cert, key = folder / (name + ".pem"), folder / (name + ".key")
    subprocess.run(
        [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            kind,
            *(["-pkeyopt", "ec_paramgen_curve:prime256v1"] if kind == "ec" else []),
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/CN=" + name,
            "-addext",
            "subjectAltName=IP:127.0.0.1",
            "-keyout",
            str(key),
            "-out",
            str(cert),
        ],
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    return cert, key


def trusting(cert):
    return ssl.create_default_context(cafile=str(cert))


def test_tls_serves_and_reloads_at_sighup(make, tmp_path, owner):
    (cert, key), (cert2, key2) = certificate(tmp_path, "one"), certificate(tmp_path, "two")
    live_cert, live_key = tmp_path / "live.pem", tmp_path / "live.key"
    live_cert.write_bytes(cert.read_bytes())
    live_key.write_bytes(key.read_bytes())
    server = make.server(3, wait=False, LEASEHOLD_TLS_CERT_FILE=str(live_cert), LEASEHOLD_TLS_KEY_FILE=str(live_key))
    assert server.url.startswith("https://")
    admin = server.admin(tls=trusting(cert))
    until(lambda: admin.stats()["available"] == 3, "the first sync")
    assert server.track(owner, tls=trusting(cert)).allocate().status == 201

    live_cert.write_bytes(cert2.read_bytes())
    live_key.write_bytes(key2.read_bytes())
    server.signal(signal.SIGHUP)

    def has_new():
        try:
            return server.client(tls=trusting(cert2)).get("/healthz").status == 200
        except ssl.SSLError:
            return False

    until(has_new, "the new certificate is shown")
    assert admin.stats()["allocated"] == 1, "an open connection goes on"
    assert server.stop() == 0


def test_a_reload_takes_over_all_or_nothing(make, tmp_path):
    cert, key = certificate(tmp_path, "one")
    cert2, key2 = certificate(tmp_path, "two")
    trust, trust2 = trusting(cert), trusting(cert2)
    file = tmp_path / "settings"
    old, new = "old-admin-token-0123456789", "new-admin-token-0123456789"
    write_tokens(file, "track-token-0123456789", old)
    server = make.server(
        bare=True,
        LEASEHOLD_CONFIG_FILE=str(file),
        LEASEHOLD_TLS_CERT_FILE=str(cert),
        LEASEHOLD_TLS_KEY_FILE=str(key),
    )

    def status(token, context=trust):
        try:
            return server.admin(token=token, tls=context).get("/v1/admin/stats").status
        except ssl.SSLError:
            return None

    def failures():
        return [line for line in server.output().splitlines() if "reload failed" in line]

    write_tokens(file, "track-token-0123456789", new)
    cert.write_text("not a certificate")
    server.signal(signal.SIGHUP)
    until(lambda: len(failures()) == 1, "the bad certificate is refused")
    assert "is not a PEM certificate" in failures()[0]
    assert (status(old), status(new)) == (200, 401), "the good tokens were not taken over"

    write_tokens(file, "short", new)
    server.signal(signal.SIGHUP)
    until(lambda: len(failures()) == 2, "both are refused")
    assert "BROKER_API_TOKEN" in failures()[1] and "; TLS certificate" in failures()[1]

    cert.write_bytes(cert2.read_bytes())
    key.write_bytes(key2.read_bytes())
    server.signal(signal.SIGHUP)
    until(lambda: len(failures()) == 3, "the bad token is refused")
    assert (status(old), status(old, trust2)) == (200, None), "the good certificate was not taken over"

    write_tokens(file, "track-token-0123456789", new)
    server.signal(signal.SIGHUP)
    until(lambda: status(new, trust2) == 200, "both are taken over")
    assert status(old, trust2) == 401


def test_a_reload_that_waits_for_a_file_keeps_nobody_else_waiting(make, tmp_path):
    (cert, key), (cert2, key2) = certificate(tmp_path, "one"), certificate(tmp_path, "two")
    trust, trust2 = trusting(cert), trusting(cert2)
    server = make.server(2, wait=False, LEASEHOLD_TLS_CERT_FILE=str(cert), LEASEHOLD_TLS_KEY_FILE=str(key))
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    os.replace(gate, cert)
    os.replace(key2, key)

    def is_opened():
        """By the server: until then there is nobody to write to."""
        try:
            return open(os.open(cert, os.O_WRONLY | os.O_NONBLOCK), "wb")
        except OSError:
            return None

    server.signal(signal.SIGHUP)
    with until(is_opened, "the certificate is being read") as pipe:
        assert server.client(tls=trust).get("/healthz").status == 200
        assert "are read again" not in server.output()
        text = cert2.read_bytes()
        os.replace(cert2, cert)  # for whoever opens it from now on
        pipe.write(text)
    until(lambda: "are read again" in server.output(), "the reload goes on")
    assert server.client(tls=trust2).get("/healthz").status == 200
    assert server.stop() == 0


PLAIN_HTTP = '"message":"a client spoke plain HTTP to the TLS port"'


def test_a_client_that_insists_on_plain_http_does_not_fill_the_log(make, tmp_path):
    cert, key = certificate(tmp_path, "only")
    server = make.server(2, wait=False, LEASEHOLD_TLS_CERT_FILE=str(cert), LEASEHOLD_TLS_KEY_FILE=str(key))
    began = time.monotonic()
    for _ in range(40):
        with pytest.raises((Broken, OSError)):
            server.client().get("/healthz")
    seconds = time.monotonic() - began
    assert server.client(tls=trusting(cert)).get("/healthz").status == 200
    assert server.stop() == 0
    assert 1 <= server.output().count(PLAIN_HTTP) <= 1 + int(seconds + 1)


def test_tls_refuses_plain_text_and_old_versions(make, tmp_path):
    cert, key = certificate(tmp_path, "only")
    server = make.server(2, wait=False, LEASEHOLD_TLS_CERT_FILE=str(cert), LEASEHOLD_TLS_KEY_FILE=str(key))
    with pytest.raises((Broken, OSError)):
        server.client().get("/healthz")
    until(lambda: PLAIN_HTTP in server.output(), "the operator is told")
    old = trusting(cert)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        old.minimum_version, old.maximum_version = ssl.TLSVersion.TLSv1, ssl.TLSVersion.TLSv1_1
    old.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.raises((ssl.SSLError, OSError)):
        server.client(tls=old).get("/healthz")
    assert server.client(tls=trusting(cert)).get("/healthz").status == 200


def test_tls_12_has_forward_secrecy_or_nothing(make, tmp_path):
    cert, key = certificate(tmp_path, "only", "rsa:2048")
    server = make.server(2, wait=False, LEASEHOLD_TLS_CERT_FILE=str(cert), LEASEHOLD_TLS_KEY_FILE=str(key))
    for ciphers, is_good in (("AES256-GCM-SHA384", False), ("AES128-SHA", False), ("ECDHE-RSA-AES256-SHA384", False),
                             ("ECDHE-RSA-AES128-GCM-SHA256", True), ("ECDHE-RSA-CHACHA20-POLY1305", True)):
        trust = trusting(cert)
        trust.maximum_version = ssl.TLSVersion.TLSv1_2
        trust.set_ciphers(ciphers + ":@SECLEVEL=0")
        if is_good:
            assert server.client(tls=trust).get("/healthz").status == 200, ciphers
        else:
            with pytest.raises((ssl.SSLError, OSError)):
                server.client(tls=trust).get("/healthz")


@pytest.mark.parametrize("mode", [0o644, 0o602, 0o660, 0o604])
def test_settings_that_others_may_read_or_write_stop_the_start(tmp_path, mode):
    file = tmp_path / "conf"
    file.write_text("LAB_DURATION_HOURS=5\n")
    file.chmod(mode)
    assert "chmod 640 %s" % file in refused(tmp_path, **TOKENS, LEASEHOLD_CONFIG_FILE=str(file))
    file.chmod(0o640)
    assert run("config", env={**TOKENS, "LEASEHOLD_CONFIG_FILE": str(file)}).returncode == 0


@pytest.mark.parametrize("mode", [0o644, 0o620, 0o606])
def test_a_tls_key_that_others_may_read_or_write_stops_the_start(tmp_path, mode):
    folder = tmp_path / ("deep" * 15)  # a path of common length is named in full
    folder.mkdir()
    cert, key = certificate(folder, "only")
    key.chmod(mode)
    said = refused(tmp_path, **TOKENS, LEASEHOLD_TLS_CERT_FILE=str(cert), LEASEHOLD_TLS_KEY_FILE=str(key))
    assert "TLS key" in said and "chmod 640 %s" % key in said


def test_a_text_log_quotes_what_comes_from_outside(make, owner):
    server = make.server(2, LOG_FORMAT="text")
    track = server.track(owner, source="127.0.0.1")
    track.get('/v1/x"=y%0a', headers={"X-Instruqt-Track-ID": 'lab status=200 "x'})
    assert server.stop() == 0
    lines = [line for line in server.output().splitlines() if "/v1/x" in line]
    assert len(lines) == 1
    assert r'action="GET /v1/x\"=y%0a"' in lines[0] and r'instruqt_track_id="lab status=200 \"x"' in lines[0]
    assert " status=404" in lines[0] and ' status=200 "' not in lines[0].replace(r'"lab status=200 \"x"', "")


def test_the_program_is_built_with_what_the_tools_have_against_mistakes():
    dynamic = subprocess.run(["readelf", "-dW", binary()], capture_output=True, text=True, check=True).stdout
    symbols = subprocess.run(["readelf", "-W", "--dyn-syms", binary()], capture_output=True, text=True, check=True).stdout
    assert "BIND_NOW" in dynamic and "PIE" in dynamic
    assert "__snprintf_chk" in symbols or "__vsnprintf_chk" in symbols or "__asan_init" in symbols or "__tsan_init" in symbols


def test_one_address_has_a_limit_of_connections_by_default():
    assert re.search(r"LEASEHOLD_CONNECTIONS_PER_CLIENT_MAX\s+1024\b", run("config", env=TOKENS).stdout)


def test_a_bad_certificate_is_refused_at_start(tmp_path):
    bad = tmp_path / "bad.pem"
    bad.write_text("not a certificate")
    got = run(
        "serve",
        "--listen",
        "127.0.0.1:0",
        "--data",
        str(tmp_path),
        timeout=15,
        env={**TOKENS, "LEASEHOLD_TLS_CERT_FILE": str(bad), "LEASEHOLD_TLS_KEY_FILE": str(bad)},
    )
    assert got.returncode != 0
    assert "bad.pem is not a PEM certificate" in got.stderr


# Stopping.


def test_a_stop_without_work_is_quick(make):
    server = make.server(3)
    begin = time.monotonic()
    assert server.stop() == 0
    assert time.monotonic() - begin < 20  # a tenth of a second when nobody else works here
    server.check_store()


def test_a_stop_answers_those_who_wait(make, new_owner):
    server = make.server(1)
    server.track(new_owner()).claim()
    calls = [Background(server.track(new_owner(), retry=False).allocate, wait=120) for _ in range(10)]
    until(lambda: server.admin().stats()["waiting"] == 10, "ten wait")
    begin = time.monotonic()
    assert server.stop() == 0
    assert time.monotonic() - begin < 60
    for call in calls:
        assert call.result().status in (409, 503)


def test_a_stop_under_load_loses_nothing_acknowledged(make, new_owner):
    server = make.server(3000)
    acked, end, unexpected = {}, threading.Event(), []

    def caller():
        while not end.is_set():
            track = server.track(new_owner(), retry=False)
            try:
                reply = track.allocate()
            except (Broken, OSError):
                return
            if reply.status == 201:
                acked[track.owner] = reply.json
            elif reply.status not in (409, 503):
                unexpected.append(reply)
            track.close()

    callers = [Background(caller) for _ in range(16)]
    until(lambda: len(acked) > 50, "claims are under way")
    assert server.stop() == 0
    end.set()
    for c in callers:
        c.result()
    assert unexpected == []
    server.check_store()
    server.start()
    for owner, got in acked.items():
        reply = server.track(owner).show(got["sandbox_id"])
        assert (reply.status, reply.json["status"]) == (200, "allocated")
    assert len({g["sandbox_id"] for g in acked.values()}) == len(acked)


def test_a_stop_with_a_slow_vendor_is_bounded(make):
    csp = make.csp(3)
    server = make.server(csp=csp, CSP_TIMEOUT_READ_SEC=5)
    csp.gate = threading.Event()
    assert server.admin().act("sync", headers={"Prefer": "respond-async"}).status == 202
    until(lambda: csp.lists() >= 2, "the vendor is asked")
    begin = time.monotonic()
    assert server.stop() == 0
    csp.gate.set()


def test_sigint_stops_too(make):
    server = make.server(1)
    server.signal(signal.SIGINT)
    assert server.wait_end() == 0


# The store's commands.


def test_check_works_on_a_running_and_a_stopped_server(make, new_owner):
    server = make.server(5)
    server.track(new_owner()).claim()
    server.check_store()
    server.stop()
    server.check_store()


def test_a_backup_of_a_running_server_can_be_started(make, tmp_path, owner):
    server = make.server(5)
    held = server.track(owner).claim()
    to = tmp_path / "copy"
    to.mkdir()
    got = run("store", "backup", "--data", str(server.data), "--to", str(to / "leasehold.db"))
    assert got.returncode == 0, got.stderr
    copy = Server(to, server.env)
    try:
        copy.start()
        reply = copy.track(owner).allocate()
        assert (reply.status, reply.json) == (200, held)
    finally:
        copy.kill()


def test_check_finds_a_damaged_file(make):
    server = make.server(200)
    server.stop()
    server.sql("PRAGMA wal_checkpoint(TRUNCATE)")
    file = server.data / "leasehold.db"
    size = file.stat().st_size
    assert size > 8192
    with file.open("r+b") as f:
        for at in range(4096, size, 4096):
            f.seek(at)
            f.write(b"\xaa" * 1024)
    got = run("store", "check", "--data", str(server.data))
    assert got.returncode == 1
    assert got.stderr == "leasehold: %s is not a Leasehold store or is damaged; restore a backup (docs/runbook.md)\n" % file


def test_who_restores_what_is_no_backup_is_not_told_to_restore_one(tmp_path):
    file = tmp_path / "README"
    file.write_bytes(b"these are not the pages you are looking for\n" * 200)
    got = run("store", "restore", "--from", str(file), "--data", str(tmp_path))
    assert got.returncode == 1
    assert got.stderr == "leasehold: %s is not a Leasehold store or is damaged\n" % file


@pytest.mark.parametrize("command", [["store", "check"], ["store", "backup", "--to", "TO"], ["serve"]])
def test_a_foreign_file_is_named_and_kept(tmp_path, command):
    file = tmp_path / "leasehold.db"
    file.write_bytes(b"these are not the pages you are looking for\n" * 200)
    before = file.read_bytes()
    words = [str(tmp_path / "copy.db") if w == "TO" else w for w in command]
    if command == ["serve"]:
        words += ["--listen", "127.0.0.1:0"]
    got = run(*words, "--data", str(tmp_path), env=TOKENS, timeout=15)
    assert got.returncode == 1
    assert got.stderr == "leasehold: %s is not a Leasehold store or is damaged; restore a backup (docs/runbook.md)\n" % file
    assert file.read_bytes() == before and not (tmp_path / "copy.db").exists()


def test_a_missing_store_is_named_with_the_reason(tmp_path):
    got = run("store", "check", "--data", str(tmp_path))
    assert got.returncode == 4
    assert "there is no store at %s/leasehold.db" % tmp_path in got.stderr


def test_a_backup_is_private_and_says_why_it_cannot_be_made(make, tmp_path):
    server = make.server(3)
    to = tmp_path / "copy.db"
    got = run("store", "backup", "--data", str(server.data), "--to", str(to))
    assert got.returncode == 0, got.stderr
    assert stat.S_IMODE(to.stat().st_mode) == 0o600
    got = run("store", "backup", "--data", str(server.data), "--to", str(to))
    assert (got.returncode, got.stderr) == (1, "leasehold: %s exists already; name a new file\n" % to)
    lost = tmp_path / "none" / "copy.db"
    got = run("store", "backup", "--data", str(server.data), "--to", str(lost))
    assert got.stderr == "leasehold: %s cannot be made: No such file or directory\n" % lost


def test_a_backup_of_dynamodb_is_refused(tmp_path):
    got = run("store", "backup", "--to", str(tmp_path / "x.db"), env={"LEASEHOLD_STORE": "dynamodb"})
    assert got.returncode == 2
    assert "use DynamoDB's own backups, or 'leasehold store copy --from dynamodb: --to sqlite:DIR'" in got.stderr


def test_the_program_prints_its_states():
    got = run("sandbox", "states")
    assert got.returncode == 0, got.stderr
    for state in ("available", "allocated", "pending_deletion", "stale", "deletion_failed"):
        assert state in got.stdout


def test_every_log_line_is_json(make, owner):
    server = make.server(2)
    server.track(owner).allocate()
    server.client().get("/nowhere")
    server.stop()
    assert server.lines
    for line in server.lines:
        assert isinstance(json.loads(line), dict), line


def test_a_log_that_nobody_reads_does_not_stop_the_service(tmp_path):
    env = clean_env({**QUIET, "LEASEHOLD_SIM_SANDBOXES": 3, "LOG_LEVEL": "INFO"})
    command = [binary(), "serve", "--listen", "127.0.0.1:0", "--data", str(tmp_path), "--init"]
    small = {"stdout": subprocess.PIPE, "pipesize": 4096}
    with subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, **small) as server:
        try:
            listening = next(line for line in server.stdout if b'"message":"listening"' in line)
            host, _, port = json.loads(listening)["address"].partition("://")[2].rpartition(":")
            client = Client((host, int(port)), {"Authorization": "Bearer " + ADMIN_TOKEN})
            for _ in range(3000):
                assert client.get("/v1/admin/jobs").status == 200
            client.close()
            server.send_signal(signal.SIGTERM)
            assert server.wait(90) == 0
        finally:
            server.kill()


# Log lines.


def refused_line(server):
    return any('"outcome":"failure"' in line and '"status":401' in line for line in server.lines)


def test_the_line_of_a_refused_request_is_written_soon_though_nothing_else_happens(make):
    server = make.server(0).settle()
    assert server.client().get("/v1/admin/stats").status == 401
    until(lambda: refused_line(server), "the refusal is in the log", 3)


def test_the_lines_before_an_abort_are_not_lost_with_it(make):
    server = make.server(0).settle()
    assert server.client().get("/v1/admin/stats").status == 401
    server.signal(signal.SIGABRT)
    assert server.wait_end() == -signal.SIGABRT
    assert refused_line(server), server.lines[-3:]


@pytest.mark.parametrize("kilobytes", [200000, 300000, 400000])
def test_a_lack_of_memory_is_told(tmp_path, kilobytes):
    """Where a thread could not be had it ended without a word."""
    if any(name in Path(binary()).read_bytes() for name in (b"__asan_init", b"__tsan_init")):
        pytest.skip("sanitizers reserve terabytes")
    got = subprocess.run(
        ["sh", "-c", 'ulimit -v %d; exec "$0" "$@"' % kilobytes, binary(), "serve", "--dev", "--listen", "127.0.0.1:0", "--data", str(tmp_path / "d")],
        env=clean_env({}), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=60, check=False,
    )
    assert got.returncode != 0
    assert "memory" in got.stderr, got
