# SPDX-License-Identifier: Apache-2.0
"""Sign-in: tokens, the page, a provider, service accounts."""

import base64
import hashlib
import hmac
import json
import os
import re
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from lib.oidc import EcKey, Provider, RsaKey
from lib.server import binary, clean_env, run
from lib.wait import until

SECRET = "0123456789abcdef0123456789abcdef"
OTHER = "fedcba9876543210fedcba9876543210"
PASSWORD = "correct horse battery"


def b64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def mint(claims, secret=SECRET, header=None):
    """A token as other programs make it, with nothing of ours."""
    text = b64(json.dumps(header or {"alg": "HS256", "typ": "JWT"}).encode()) + "." + b64(json.dumps(claims).encode())
    return text + "." + b64(hmac.new(secret.encode(), text.encode(), hashlib.sha256).digest())


def claims(token):
    part = token.split(".")[1]
    return json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))


def admin_token(**kw):
    now = int(time.time())
    return mint({"user": {"email": "ops@example.com", "roles": ["Admin"]}, "iat": now, "exp": now + 60, **kw})


def status(client, token=None, **kw):
    headers = {"Authorization": "Bearer " + token} if token else {}
    reply = client.get("/api/auth/login/status", headers={**headers, **kw})
    assert reply.status == 200, reply
    return reply.json


@pytest.fixture(scope="module")
def hashed():
    got = subprocess.run(
        [binary(), "token", "hash-password"],
        input=PASSWORD + "\n",
        env=clean_env({}),
        text=True,
        capture_output=True,
        check=True,
        timeout=90,
    )
    assert got.stdout.startswith("$argon2id$v=19$")
    return got.stdout.strip()


def write_users(path, *people):
    fresh = path.with_suffix(".new")
    fresh.write_text("".join(json.dumps(p) + "\n" for p in people))
    os.chmod(fresh, 0o600)
    fresh.rename(path)
    return path


def ann(hashed, **kw):
    return {"email": "Ann@Example.com", "displayName": "Ann", "roles": ["Manager"], "password": hashed, **kw}


@pytest.fixture(scope="module")
def site(make_for_module, tmp_path_factory, hashed):
    """One server with a users file, for all that changes nothing."""
    users = write_users(tmp_path_factory.mktemp("users") / "users", ann(hashed))
    return make_for_module.server(LEASEHOLD_JWT_SECRET=SECRET, LEASEHOLD_USERS_FILE=users)


class Browser:
    """Keeps cookies, follows nothing."""

    def __init__(self, server, **kw):
        self.client = server.client(**kw)
        self.cookies = {}

    def _go(self, method, path, headers=None, **kw):
        cookie = "; ".join("%s=%s" % c for c in self.cookies.items())
        reply = self.client.request(method, path, headers={"Cookie": cookie or None, **(headers or {})}, **kw)
        for line in reply.all("set-cookie"):
            name, _, rest = line.partition("=")
            value, _, attributes = rest.partition(";")
            assert "HttpOnly" in attributes and "SameSite" in attributes and "Path=/api/auth" in attributes
            self.cookies[name] = value
            if "Max-Age=0;" in attributes:
                del self.cookies[name]
        return reply

    def get(self, path):
        return self._go("GET", path)

    def post(self, path, fields):
        return self._go(
            "POST",
            path,
            headers={"Content-Type": "application/x-www-form-urlencoded"},
            body=urlencode(fields).encode(),
        )

    def form(self):
        reply = self.get("/api/auth/signin")
        assert reply.status == 200, reply
        return re.search(rb'name="form" value="([^"]+)"', reply.body).group(1).decode()

    def sign_in(self, email, password):
        return self.post("/api/auth/signin", {"form": self.form(), "email": email, "password": password})


def token_of(reply, before="/"):
    assert reply.status == 302, reply
    where = reply.header("location")
    assert where.startswith(before + "?token="), where
    return where.partition("?token=")[2]


# Tokens.


def test_a_token_of_another_program_is_good(site):
    now = int(time.time())
    user = {"email": "ops@example.com", "roles": ["Admin"]}
    got = status(site.client(), mint({"user": user, "iat": now, "exp": now + 60}))
    assert got == {"authenticated": True, "session": {"user": user, "iat": now, "exp": now + 60}}


def test_the_status_is_200_also_when_nobody_is_signed_in(site):
    client = site.client()
    for token in (None, "x", "a.b.c", admin_token(exp=1), admin_token()[:-1], mint({"user": {}, "exp": 1 << 33})):
        got = status(client, token)
        assert got["authenticated"] is False and got["message"], token
    assert status(client, Authorization="Basic YTpi")["authenticated"] is False


@pytest.mark.parametrize("alg", ["none", "HS512", "RS256"])
def test_another_algorithm_is_refused(site, alg):
    now = int(time.time())
    body = {"user": {"email": "ops@example.com", "roles": ["Admin"]}, "exp": now + 60}
    assert status(site.client(), mint(body, header={"alg": alg}))["authenticated"] is False


def test_a_token_of_another_secret_is_refused(site):
    now = int(time.time())
    body = {"user": {"email": "ops@example.com", "roles": ["Admin"]}, "exp": now + 60}
    assert status(site.client(), mint(body, OTHER))["authenticated"] is False


def test_the_command_issues_a_token(site, tmp_path):
    args = ("token", "issue", "--email", "ops@example.com", "--role", "Admin,User", "--minutes", "5")
    got = run(*args, env={"LEASEHOLD_JWT_SECRET": SECRET})
    assert got.returncode == 0, got.stderr
    session = status(site.client(), got.stdout.strip())["session"]
    assert session["user"] == {"email": "ops@example.com", "roles": ["User", "Admin"]}
    assert session["exp"] - session["iat"] == 300
    (tmp_path / "secret").write_text(SECRET + "\n")
    got = run(*args, "--secret-file", str(tmp_path / "secret"))
    assert status(site.client(), got.stdout.strip())["authenticated"] is True


@pytest.mark.parametrize(
    "args, why",
    [
        (("--role", "Admin"), "--email"),
        (("--email", "ann", "--role", "Admin"), "--email"),
        (("--email", "a@b.co", "--role", "Root"), "Root"),
        (("--email", "a@b.co", "--role", "User", "--minutes", "0"), "--minutes"),
        (("--email", "a@b.co", "--role", "User", "--data", "/nonexistent"), "no secret"),
    ],
)
def test_the_command_says_what_is_missing(args, why):
    got = run("token", "issue", *args, env={"LEASEHOLD_JWT_SECRET": None if why == "no secret" else SECRET})
    assert got.returncode == 2 and why in got.stderr and got.stdout == ""


def test_the_old_secret_is_accepted_until_its_date(make):
    later = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3600))
    old = {"LEASEHOLD_JWT_SECRET": OTHER, "LEASEHOLD_JWT_SECRET_OLD": SECRET}
    server = make.server(**old, LEASEHOLD_JWT_OLD_UNTIL=later)
    assert status(server.client(), admin_token())["authenticated"] is True
    server.restart(LEASEHOLD_JWT_OLD_UNTIL="2026-01-01")
    assert status(server.client(), admin_token())["authenticated"] is False
    now = int(time.time())
    fresh = mint({"user": {"email": "a@b.co", "roles": []}, "exp": now + 60}, OTHER)
    assert status(server.client(), fresh)["authenticated"] is True


def test_a_new_secret_is_taken_over_on_sighup(make, tmp_path):
    config = tmp_path / "conf"
    config.write_text("LEASEHOLD_JWT_SECRET=%s\n" % SECRET)
    server = make.server(args=["--file", str(config)])
    client, token = server.client(), admin_token()
    assert status(client, token)["authenticated"] is True
    config.write_text("LEASEHOLD_JWT_SECRET=too-short\n")
    server.signal(signal.SIGHUP)
    until(lambda: "reload failed" in server.output(), "the bad secret is told of")
    assert status(client, token)["authenticated"] is True
    overlap = "LEASEHOLD_JWT_SECRET_OLD=%s\nLEASEHOLD_JWT_OLD_UNTIL=2999-01-01\n" % SECRET
    for text, expected in ((overlap, True), ("", False)):
        config.write_text("LEASEHOLD_JWT_SECRET=%s\n%s" % (OTHER, text))
        seen = server.output().count("are read again")
        server.signal(signal.SIGHUP)
        until(lambda: server.output().count("are read again") > seen, "the settings are read again")
        assert status(client, token)["authenticated"] is expected


@pytest.mark.parametrize(
    "env, why",
    [
        ({"LEASEHOLD_JWT_SECRET": "short"}, "32 bytes"),
        ({"LEASEHOLD_JWT_SECRET": SECRET, "LEASEHOLD_JWT_SECRET_OLD": OTHER}, "both or neither"),
        (
            {
                "LEASEHOLD_JWT_SECRET": SECRET,
                "LEASEHOLD_JWT_SECRET_OLD": OTHER,
                "LEASEHOLD_JWT_OLD_UNTIL": "tomorrow",
            },
            "2026-12-01",
        ),
        ({"LEASEHOLD_WEB_APP_URL": "example.com"}, "https://"),
        ({"LEASEHOLD_USERS_FILE": "/nonexistent/users"}, "/nonexistent/users"),
        ({"LEASEHOLD_OIDC_ISSUER": "http://example.com"}, "https://"),
        ({"LEASEHOLD_OIDC_ISSUER": "http://localhost:x@example.com"}, "https://"),
        ({"LEASEHOLD_OIDC_ISSUER": "https://example.com", "LEASEHOLD_OIDC_CLIENT_ID": "x"}, "LEASEHOLD_WEB_APP_URL"),
    ],
)
def test_wrong_settings_are_named_before_the_start(tmp_path, env, why):
    got = run("serve", "--data", str(tmp_path), env={"BROKER_API_TOKEN": SECRET, "BROKER_ADMIN_TOKEN": OTHER, **env})
    assert got.returncode == 2 and why in got.stderr, got.stderr


def test_without_a_secret_nobody_can_sign_in(make):
    client = make.server().client()
    assert client.get("/api/auth/login").status == 503
    assert client.get("/api/auth/signin").status == 503
    assert client.post("/api/auth/signin", body=b"form=x").status == 503
    assert status(client, admin_token())["authenticated"] is False


# Routes.


def test_login_leads_to_the_page_with_or_without_a_slash(site):
    client = site.client()
    for path in ("/api/auth/login", "/api/auth/login/"):
        reply = client.get(path)
        assert reply.status == 302 and reply.header("location") == "/api/auth/signin", reply
    assert client.get("/api/auth/signin/").status == 200
    assert client.get("/api/auth/login/status/").json["authenticated"] is False
    assert client.get("/api/auth/logout").header("location") == "/api/auth/signin"


@pytest.mark.parametrize(
    "method, path",
    [
        ("GET", "/api/auth"),
        ("GET", "/api/auth/"),
        ("GET", "/api/auth/other"),
        ("GET", "/api/auth/login//"),
        ("POST", "/api/auth/login"),
        ("DELETE", "/api/auth/signin"),
        ("POST", "/api/auth/login/callback"),
    ],
)
def test_other_paths_are_refused_as_the_gateway_does(site, method, path):
    reply = site.client().request(method, path)
    assert (reply.status, reply.json) == (403, {"message": "Missing Authentication Token"})


def test_nothing_in_a_request_says_where_to_go(site):
    client = site.client()
    for query in ("?redirect=https://evil.example", "?returnTo=//evil.example", "?next=%2F%2Fevil.example"):
        for path in ("login", "logout"):
            reply = client.get("/api/auth/" + path + query)
            assert reply.status == 302 and reply.header("location") == "/api/auth/signin"


# The page.


def test_a_person_signs_in(site):
    reply = Browser(site).sign_in("ann@example.com", PASSWORD)
    token = token_of(reply)
    assert reply.header("cache-control") and "no-store" in reply.header("cache-control")
    session = status(site.client(), token)["session"]
    assert session["user"] == {"email": "Ann@Example.com", "displayName": "Ann", "roles": ["Manager"]}
    assert session["exp"] - session["iat"] == 3600 and claims(token)["user"] == session["user"]


def test_a_wrong_password_and_an_unknown_person_get_the_same_answer(site):
    def masked(reply):
        return re.sub(rb'value="[^"]*"', b"", reply.body)

    wrong = Browser(site).sign_in("ann@example.com", "wrong password")
    unknown = Browser(site).sign_in("eve@example.com", PASSWORD)
    assert wrong.status == unknown.status == 401
    assert masked(wrong) == masked(unknown) and b"Wrong email or password" in wrong.body


def test_the_page_allows_nothing_but_its_own_style(site):
    reply = site.client().get("/api/auth/signin")
    policy = dict(p.strip().split(" ", 1) for p in reply.header("content-security-policy").split(";"))
    style = re.search(rb"<style>(.*?)</style>", reply.body, re.S).group(1)
    assert policy["default-src"] == "'none'" and policy["frame-ancestors"] == "'none'"
    assert policy["style-src"] == "'sha256-%s'" % base64.b64encode(hashlib.sha256(style).digest()).decode()
    assert policy["form-action"] == "'self'" and policy["base-uri"] == "'none'"
    assert reply.all("content-security-policy") == [reply.header("content-security-policy")]
    assert b"<script" not in reply.body and reply.header("content-type") == "text/html; charset=utf-8"


def test_a_form_of_another_site_is_refused(site):
    ours, theirs = Browser(site), Browser(site)
    fields = {"email": "ann@example.com", "password": PASSWORD}
    form = theirs.form()
    assert ours.post("/api/auth/signin", {"form": form, **fields}).status == 403  # without the cookie of that form
    ours.form()
    assert ours.post("/api/auth/signin", {"form": form[::-1], **fields}).status == 403
    assert ours.post("/api/auth/signin", fields).status == 403
    assert theirs.post("/api/auth/signin", {"form": form, **fields}).status == 302


def test_two_open_pages_both_work(site):
    browser = Browser(site)
    first, second = browser.form(), browser.form()
    fields = {"email": "ann@example.com", "password": "wrong password"}
    assert browser.post("/api/auth/signin", {"form": second, **fields}).status == 401
    assert browser.post("/api/auth/signin", {"form": first, **fields}).status == 401


def test_what_was_typed_comes_back_harmless(site):
    reply = Browser(site).sign_in('"><script>alert(1)</script>@example.com', "whatever it is")
    assert reply.status == 401 and b"<script" not in reply.body and b"&lt;script&gt;" in reply.body


@pytest.mark.parametrize("fields", [{}, {"email": "a@b.co"}, {"password": "x"}, {"email": "a" * 300, "password": "x"}])
def test_a_form_with_something_missing_is_shown_again(site, fields):
    browser = Browser(site)
    assert browser.post("/api/auth/signin", {"form": browser.form(), **fields}).status == 400


@pytest.mark.parametrize("mark", ['"', "<", "'"])
def test_an_email_of_marks_that_need_escapes_does_not_end_the_server(site, mark):
    browser = Browser(site)
    form = urlencode({"form": browser.form()})
    reply = browser._go(
        "POST",
        "/api/auth/signin",
        headers={"Content-Type": "application/x-www-form-urlencoded"},
        body=("%s&password=x&email=%s" % (form, mark * 3900)).encode(),
    )
    assert reply.status == 400 and mark.encode() * 20 not in reply.body
    assert status(site.client())["authenticated"] is False


def test_a_secret_that_goes_away_while_passwords_are_looked_at_refuses_them(make, tmp_path, hashed):
    config = tmp_path / "conf"
    users = write_users(tmp_path / "users", ann(hashed))
    config.write_text("LEASEHOLD_JWT_SECRET=%s\nLEASEHOLD_USERS_FILE=%s\n" % (SECRET, users))
    server = make.server(args=["--file", str(config)])
    browsers = [Browser(server) for _ in range(8)]
    forms = [browser.form() for browser in browsers]
    config.write_text("LEASEHOLD_USERS_FILE=%s\n" % users)
    with ThreadPoolExecutor(8) as pool:
        fields = {"email": "ann@example.com", "password": PASSWORD}
        replies = [
            pool.submit(b.post, "/api/auth/signin", {"form": form, **fields}) for b, form in zip(browsers, forms)
        ]
        until(lambda: any(r.done() for r in replies), "the first of eight is answered")  # four threads look at them
        server.signal(signal.SIGHUP)
        statuses = {r.result().status for r in replies}
    assert 503 in statuses and statuses <= {302, 503}, statuses
    assert server.client().get("/healthz").status == 200


def test_attempts_are_limited(make, tmp_path, hashed):
    users = write_users(tmp_path / "users", ann(hashed), ann(hashed, email="bob@example.com"))
    server = make.server(LEASEHOLD_JWT_SECRET=SECRET, LEASEHOLD_USERS_FILE=users)
    browser = Browser(server)
    got = []
    while len(got) < 40 and (not got or got[-1].status == 401):  # on a slow machine another attempt may have come back by then
        got.append(browser.sign_in("ann@example.com" if len(got) % 2 else "ANN@example.com", "wrong password"))
    assert len(got) > 10 and got[-1].status == 429
    assert 0 < int(got[-1].header("retry-after")) <= 60
    assert browser.sign_in("ann@example.com", PASSWORD).status == 429  # the right one does not help
    assert browser.sign_in("bob@example.com", PASSWORD).status == 302  # somebody else is not locked out
    people = ["p%d@example.com" % i for i in range(120)]
    form = browser.form()
    statuses = [
        browser.post("/api/auth/signin", {"form": form, "email": p, "password": "wrong password"}).status for p in people
    ]
    assert statuses[0] == 401 and 429 in statuses[40:]  # an address that tries many names


def test_wrong_tries_from_many_addresses_do_not_lock_out_who_knows_the_password(make, tmp_path, hashed):
    users = write_users(tmp_path / "users", ann(hashed))
    server = make.server(LEASEHOLD_JWT_SECRET=SECRET, LEASEHOLD_USERS_FILE=users)
    strangers = [Browser(server, source="127.0.0.%d" % i) for i in range(2, 10)]
    forms = [b.form() for b in strangers]
    fields = {"email": "ann@example.com", "password": "wrong password"}
    statuses = [
        strangers[i % 8].post("/api/auth/signin", {"form": forms[i % 8], **fields}).status for i in range(61)
    ]
    assert set(statuses) == {401}
    assert token_of(Browser(server).sign_in("ann@example.com", PASSWORD))
    assert token_of(strangers[0].sign_in("ann@example.com", PASSWORD))  # also from an address that failed


def test_a_name_that_is_tried_from_everywhere_has_fewer_attempts_from_each_address(make, tmp_path, hashed):
    users = write_users(tmp_path / "users", ann(hashed))
    server = make.server(LEASEHOLD_JWT_SECRET=SECRET, LEASEHOLD_USERS_FILE=users)

    def has_fewer(last):
        late = Browser(server, source="127.0.1.%d" % last)
        return 429 in [late.sign_in("ann@example.com", "wrong password").status for _ in range(9)]

    assert not has_fewer(1)
    assert any(has_fewer(last) for last in range(2, 40))


def test_who_signs_in_rightly_uses_up_no_attempts(make, tmp_path, hashed):
    users = write_users(tmp_path / "users", ann(hashed))
    server = make.server(LEASEHOLD_JWT_SECRET=SECRET, LEASEHOLD_USERS_FILE=users)
    browser = Browser(server)
    for _ in range(15):
        assert token_of(browser.sign_in("ann@example.com", PASSWORD))


def test_the_users_file_is_read_again_when_it_changes(make, tmp_path, hashed):
    users = write_users(tmp_path / "users", ann(hashed))
    server = make.server(LEASEHOLD_JWT_SECRET=SECRET, LEASEHOLD_USERS_FILE=users)
    write_users(users, ann(hashed, email="bob@example.com", roles=["Admin", "User"]))
    browser = Browser(server)
    got = status(server.client(), token_of(browser.sign_in("bob@example.com", PASSWORD)))
    assert got["session"]["user"]["roles"] == ["User", "Admin"]
    assert browser.sign_in("ann@example.com", PASSWORD).status == 401
    users.write_text("nonsense\n")
    server.signal(signal.SIGHUP)
    until(lambda: "reload failed" in server.output(), "the bad file is told of")
    assert token_of(browser.sign_in("bob@example.com", PASSWORD))
    users.write_text("# nobody\n")
    server.signal(signal.SIGHUP)
    until(lambda: re.search("reload failed.*it is empty, but had 1 people before", server.output()), "so is one without people")
    assert token_of(browser.sign_in("bob@example.com", PASSWORD))
    assert "are read again" not in server.output()


def test_a_users_file_that_others_can_read_stops_the_start(make, tmp_path, hashed):
    users = write_users(tmp_path / "users", ann(hashed))
    users.chmod(0o644)
    server = make.server(start=False, LEASEHOLD_JWT_SECRET=SECRET, LEASEHOLD_USERS_FILE=users)
    with pytest.raises(AssertionError, match="chmod 600"):
        server.start()


def test_the_web_app_can_be_elsewhere(make, tmp_path, hashed):
    users = write_users(tmp_path / "users", ann(hashed))
    server = make.server(
        LEASEHOLD_JWT_SECRET=SECRET, LEASEHOLD_USERS_FILE=users, LEASEHOLD_WEB_APP_URL="https://lab.example.com/app/"
    )
    browser = Browser(server)
    page = browser.get("/api/auth/signin")
    assert "form-action 'self' https://lab.example.com;" in page.header("content-security-policy")
    assert "; Secure" in page.header("set-cookie")
    token_of(browser.sign_in("ann@example.com", PASSWORD), before="https://lab.example.com/app/")


def test_development_makes_three_users(make, tmp_path):
    server = make.server(args=["--dev"], bare=True, LEASEHOLD_SIM_SANDBOXES=3)
    printed = dict(re.findall(r"^  (\S+@example.com) +password (\S+)$", server.says("leasehold demo"), re.M))
    assert sorted(printed) == ["admin@example.com", "manager@example.com", "user@example.com"]
    for email, password in printed.items():
        got = status(server.client(), token_of(Browser(server).sign_in(email, password)))
        assert got["session"]["user"]["roles"] == [email.split("@")[0].capitalize()]
    for name in ("users", "dev-passwords", "jwt-secret"):
        assert (server.data / name).stat().st_mode & 0o777 == 0o600
    token = run("token", "issue", "--email", "a@b.co", "--role", "User", "--data", str(server.data)).stdout.strip()
    assert server.stop() == 0
    server.start()
    assert status(server.client(), token)["authenticated"] is True  # the secret is kept
    assert dict(re.findall(r"^  (\S+@example.com) +password (\S+)$", server.says("leasehold demo"), re.M)) == printed


# A provider.


WEB = "http://127.0.0.1:1"


@pytest.fixture
def provider():
    made = Provider()
    yield made
    made.close()


@pytest.fixture
def with_provider(make, provider):
    return make.server(LEASEHOLD_JWT_SECRET=SECRET, **provider.settings(WEB))


def begin(browser):
    reply = browser.get("/api/auth/login")
    assert reply.status == 302, reply
    return reply.header("location")


def back(browser, provider):
    """To the provider and back."""
    redirect, query = provider.authorize(begin(browser))
    assert redirect == WEB + "/api/auth/login/callback"
    return browser.get("/api/auth/login/callback?" + query)


@pytest.mark.parametrize("kind", [RsaKey, EcKey])
def test_a_person_signs_in_with_a_provider(with_provider, provider, kind):
    provider.keys = [RsaKey("other"), kind("mine")]
    provider.signer = provider.keys[1]
    provider.person["preferred_username"] = "ann"
    token = token_of(back(Browser(with_provider), provider), before=WEB + "/")
    user = {"email": "Ann@Example.com", "displayName": "Ann", "userName": "ann", "roles": ["User", "Manager"]}
    assert status(with_provider.client(), token)["session"]["user"] == user
    assert with_provider.client().get("/api/auth/signin").header("location") == "/api/auth/login"
    reply = with_provider.client().get("/api/auth/logout")
    assert reply.header("location") == provider.issuer + "/bye?client_id=leasehold"


def change(**kw):
    return lambda provider: provider.claims.update(kw)


def header(**kw):
    return lambda provider: provider.header.update(kw)


def stranger(provider):
    provider.signer = RsaKey("stranger")


def impostor(provider):
    provider.signer = RsaKey("first")


@pytest.mark.parametrize(
    "wrong, expected",
    [
        (change(nonce="another"), 400),
        (change(nonce=None), 400),
        (change(iss="http://127.0.0.1:2"), 400),
        (change(aud="another"), 400),
        (change(aud=["leasehold", "another"]), 400),
        (change(aud=["leasehold", "another"], azp="another"), 400),
        (change(exp=int(time.time()) - 120), 400),
        (change(exp=None), 400),
        (change(iat=int(time.time()) + 600), 400),
        (stranger, 400),
        (impostor, 400),
        (header(alg="none"), 400),
        (header(alg="HS256"), 400),
        (header(alg="ES256"), 400),
        (header(crit=["x"]), 400),
        (change(email=None), 401),
        (change(email="ann"), 401),
        (change(email_verified=False), 401),
        (change(email_verified="false"), 401),
        (change(email_verified="true"), 401),
        (change(email_verified=0), 401),
        (change(email_verified=1), 401),
        (change(groups=["visitors"]), 401),
        (change(groups=None), 401),
    ],
)
def test_a_token_of_the_provider_must_be_right_in_everything(with_provider, provider, wrong, expected):
    browser = Browser(with_provider)
    wrong(provider)
    reply = back(browser, provider)
    assert reply.status == expected and reply.json["message"], reply
    assert "location" not in dict(reply.headers)
    provider.claims, provider.header, provider.signer = {}, {}, provider.keys[0]
    assert token_of(back(browser, provider), before=WEB + "/")  # and it was that alone


@pytest.mark.parametrize(
    "right",
    [
        change(aud=["leasehold"]),
        change(aud=["leasehold", "another"], azp="leasehold"),
        change(groups="lab-admins"),
        header(kid=None),
        change(exp=(1 << 63) - 1),
        change(email_verified=True),
    ],
)
def test_what_providers_say_in_other_ways_is_understood(with_provider, provider, right):
    right(provider)
    if provider.header.get("kid", 0) is None:
        del provider.header["kid"]
        provider.signer.kid = None
    assert token_of(back(Browser(with_provider), provider), before=WEB + "/")


def test_a_new_key_of_the_provider_is_found(with_provider, provider):
    browser = Browser(with_provider)
    assert token_of(back(browser, provider), before=WEB + "/")
    provider.keys.append(EcKey("second"))
    provider.signer = provider.keys[-1]
    until(lambda: back(browser, provider).status == 302, "the new key is fetched")
    asked = provider.calls.count("/keys")
    assert token_of(back(browser, provider), before=WEB + "/") and provider.calls.count("/keys") == asked


def test_a_callback_belongs_to_the_browser_that_began(with_provider, provider):
    browser, other = Browser(with_provider), Browser(with_provider)
    _, query = provider.authorize(begin(browser))
    assert other.get("/api/auth/login/callback?" + query).status == 400  # no cookie
    begin(other)
    assert other.get("/api/auth/login/callback?" + query).status == 400  # the cookie of another trip
    assert browser.get("/api/auth/login/callback?" + query.replace("state=", "state=x")).status == 400
    assert browser.get("/api/auth/login/callback?" + query).status == 400  # the trip has ended with that
    assert "/token" not in provider.calls


def test_a_callback_cannot_be_used_twice(with_provider, provider):
    browser = Browser(with_provider)
    _, query = provider.authorize(begin(browser))
    cookies = dict(browser.cookies)
    assert browser.get("/api/auth/login/callback?" + query).status == 302
    browser.cookies = cookies
    assert browser.get("/api/auth/login/callback?" + query).status == 400  # the provider knows its codes


def test_a_changed_trip_is_refused(with_provider, provider):
    browser = Browser(with_provider)
    _, query = provider.authorize(begin(browser))
    state = parse_qs(query)["state"][0]
    value = browser.cookies["leasehold_trip"]
    assert value.startswith(state + ".")
    parts = value.split(".")
    for changed in (
        ".".join([parts[0], ("y" if parts[1][0] == "x" else "x") + parts[1][1:]] + parts[2:]),
        ".".join(parts[:3] + [str(int(parts[3]) + 1)] + parts[4:]),
        ".".join(parts[:-1]),
        ".".join(parts[:-1] + [""]),
        value + "A",
        "....",
        ".",
    ):
        browser.cookies = {"leasehold_trip": changed}
        assert browser.get("/api/auth/login/callback?" + query).status == 400, changed
    browser.cookies = {"leasehold_trip": value}
    assert browser.get("/api/auth/login/callback?" + query).status == 302


def test_a_person_who_refuses_is_told_so(with_provider, provider):
    browser = Browser(with_provider)
    _, query = provider.authorize(begin(browser))
    state = parse_qs(query)["state"][0]
    cookies = dict(browser.cookies)
    reply = browser.get("/api/auth/login/callback?error=access_denied&state=" + state)
    assert reply.status == 400 and reply.json["error"] == "access_denied"
    browser.cookies = cookies
    reply = browser.get("/api/auth/login/callback?error=%3Cscript%3E&state=" + state)
    assert reply.status == 400 and reply.json["error"] == "unknown"
    browser.cookies = cookies
    assert browser.get("/api/auth/login/callback?state=" + state).status == 400


def test_a_provider_that_is_not_what_it_should_be(make, provider):
    server = make.server(LEASEHOLD_JWT_SECRET=SECRET, **provider.settings(WEB))
    provider.description = {"issuer": "https://evil.example"}
    assert Browser(server).get("/api/auth/login").status == 400
    provider.description = {"token_endpoint": "http://evil.example/token"}
    assert Browser(server).get("/api/auth/login").status == 400
    provider.description = {}
    begin(Browser(server))


def test_a_provider_that_is_away(make, provider):
    settings = provider.settings(WEB)
    provider.close()
    server = make.server(LEASEHOLD_JWT_SECRET=SECRET, **settings)
    reply = Browser(server).get("/api/auth/login")
    assert reply.status == 503 and reply.json["message"]
    reply = Browser(server).get("/api/auth/logout")
    assert reply.status == 302 and urlsplit(reply.header("location")).netloc == "127.0.0.1:1"
    provider.close = lambda: None


def test_the_wrong_client_secret_is_told_to_the_log_only(make, provider):
    server = make.server(
        LEASEHOLD_JWT_SECRET=SECRET, **{**provider.settings(WEB), "LEASEHOLD_OIDC_CLIENT_SECRET": "wrong-secret"}
    )
    reply = back(Browser(server), provider)
    assert reply.status == 400 and b"wrong-secret" not in reply.body
    assert "wrong-secret" not in server.output()


# People who have signed in with the provider.


PEOPLE = "/v1/ops/people"


def test_whoever_signs_in_with_the_provider_can_borrow_and_be_removed(make, provider):
    server = make.server(args=["--dev"], LEASEHOLD_JWT_SECRET=SECRET, **provider.settings(WEB))
    operator = server.client({"Authorization": "Bearer " + server.env["BROKER_ADMIN_TOKEN"]})
    admin = {"Authorization": "Bearer " + admin_token()}
    template = {"name": "For all", "requiresApproval": True, "visibility": "PUBLIC", "leaseDurationInHours": 1, "maxSpend": 5}
    made = server.client().post("/api/leaseTemplates", body=template, headers=admin)
    assert made.status == 201, made
    request = {"leaseTemplateUuid": made.json["data"]["uuid"], "userEmail": "ann@example.com"}
    refused = server.client().post("/api/leases", body=request, headers=admin)
    assert refused.status == 404 and "not in the directory of people" in refused.body.decode(), refused

    own = {"Authorization": "Bearer " + token_of(back(Browser(server), provider), before=WEB + "/")}
    listed = operator.get(PEOPLE).json["people"]
    assert [(p["email"], p["roles"], p["source"]) for p in listed] == [("Ann@Example.com", ["User", "Manager"], "provider")]
    assert abs(listed[0]["signed_in_at"] - time.time()) < 60
    for headers in (admin, own):
        reply = server.client().post("/api/leases", body=request, headers=headers)
        assert reply.status == 201 and reply.json["data"]["userEmail"] == "Ann@Example.com", reply

    assert server.stop() == 0
    server.start()
    operator = server.client({"Authorization": "Bearer " + server.env["BROKER_ADMIN_TOKEN"]})
    assert [p["email"] for p in operator.get(PEOPLE).json["people"]] == ["Ann@Example.com"]
    assert operator.request("DELETE", PEOPLE + "/ANN@example.com").status == 200
    assert operator.get(PEOPLE).json["people"] == [] and operator.request("DELETE", PEOPLE + "/ann@example.com").status == 404
    assert server.client().post("/api/leases", body=request, headers=admin).status == 404
    kinds = [e["detail-type"] for e in operator.get("/v1/ops/events?subject=person/ann@example.com").json["events"]]
    assert sorted(kinds) == ["PersonAdded", "PersonRemoved"]


def test_the_pages_are_told_where_they_are(make, provider):
    server = make.server(args=["--dev"], LEASEHOLD_JWT_SECRET=SECRET, **provider.settings(WEB))
    reply = server.client().get("/api/configurations", headers={"Authorization": "Bearer " + admin_token()})
    assert reply.json["data"]["auth"]["webAppUrl"] == WEB


def test_people_of_the_users_file_are_listed_page_by_page_and_stay(make, tmp_path, hashed):
    users = write_users(tmp_path / "users", ann(hashed), ann(hashed, email="bob@example.com"))
    server = make.server(LEASEHOLD_JWT_SECRET=SECRET, LEASEHOLD_USERS_FILE=users)
    operator = server.client({"Authorization": "Bearer " + server.env["BROKER_ADMIN_TOKEN"]})
    everybody = operator.get(PEOPLE).json["people"]
    assert len(everybody) > 1 and {p["source"] for p in everybody} == {"users file"}
    seen, cursor = [], ""
    while cursor is not None:
        page = operator.get(PEOPLE + "?limit=1" + ("&cursor=" + cursor if cursor else "")).json
        seen += page["people"]
        cursor = page["cursor"]
    assert seen == everybody
    shown = subprocess.run([binary(), "person", "list"], env=clean_env({"LEASEHOLD_ADDRESS": server.url, "BROKER_ADMIN_TOKEN": server.env["BROKER_ADMIN_TOKEN"]}),
                           capture_output=True, text=True).stdout
    assert re.search(r"^Ann@Example.com +Ann +Manager +users file", shown, re.M), shown
    reply = operator.request("DELETE", PEOPLE + "/" + everybody[0]["email"])
    assert reply.status == 409 and "users file" in reply.body.decode()


# Service accounts.


@pytest.fixture
def ops(make):
    server = make.server(LEASEHOLD_JWT_SECRET=SECRET)
    client = server.client({"Authorization": "Bearer " + server.env["BROKER_ADMIN_TOKEN"]})
    client.server = server
    return client


ACCOUNTS = "/v1/ops/service-accounts"


def create(ops, name="portal", scopes="read,approve"):
    reply = ops.post(ACCOUNTS, body={"name": name, "scopes": scopes, "description": "the portal"})
    assert reply.status == 201, reply
    return reply.json


def test_a_service_account_is_made_and_known_at_once(ops):
    made = create(ops)
    assert made["key"].startswith("lsk_portal_") and made["email"] == "portal@service-account.invalid"
    got = status(ops.server.client(), made["key"])
    assert got["session"] == {
        "user": {"email": made["email"], "displayName": "portal", "roles": []},
        "scopes": "read,approve",
    }
    listed = ops.get(ACCOUNTS).json["service_accounts"]
    assert [a["name"] for a in listed] == ["portal"] and "key" not in listed[0] and "hash" not in listed[0]
    assert made["key"] not in ops.server.output()


def test_a_key_survives_a_restart_and_is_nowhere_in_the_store(ops):
    key = create(ops)["key"]
    server = ops.server
    assert server.stop() == 0
    for file in server.data.iterdir():
        assert key.removeprefix("lsk_portal_").encode() not in file.read_bytes(), file
    server.start()
    assert status(server.client(), key)["authenticated"] is True


def test_a_key_is_rotated_with_an_overlap(ops):
    first = create(ops)["key"]
    client = ops.server.client()
    reply = ops.post(ACCOUNTS + "/portal/rotate", body={"overlap_minutes": 5})
    assert reply.status == 200, reply
    assert abs(reply.json["old_key_until"] - time.time() - 300) < 30
    for key in (first, reply.json["key"]):
        assert status(client, key)["authenticated"] is True
    third = ops.post(ACCOUNTS + "/portal/rotate", body={"overlap_minutes": 0}).json["key"]
    for key in (first, reply.json["key"]):
        assert status(client, key)["authenticated"] is False
    assert status(client, third)["authenticated"] is True


def test_a_revoked_key_is_closed_at_once(ops):
    key = create(ops)["key"]
    reply = ops.request("DELETE", ACCOUNTS + "/portal")
    assert reply.status == 200 and reply.json["revoked_at"]
    assert status(ops.server.client(), key)["authenticated"] is False
    assert ops.request("DELETE", ACCOUNTS + "/portal").status == 409
    assert ops.post(ACCOUNTS + "/portal/rotate").status == 409
    again = create(ops, scopes="cost")
    assert again["key"] != key and status(ops.server.client(), again["key"])["authenticated"] is True


def test_accounts_are_refused_with_a_reason(ops):
    create(ops)
    for body, why in (
        ({"name": "portal", "scopes": "read"}, "rotate"),
        ({"name": "Portal", "scopes": "read"}, "name"),
        ({"name": "x", "scopes": "admin"}, "scopes"),
        ({"name": "x"}, "scopes"),
        ({"name": "x", "scopes": "read", "role": "Admin"}, "role"),
        ({"name": 7, "scopes": "read"}, "name"),
        ([], "like"),
    ):
        reply = ops.post(ACCOUNTS, body=body)
        assert reply.status in (400, 409) and why in reply.error["message"], reply
    assert ops.post(ACCOUNTS + "/other/rotate").status == 404
    assert ops.post(ACCOUNTS + "/portal/rotate", body={"overlap_minutes": 43201}).status == 400
    assert ops.post(ACCOUNTS + "/portal/rotate", body={"overlap_minutes": -1}).status == 400


def test_service_accounts_are_for_operators_and_admins_only(ops):
    key = create(ops)["key"]
    manager = admin_token(user={"email": "mia@example.com", "roles": ["Manager", "User"]})
    for token in (key, manager, ops.server.env["BROKER_API_TOKEN"]):
        client = ops.server.client({"Authorization": "Bearer " + token})
        assert client.get(ACCOUNTS).status in (401, 403)
        assert client.get("/v1/admin/stats").status in (401, 403)


def test_what_is_done_with_accounts_is_in_the_log_of_events(ops):
    create(ops)
    ops.post(ACCOUNTS + "/portal/rotate")
    ops.request("DELETE", ACCOUNTS + "/portal")
    events = ops.get("/v1/ops/events?subject=service-account/portal&order=oldest").json["events"]
    assert [e["detail-type"] for e in events] == [
        "ServiceAccountCreated",
        "ServiceAccountRotated",
        "ServiceAccountRevoked",
    ]
    assert all(e["actor"] == "admin" and e["detail"]["name"] == "portal" for e in events)
    assert "lsk_" not in json.dumps(events)


def test_the_commands_for_service_accounts(ops):
    env = {"LEASEHOLD_ADDRESS": ops.server.url, "BROKER_ADMIN_TOKEN": ops.server.env["BROKER_ADMIN_TOKEN"]}
    got = run("service-account", "create", "portal", "--scopes", "read", "--json", env=env)
    assert got.returncode == 0, got.stderr
    assert status(ops.server.client(), json.loads(got.stdout)["key"])["authenticated"] is True
    got = run("service-account", "rotate", "portal", "--minutes", "0", env=env)
    assert got.returncode == 0 and "lsk_portal_" in got.stdout and "not shown again" in got.stderr
    got = run("service-account", "list", env=env)
    assert "portal" in got.stdout and "active" in got.stdout and "lsk_" not in got.stdout
    assert run("service-account", "revoke", "portal", env=env).returncode == 0
    assert "revoked" in run("service-account", "list", env=env).stdout
    assert run("service-account", "revoke", "other", env=env).returncode == 4


# What a key is good for, on the routes themselves. What a key may do is answered by the route: 404, 409, 400, or good.
REACH = [
    ("GET", "/leases", "read approve cost"),
    ("GET", "/leases/x", "read approve cost"),
    ("GET", "/leaseTemplates", "read"),
    ("GET", "/configurations", "read pool-admin cost"),
    ("GET", "/blueprints", "read"),
    ("GET", "/accounts", "read pool-admin"),
    ("GET", "/accounts/unregistered", "read pool-admin"),
    ("GET", "/reports/costs?month=2026-10", "cost"),
    ("POST", "/leases/x/review", "approve"),
    ("PATCH", "/leases/x/review", "approve"),
    ("POST", "/accounts", "pool-admin"),
    ("POST", "/accounts/111122223333/eject", "pool-admin"),
    ("POST", "/accounts/111122223333/retryCleanup", "pool-admin"),
    ("POST", "/leases", ""),
    ("PATCH", "/leases/x", ""),
    ("POST", "/leases/x/freeze", ""),
    ("POST", "/leases/x/terminate", ""),
    ("POST", "/leaseTemplates", ""),
    ("DELETE", "/leaseTemplates/x", ""),
    ("POST", "/blueprints", ""),
]


@pytest.fixture(scope="module")
def keys(make_for_module):
    """A server that lends accounts, and a key for each scope."""
    server = make_for_module.server(args=["--dev"], LEASEHOLD_JWT_SECRET=SECRET)
    ops = server.client({"Authorization": "Bearer " + server.env["BROKER_ADMIN_TOKEN"]})
    made = {scope: create(ops, scope, scope)["key"] for scope in ("read", "approve", "pool-admin", "cost")}
    return server, made


@pytest.mark.parametrize("method, path, scopes", REACH)
def test_a_key_reaches_what_its_scope_says_and_nothing_else(keys, method, path, scopes):
    server, made = keys
    for scope, key in made.items():
        client = server.client({"Authorization": "Bearer " + key})
        reply = client.request(method, "/api" + path, body={} if method != "GET" else None)
        if scope in scopes.split(" "):
            assert reply.status not in (401, 403) and reply.status < 500, (scope, reply)
        else:
            assert reply.status == 403 and "scopes" in reply.json["data"]["errors"][0]["message"], (scope, reply)


def test_callers_who_are_none_are_told_why(keys):
    client = keys[0].client()
    now = int(time.time())
    cases = [
        ({}, 401),
        ({"Authorization": "Basic YTpi"}, 403),
        ({"Authorization": "Bearer"}, 403),
        ({"Authorization": "Bearer x"}, 401),
        ({"Authorization": "Bearer " + admin_token(exp=now - 1)}, 401),
        ({"Authorization": "Bearer " + admin_token()[:-2] + "AA"}, 401),
        ({"Authorization": "Bearer lsk_read_x"}, 401),
        ({"Authorization": "Bearer " + mint({"user": {"roles": ["Admin"]}, "exp": now + 60})}, 400),
        ({"Authorization": "Bearer " + mint({"user": {"email": "a@b.co"}, "exp": now + 60})}, 403),
        ({"Authorization": "Bearer " + admin_token()}, 200),
    ]
    for headers, expected in cases:
        reply = client.get("/api/accounts", headers=headers)
        assert reply.status == expected, (headers, reply)
        if expected != 200:
            assert reply.json["status"] == "fail" and reply.json["data"]["errors"][0]["message"], reply


def test_reports_are_for_managers_and_admins(keys):
    now = int(time.time())
    for role, expected in (("Admin", 200), ("Manager", 200), ("User", 403)):
        token = mint({"user": {"email": "a@b.co", "roles": [role]}, "exp": now + 60})
        reply = keys[0].client().get("/api/reports/costs?month=2026-10", headers={"Authorization": "Bearer " + token})
        assert reply.status == expected, reply
    assert reply.json["status"] == "fail"


def test_a_session_lasts_as_long_as_the_policy_says(make, tmp_path, hashed):
    users = write_users(tmp_path / "users", ann(hashed))
    server = make.server(LEASEHOLD_JWT_SECRET=SECRET, LEASEHOLD_USERS_FILE=users)
    ops = server.client({"Authorization": "Bearer " + server.env["BROKER_ADMIN_TOKEN"]})
    reply = ops.request("PUT", "/v1/ops/policy", body=b"auth:\n  sessionDurationInMinutes: 7\n", headers={"If-Match": '"0"'})
    assert reply.status == 200, reply

    def lasts():
        body = claims(token_of(Browser(server).sign_in("ann@example.com", PASSWORD)))
        return body["exp"] - body["iat"]

    assert lasts() == 7 * 60
