# SPDX-License-Identifier: Apache-2.0
"""A real WordPress for each tenant: pages, sign-in, posts, uploads, and the walls between them."""

import json
import os

import pytest

from lib.local_driver import OPEN, RESOURCES, Browser, Refused

CODE = "<?php header('Content-Type: application/json'); function out($x) { echo json_encode($x); exit; }\n"


def run_as_tenant(site, code):
    """What code of the tenant's sees and may do: a PHP file in its storage, called through the router."""
    path = site.root / "wp-content/probe.php"
    path.write_text(CODE + code)
    path.chmod(0o644)
    try:
        page = site.get("/wp-content/probe.php", headers={"Remote-User": "admin"})
        assert page.status == 200, page
        return json.loads(page.text)
    finally:
        path.unlink()


def test_a_front_page_answers_at_once_and_without_a_redirect(site):
    page = Browser(follows=False).open(site.url + "/")
    assert page.status == 200, page
    assert "Org of tenant-shared" in page.text and page.text.rstrip().endswith("</html>")


def test_the_address_without_its_slash_leads_to_the_site(site):
    page = Browser(follows=False).open(site.url)
    assert (page.status, page.headers["Location"]) == (301, "/tenant/tenant-shared/")


def test_before_the_route_is_opened_nobody_meets_the_installer(driver, tenant):
    site = driver.provision(tenant, opens=False)
    for path in ("/", "/wp-admin/install.php", "/wp-login.php", "/wp-includes/css/dashicons.css", "/wp-json/"):
        assert site.get(path).status == 503, path
    driver.call("route", tenant, to=OPEN)
    page = site.get("/wp-admin/install.php")
    assert "Already Installed" in page.text
    assert site.get("/").status == 200
    driver.deprovision(tenant)
    assert site.get("/").status == 404


def test_the_administrator_signs_in_writes_and_uploads(driver, site):
    page = site.sign_in()
    assert page.status == 200 and page.url.endswith("/wp-admin/"), page
    post = site.post("A first post")
    assert post["link"] == site.url + "/a-first-post/", "links are pretty"
    page = site.get("/a-first-post/")
    assert page.status == 200 and "Text of A first post" in page.text
    picture = site.upload()
    page = Browser().open(picture["source_url"])
    assert page.status == 200 and page.headers["Content-Type"] == "image/png"
    made = site.root / "wp-content/uploads" / picture["media_details"]["file"]
    assert made.stat().st_uid == (site.root / "wp-content").stat().st_uid


def test_a_wrong_password_does_not_get_in(driver, neighbour):
    page = neighbour.sign_in("admin", "wrong")
    assert "wp-login.php" in page.url and "is incorrect" in page.text


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give each tenant a user")
def test_tenants_cannot_get_at_each_other(driver, site, neighbour):
    other = str(neighbour.root)
    assert (neighbour.root / "wp-content").stat().st_uid != (site.root / "wp-content").stat().st_uid
    key = json.loads((driver.folder / "tenants/tenant-neighbour.json").read_text())["uid"]
    sockets = sorted(str(p) for p in (driver.folder / "s").iterdir())
    got = run_as_tenant(
        site,
        "$o = %r;\n" % other
        + "$sockets = %s;\n" % json.dumps(sockets)
        + "$open = []; foreach ($sockets as $s) if (!str_ends_with($s, '/nginx') && @stream_socket_client('unix://' . $s)) $open[] = $s;\n"
        + "out(['uid' => posix_getuid(), 'config' => @file_get_contents($o . '/wp-config.php'), 'list' => @scandir($o), "
        + "'write' => @file_put_contents($o . '/wp-content/uploads/x', 'x'), 'code' => @file_put_contents(ABSPATH . 'x.php', 'x'), "
        + "'own' => @file_put_contents(ABSPATH . 'wp-content/uploads/x.txt', 'x'), 'key' => @file_get_contents(%r), " % str(driver.folder / "master.key")
        + "'secret' => @scandir(%r), 'open' => $open, 'temp' => sys_get_temp_dir()]);" % str(driver.folder / "secrets"),
    )
    uid, temp = got.pop("uid"), got.pop("temp")
    assert uid not in (0, key)
    assert temp != "/tmp"
    assert got == {"config": False, "list": False, "write": False, "code": False, "own": 1, "key": False, "secret": False, "open": []}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give each tenant a user")
def test_a_link_to_a_neighbours_file_is_not_followed(site, neighbour):
    """Not by PHP, which is the tenant, nor by nginx, which may read files of both."""
    secret = neighbour.root / "wp-content/plugins/notes.txt"
    secret.write_text("between us")
    os.chown(secret, (neighbour.root / "wp-content").stat().st_uid, -1)
    secret.chmod(0o644)
    own = site.root / "wp-content/uploads/own.txt"
    own.write_text("mine")
    uid = (site.root / "wp-content").stat().st_uid
    os.chown(own, uid, uid)
    own.chmod(0o644)
    for name, target, status in (("other.txt", secret, 404), ("same.txt", own, 200)):
        link = site.root / "wp-content/uploads" / name
        os.symlink(target, link)
        os.lchown(link, uid, uid)
        assert site.get("/wp-content/uploads/" + name).status == status, name
        link.unlink()
    assert neighbour.get("/wp-content/plugins/notes.txt").text == "between us"
    got = run_as_tenant(site, "out(@file_get_contents(%r));" % str(secret))
    assert got is False


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give each tenant a user")
def test_no_tenant_can_change_the_code_that_all_run(driver, site):
    (cache,) = (driver.folder / "cache").iterdir()
    assert (cache / "built").exists() and len(list(cache.rglob("*.bin"))) > 800
    assert {p.lstat().st_uid for p in cache.rglob("*")} == {0}
    got = run_as_tenant(site, "out([ini_get('opcache.file_cache'), is_writable(ini_get('opcache.file_cache')), opcache_get_status(false)['opcache_enabled']]);")
    assert got == [str(cache), False, True]


def test_a_tenants_database_user_sees_its_own_database_only(driver, site, neighbour):
    def look():
        return run_as_tenant(
            site,
            "require ABSPATH . 'wp-load.php'; global $wpdb; $wpdb->suppress_errors();\n"
            "out(['all' => $wpdb->get_col('SHOW DATABASES'), 'users' => $wpdb->get_col('SELECT User FROM mysql.user'), 'own' => DB_NAME]);",
        )

    own = look()["own"]
    twin = own.replace("_", "x")  # what a grant would mean by '_': any character
    driver.sql("tenant-shared", "CREATE DATABASE `%s`" % twin)
    try:
        got = look()
    finally:
        driver.sql("tenant-shared", "DROP DATABASE `%s`" % twin)
    assert got["users"] == []
    assert sorted(got["all"]) == sorted(["information_schema", own])


def test_php_is_set_up_for_wordpress(site):
    got = run_as_tenant(
        site,
        "out(['mysqli' => extension_loaded('mysqli'), 'cache' => ini_get('opcache.memory_consumption'), 'mail' => mail('a@b.example', 's', 't'), "
        "'exec' => function_exists('exec'), 'user' => $_SERVER['REMOTE_USER'], 'host' => $_SERVER['HTTP_HOST']]);",
    )
    assert got == {"mysqli": True, "cache": "32", "mail": True, "exec": False, "user": "", "host": site.driver.router}


def test_a_plugin_starts_no_program_in_a_request_nor_while_wordpress_is_configured(driver, tenant):
    """On the command line PHP can do more by itself: start processes that nobody would end, and call any library."""
    site = driver.provision(tenant, desired=1)
    plugin = site.root / "wp-content/mu-plugins/may.php"
    plugin.write_text(
        "<?php $may = array_values(array_filter(['exec', 'passthru', 'shell_exec', 'system', 'proc_open', 'popen', 'pcntl_exec', 'pcntl_fork', 'dl'], 'function_exists'));\n"
        "try { FFI::cdef('int getpid(void);'); $may[] = 'FFI'; } catch (Throwable $e) { }\n"
        "file_put_contents(WP_CONTENT_DIR . '/uploads/may.' . PHP_SAPI, json_encode([$may, ini_get('memory_limit') > 0, ini_get('session.save_path')]));"
    )
    plugin.chmod(0o644)
    assert site.get().status == 200
    driver.call("configure", tenant, instance="inst-" + tenant, organization="Acme", email="owner@acme.example")
    got = {sapi: json.loads((site.root / "wp-content/uploads" / ("may." + sapi)).read_text()) for sapi in ("fpm-fcgi", "cli")}
    assert got["fpm-fcgi"][:2] == [[], True] and got["cli"] == got["fpm-fcgi"]
    driver.deprovision(tenant)


def test_what_is_uploaded_is_never_run_and_settings_are_never_shown(site):
    path = site.root / "wp-content/uploads/evil.php"
    path.write_text("<?php echo 'ran';")
    try:
        assert site.get("/wp-content/uploads/evil.php").status == 403
    finally:
        path.unlink()
    for hidden in ("/wp-config.php", "/wp-config.php~", "/.htaccess", "/wp-content/mu-plugins/leasehold-signin.php"):
        assert site.get(hidden).status == 404, hidden


def test_everything_may_be_done_twice(driver, tenant):
    site = driver.provision(tenant)
    first = driver.call("secret", tenant)
    assert driver.provision(tenant).get().status == 200
    assert driver.call("secret", tenant)["password"] == first["password"]
    assert all(driver.call("check", tenant, resource=r)["exists"] for r in RESOURCES)
    with pytest.raises(Refused, match="another instance") as refused:
        driver.call("create", tenant, resource="storage", instance="inst-other")
    assert refused.value.status == 409
    driver.deprovision(tenant)
    driver.deprovision(tenant)
    assert not any(driver.call("check", tenant, resource=r)["exists"] for r in RESOURCES)
    assert not [t for t in driver.call("list")["things"] if t.startswith(tenant + " ")]
    left = [p for p in driver.folder.rglob("*") if tenant in p.name or tenant.replace("-", "_") in p.name]
    assert left == [], "nothing of it is left"
    assert not site.root.exists()


def test_what_is_missing_or_wrong_is_said(driver, tenant):
    for do, kw, status, why in (
        ("create", {"tenant": "No", "resource": "storage", "instance": "i"}, 400, "no id of a tenant"),
        ("create", {"tenant": "../../etc", "resource": "storage", "instance": "i"}, 400, "no id of a tenant"),
        ("create", {"tenant": tenant, "resource": "storage", "instance": ""}, 400, "instance's id"),
        ("create", {"tenant": tenant, "resource": "storage", "instance": "i", "version": "4.2"}, 400, "this machine has 6"),
        ("create", {"tenant": tenant, "resource": "workers", "instance": "i", "desired": 11}, 400, "too many"),
        ("create", {"tenant": "tenant-bare", "resource": "secret", "instance": "i"}, 404, "has no database"),
        ("scale", {"tenant": tenant, "desired": 3}, 404, "nothing of tenant"),
        ("route", {"tenant": tenant, "to": OPEN}, 404, "nothing of tenant"),
        ("secret", {"tenant": tenant}, 404, "nothing of tenant"),
        ("archive", {"tenant": "tenant-shared", "name": "../x"}, 400, "an archive's name must have"),
    ):
        with pytest.raises(Refused, match=why) as refused:
            driver.call(do, **kw)
        assert refused.value.status == status, (do, kw)
    assert driver.call("tasks", tenant)["running"] == 0 and driver.call("logs", tenant)["lines"] == []
    assert "tenant-bare" not in str(driver.call("list")["things"]), "what could not be made is not there"


def test_what_was_begun_for_an_instance_that_failed_makes_room(driver, tenant):
    """A record without the thing, as a crash in the middle leaves it."""
    driver.call("create", tenant, resource="storage", instance="inst-first")
    driver.call("create", tenant, resource="database", instance="inst-first")
    (driver.folder / "www/tenant" / tenant / "wp-content").rename(driver.folder / "tmp/gone")
    assert not driver.call("check", tenant, resource="storage")["exists"]
    driver.call("create", tenant, resource="storage", instance="inst-second")
    with pytest.raises(Refused, match="another instance, inst-first"):
        driver.call("create", tenant, resource="database", instance="inst-second")
    driver.deprovision(tenant)


def test_a_name_of_markup_is_shown_as_it_is(driver, tenant):
    spec = {"instance": "i", "organization": "O'Neil \\ <b>\"Sons\"</b> $1", "email": "o@neil.example", "desired": 1}
    for resource in RESOURCES:
        driver.call("create", tenant, resource=resource, **spec)
    driver.call("configure", tenant, **spec)
    driver.call("route", tenant, to=OPEN)
    driver.wait_running(tenant, 1)
    page = Browser().open("http://%s/tenant/%s/" % (driver.router, tenant))
    assert page.status == 200 and "<b>" not in page.text.split("<title>")[1].split("</title>")[0]
    driver.deprovision(tenant)


def test_the_log_has_requests_without_their_queries(driver, site):
    site.get("/?secret=1234567")
    lines = driver.call("logs", "tenant-shared", max=1000)["lines"]
    assert any("GET /tenant/tenant-shared/index.php 200" in line for line in lines), lines[-5:]
    assert not any("1234567" in line or "leasehold-ping" in line for line in lines)


def test_no_secret_is_in_a_file_that_others_may_read(driver, site):
    password = driver.call("secret", "tenant-shared")["password"].encode()
    for path in driver.folder.rglob("*"):
        if path.is_file() and not path.is_symlink() and "mariadb" not in path.parts:
            assert password not in path.read_bytes(), path
    assert (driver.folder / "master.key").stat().st_mode & 0o777 == 0o600
    assert (site.root / "wp-config.php").stat().st_mode & 0o777 == 0o640
