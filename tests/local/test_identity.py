# SPDX-License-Identifier: Apache-2.0
"""People of a tenant's pool sign in to the tenant's site by OpenID Connect; others do not."""

import hashlib
import json
import re
import urllib.parse
import uuid

import pytest

from lib.local_driver import Browser, Refused
from lib.signin import PASSWORD, follow, sign_in, who


def add(driver, site, email, name="Somebody"):
    """Into the pool, with the password of these tests."""
    first = driver.call("person", site.tenant, name=name, email=email)["password"]
    browser, page = sign_in(site, email, first, new=PASSWORD)
    assert page.status == 200 and who(site, browser) == email, page


def test_a_person_of_the_pool_gets_in_as_a_wordpress_user(driver, site):
    add(driver, site, "ann@people.example", "Ann Other")
    browser, page = sign_in(site, "ann@people.example", PASSWORD)
    assert page.status == 200 and page.url.startswith(site.url + "/wp-admin/"), page
    assert who(site, browser) == "ann@people.example"
    again, _ = sign_in(site, "Ann@People.example", PASSWORD)
    assert who(site, again) == "ann@people.example", "the same person, once"


def test_the_contact_gets_in_as_the_administrator(driver, site):
    password = driver.call("secret", "tenant-shared")["password"]
    browser, page = sign_in(site, "owner@tenant-shared.example", password)
    assert page.status == 200, page
    assert browser.open(site.url + "/wp-admin/options-general.php").status == 200


def test_a_stranger_does_not_get_in(driver, site, neighbour):
    add(driver, neighbour, "bob@people.example")
    for email, password in (("ann@people.example", "wrong"), ("bob@people.example", PASSWORD), ("x@y.example", PASSWORD), ("", "")):
        browser, page = sign_in(site, email, password)
        assert page.status == 401 and "is wrong" in page.text, (email, page)
        assert who(site, browser) is None


def note_of(driver, site, email):
    """Where failures of a person are counted."""
    return driver.folder / "identity/pools" / site.tenant / "failures" / hashlib.sha256(email.encode()).hexdigest()


def test_guessing_is_stopped(driver, neighbour):
    add(driver, neighbour, "eve@people.example")
    for _ in range(10):
        assert sign_in(neighbour, "eve@people.example", "wrong")[1].status == 401
    for count in (11, 12):
        _, page = sign_in(neighbour, "eve@people.example", PASSWORD)
        assert page.status == 401
        assert note_of(driver, neighbour, "eve@people.example").stat().st_size == count, "this one counts too"


def test_guessing_addresses_leaves_nothing_behind(driver, neighbour):
    notes = note_of(driver, neighbour, "anybody").parent
    before = sorted(notes.iterdir())
    form = follow(neighbour, Browser())
    for i in range(50):
        page = Browser().open(form.url, {"email": "stranger%d-%s@people.example" % (i, uuid.uuid4()), "password": "wrong"})
        assert page.status == 401 and "is wrong" in page.text, page
    assert sorted(notes.iterdir()) == before


def test_a_callback_that_was_not_begun_here_is_refused(driver, site, neighbour):
    browser = Browser()
    page = browser.open(site.url + "/wp-login.php?leasehold=callback&code=abc&state=def")
    assert page.status == 403 and "not begun here" in page.text
    # The state of one, the code of another.
    form = follow(site, browser)
    state = urllib.parse.parse_qs(urllib.parse.urlparse(form.url).query)["state"][0]
    page = browser.open(site.url + "/wp-login.php?leasehold=callback&code=forged&state=" + state)
    assert page.status == 403
    assert who(site, browser) is None


def code_for(site, email):
    """A code of the provider, not handed to the site; and what it was asked with."""
    browser = Browser()
    form = follow(site, browser)
    once = Browser(follows=False)
    page = once.open(form.url, {"email": email, "password": PASSWORD})
    assert page.status == 303, page
    return urllib.parse.parse_qs(urllib.parse.urlparse(page.headers["Location"]).query)["code"][0]


def test_the_provider_follows_the_standard(driver, site, neighbour):
    add(driver, site, "cy@people.example")
    issuer = "http://%s/identity/tenant-shared" % driver.router
    about = json.loads(Browser().open(issuer + "/.well-known/openid-configuration").text)
    assert about["issuer"] == issuer and about["id_token_signing_alg_values_supported"] == ["RS256"]
    keys = json.loads(Browser().open(about["jwks_uri"]).text)["keys"]
    other = json.loads(Browser().open("http://%s/identity/tenant-neighbour/keys" % driver.router).text)["keys"]
    assert keys[0]["n"] != other[0]["n"], "each pool has its own key"
    code = code_for(site, "cy@people.example")
    page = Browser().open(about["token_endpoint"], {"grant_type": "authorization_code", "code": code, "client_id": "x", "client_secret": "y"})
    assert page.status == 401 and json.loads(page.text)["error"] == "invalid_client"
    assert Browser().open(about["userinfo_endpoint"], headers={"Authorization": "Bearer a.b.c"}).status == 401
    bad = Browser(follows=False).open(about["authorization_endpoint"] + "?client_id=x&redirect_uri=http://evil.example/")
    assert bad.status == 400 and "Location" not in bad.headers
    assert Browser().open("http://%s/identity/tenant-none/keys" % driver.router).status == 404
    assert Browser().open("http://%s/identity/../php/identity.php" % driver.router).status == 404


@pytest.mark.parametrize("password", ["sh-1A", "alllower-1", "ALLUPPER-1", "NoDigits-here", "NoSymbol1234"])
def test_a_weak_password_is_refused(driver, site, password):
    first = driver.call("person", "tenant-shared", name="Dee", email="dee@people.example")["password"]
    browser, page = sign_in(site, "dee@people.example", first, new=password)
    assert page.status == 401 and "too weak" in page.text and who(site, browser) is None
    _, page = sign_in(site, "dee@people.example", password)
    assert page.status == 401 and "is wrong" in page.text, "nothing has changed"


def test_the_first_password_is_for_the_first_sign_in_only(driver, site):
    first = driver.call("person", "tenant-shared", name="Fay", email="fay@people.example")["password"]
    browser, page = sign_in(site, "fay@people.example", first)
    assert page.status == 200 and "Choose a password" in page.text and 'name="new"' in page.text
    assert who(site, browser) is None, "not before a new one is chosen"
    _, page = sign_in(site, "fay@people.example", first, new=first)
    assert page.status == 401 and "another" in page.text
    browser, _ = sign_in(site, "fay@people.example", first, new=PASSWORD)
    assert who(site, browser) == "fay@people.example"
    assert sign_in(site, "fay@people.example", first)[1].status == 401
    again = driver.call("person", "tenant-shared", name="Fay", email="Fay@people.example")
    assert not again["new"] and again["password"] != first
    assert sign_in(site, "fay@people.example", PASSWORD)[1].status == 401, "a forgotten password is replaced"
    browser, _ = sign_in(site, "fay@people.example", again["password"], new=PASSWORD)
    assert who(site, browser), "and the person is the same user"


def test_a_first_password_that_nobody_used_for_a_week_is_over(driver, site):
    first = driver.call("person", "tenant-shared", name="Gus", email="gus@people.example")["password"]
    (file,) = [p for p in (driver.folder / "identity/pools/tenant-shared/people").iterdir() if "gus@" in p.read_text()]
    kept = json.loads(file.read_text())
    assert 6 * 86400 < kept["until"] - kept["added"] <= 7 * 86400
    kept["until"] -= 8 * 86400
    file.write_text(json.dumps(kept))
    _, page = sign_in(site, "gus@people.example", first, new=PASSWORD)
    assert page.status == 401 and "good for a week" in page.text


def test_who_is_removed_is_out(driver, site):
    add(driver, site, "hal@people.example", "Hal")
    browser, _ = sign_in(site, "hal@people.example", PASSWORD)
    assert who(site, browser) == "hal@people.example"
    assert "hal@people.example Hal" in driver.call("people", "tenant-shared")["people"]
    late = Browser()
    half = Browser(follows=False).open(follow(site, late).url, {"email": "hal@people.example", "password": PASSWORD})
    assert half.status == 303
    assert driver.call("remove_person", "tenant-shared", email="Hal@People.example")["was"]
    assert who(site, browser) is None, "signed out"
    assert sign_in(site, "hal@people.example", PASSWORD)[1].status == 401
    assert late.open(half.headers["Location"]).status == 403 and who(site, late) is None, "nor half-way in"
    assert not driver.call("remove_person", "tenant-shared", email="hal@people.example")["was"]
    assert not [p for p in driver.call("people", "tenant-shared")["people"] if "hal@" in p]


def test_who_is_out_of_the_pool_was_there_even_if_not_signed_out(driver, site):
    """So it is told; the next try signs out, and finds nobody."""
    add(driver, site, "kim@people.example", "Kim")
    browser, _ = sign_in(site, "kim@people.example", PASSWORD)
    driver.sql("tenant-shared", "RENAME TABLE wp_usermeta TO wp_elsewhere")
    try:
        with pytest.raises(Refused, match="may still be signed in") as refused:
            driver.call("remove_person", "tenant-shared", email="kim@people.example")
        assert refused.value.reply["was"]
    finally:
        driver.sql("tenant-shared", "RENAME TABLE wp_elsewhere TO wp_usermeta")
    assert not driver.call("remove_person", "tenant-shared", email="kim@people.example")["was"]
    assert who(site, browser) is None, "signed out"


def test_the_pool_is_the_only_way_in_for_its_people(driver, site):
    """A password that WordPress itself knows would outlive a removal."""
    add(driver, site, "ida@people.example")
    browser, _ = sign_in(site, "ida@people.example", PASSWORD)
    profile = browser.open(site.url + "/wp-admin/profile.php").text
    nonce = re.search(r'name="_wpnonce" value="([^"]*)"', profile).group(1)
    user = re.search(r'name="user_id"[^>]*value="(\d+)"', profile).group(1)
    name = re.search(r'name="user_login"[^>]*value="([^"]*)"', profile).group(1)
    assert "application-passwords" not in profile or "new_application_password_name" not in profile
    fields = {"_wpnonce": nonce, "action": "update", "user_id": user, "email": "ida@people.example", "nickname": name, "display_name": name, "pass1": PASSWORD, "pass2": PASSWORD}
    assert browser.open(site.url + "/wp-admin/profile.php", fields).status == 200
    fresh = Browser()
    fresh.open(site.url + "/wp-login.php")
    page = fresh.open(site.url + "/wp-login.php", {"log": name, "pwd": PASSWORD, "wp-submit": "Log In", "testcookie": "1"})
    assert "organisation&#039;s account" in page.text or "organisation's account" in page.text
    assert who(site, fresh) is None


def test_a_pool_has_room_for_so_many(driver, site, neighbour):
    people = driver.folder / "identity/pools/tenant-neighbour/people"
    one = json.loads(next(people.glob("*.json")).read_text())
    made = [people / ("%064x.json" % i) for i in range(1000)]
    for i, path in enumerate(made):
        path.write_text(json.dumps({**one, "email": "p%04d@people.example" % i}))
        path.chmod(0o644)
    try:
        with pytest.raises(Refused, match="is full") as refused:
            driver.call("person", "tenant-neighbour", name="Jo", email="jo@people.example")
        assert refused.value.status == 409
        assert len(driver.call("people", "tenant-neighbour")["people"]) >= 1000
    finally:
        for path in made:
            path.unlink()


def test_people_of_nothing(driver, site):
    for what in ("person", "people", "remove_person"):
        with pytest.raises(Refused) as refused:
            driver.call(what, "tenant-nobody", name="X", email="x@people.example")
        assert refused.value.status == 404, what
    with pytest.raises(Refused, match="no e-mail address"):
        driver.call("person", "tenant-shared", name="X", email="x@y@z")
    injected = "o'brien`;drop@people.example"
    assert not driver.call("remove_person", "tenant-shared", email=injected)["was"]


def test_a_site_without_a_pool_offers_none(driver, tenant):
    spec = {"instance": "i", "organization": "Org", "email": "a@b.example", "desired": 1}
    for resource in ("storage", "database", "secret", "route", "workers"):
        driver.call("create", tenant, resource=resource, **spec)
    driver.call("configure", tenant, **spec)
    driver.call("route", tenant, to=1)
    driver.wait_running(tenant, 1)
    page = Browser().open("http://%s/tenant/%s/wp-login.php" % (driver.router, tenant))
    assert page.status == 200 and "leasehold=signin" not in page.text
    driver.deprovision(tenant)
