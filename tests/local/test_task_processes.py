# SPDX-License-Identifier: Apache-2.0
"""Tasks come, go, die and are brought back; the process that looks after them may die, too."""

import contextlib
import json
import os
import shutil
import signal
import threading
import time
from pathlib import Path

import pytest

from lib.local_driver import CLOSED, OPEN, PARKED, SUSPENDED, Browser, Driver, Drivers, Load, Refused, Site
from lib.wait import until


@pytest.fixture
def busy(driver):
    """A site for those who hurt it, made whole for the next."""
    site = Site(driver, "tenant-busy")
    if not driver.call("check", "tenant-busy", resource="storage")["exists"]:
        driver.provision("tenant-busy")
    driver.call("scale", "tenant-busy", desired=2)
    driver.call("route", "tenant-busy", to=OPEN)
    driver.wait_running("tenant-busy", 2)
    return site


@pytest.fixture(scope="module")
def frail():
    """A driver for those who kill it, one after the other."""
    drivers = Drivers()
    yield drivers.new()
    drivers.end()


def pids(driver, tenant):
    return {int(t["id"].rsplit("-", 1)[1]) for t in driver.call("tasks", tenant)["tasks"]}


def nginx(driver):
    return {p for p, c in driver.processes().items() if c.startswith("nginx: worker")}


def test_scaling_under_load_fails_no_request_and_needs_no_reload(driver, busy):
    before = nginx(driver)
    with Load(busy.url + "/") as load:
        for count in (5, 2, 10, 3, 2):
            driver.call("scale", "tenant-busy", desired=count)
            driver.wait_running("tenant-busy", count)
            load.more(4)
    assert load.bad() == [] and len(load.answers) > 20
    assert nginx(driver) == before


def connections(driver, tenant):
    """To the tenant's tasks: those that are served, and those that wait in a socket's line."""
    key = driver.call("tasks", tenant)["tasks"][0]["id"].split("-")[0]
    lines = [line.split() for line in Path("/proc/net/unix").read_text().splitlines()]
    return [line for line in lines if line[-1].startswith("%s/s/%s." % (driver.folder, key)) and line[3] != "00010000"]


def test_tasks_that_are_told_to_go_answer_all_who_came_before(driver, busy):
    """Four are being answered, six wait in line; nobody is turned away."""
    slow, go = busy.root / "wp-content/slow.php", busy.root / "wp-content/go"
    slow.write_text("<?php while (!file_exists(__DIR__ . '/go')) { usleep(10000); clearstatcache(); } echo 'whole';")
    slow.chmod(0o644)
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(busy.get("/wp-content/slow.php"))) for _ in range(10)]
    for t in threads:
        t.start()
    until(lambda: len(connections(driver, "tenant-busy")) >= 10, "all ten are there")
    driver.call("scale", "tenant-busy", desired=0)
    go.touch(0o644)  # not before they were told
    for t in threads:
        t.join()
    slow.unlink()
    go.unlink()
    assert [(a.status, a.text) for a in answers] == [(200, "whole")] * 10
    until(lambda: not pids(driver, "tenant-busy"), "all have gone")


def test_without_tasks_the_site_says_so_and_comes_back_quickly(driver, busy):
    driver.call("scale", "tenant-busy", desired=0)
    until(lambda: not pids(driver, "tenant-busy"), "all have gone")
    page = busy.get()
    assert page.status == 503 and "Just a moment" in page.text and page.headers["Retry-After"]
    driver.call("scale", "tenant-busy", desired=2)
    driver.wait_running("tenant-busy", 2)
    assert busy.get().status == 200, "nginx does not hold past failures against them"


def test_a_killed_master_is_replaced_and_leaves_nobody_behind(driver, busy):
    victim = min(pids(driver, "tenant-busy"))
    before = {p for p, c in driver.processes().items() if os.getpgid(p) == victim}
    assert len(before) == 3
    with Load(busy.url + "/", threads=2) as load:
        os.kill(victim, signal.SIGKILL)
        until(lambda: victim not in pids(driver, "tenant-busy"), "its death is seen")
        driver.wait_running("tenant-busy", 2)
        load.more(4)
    assert not before & set(driver.processes())
    assert busy.get().status == 200


def test_a_task_that_is_stopped_in_its_tracks_is_replaced(driver, busy):
    victim = min(pids(driver, "tenant-busy"))
    os.killpg(victim, signal.SIGSTOP)
    until(lambda: victim not in pids(driver, "tenant-busy"), "it was given up", 120, 0.1)
    driver.wait_running("tenant-busy", 2)


def test_the_database_comes_back_by_itself(driver, busy):
    (database,) = [p for p, c in driver.processes().items() if c.startswith("/usr/sbin/mariadbd")]
    os.kill(database, signal.SIGKILL)
    until(lambda: busy.get().status == 200, "the site is back", 120)
    assert driver.call("check", "tenant-busy", resource="database")["exists"]


def test_while_the_database_hangs_health_is_still_known(driver, busy):
    (database,) = [p for p, c in driver.processes().items() if c.startswith("/usr/sbin/mariadbd")]
    os.kill(database, signal.SIGSTOP)
    try:
        assert driver.call("tasks", "tenant-busy")["running"] == 2, "though the database goes on only after this"
    finally:
        os.kill(database, signal.SIGCONT)
    assert busy.get().status == 200


def test_the_router_comes_back_by_itself(driver, busy):
    (router,), workers = driver.masters("nginx: master"), nginx(driver)
    os.kill(router, signal.SIGKILL)

    def answers():
        try:
            return busy.get().status == 200
        except OSError:
            return False

    until(lambda: not workers & set(driver.processes()), "those of the dead one are gone")
    until(answers, "the site is back", 120)


def test_the_tests_leave_no_workers_of_a_router_that_replaced_those_killed_first(new_driver, monkeypatch):
    driver, kill = new_driver(), os.kill
    driver.call("create", "tenant-route", resource="route", instance="i")
    driver.kill()
    (router,), before = driver.masters("nginx: master"), nginx(driver)

    def kill_workers_first(pid, number):
        """As it comes when numbers have wrapped around, and the router's is the highest."""
        for worker in before if pid == router else ():
            with contextlib.suppress(ProcessLookupError):  # numbers have wrapped around indeed: it is killed already
                kill(worker, number)
        until(lambda: pid != router or len(nginx(driver) - before) >= 2, "it has started new ones")
        kill(pid, number)

    monkeypatch.setattr(os, "kill", kill_workers_first)
    driver.end_all()
    assert driver.processes() == {}


def test_a_suspended_site_answers_503_to_pages_and_files(driver, busy, neighbour):
    picture = busy.url + "/wp-includes/images/w-logo-blue.png"
    assert Browser().open(picture).status == 200
    driver.call("route", "tenant-busy", to=SUSPENDED)
    driver.call("scale", "tenant-busy", desired=0)
    until(lambda: not pids(driver, "tenant-busy"), "all have gone")
    for url in (busy.url + "/", picture, busy.url, busy.url + "/wp-login.php"):
        page = Browser().open(url)
        assert page.status == 503 and "suspended" in page.text, url
    assert neighbour.get().status == 200
    driver.call("scale", "tenant-busy", desired=2)
    driver.wait_running("tenant-busy", 2)
    driver.call("route", "tenant-busy", to=OPEN)
    assert busy.get().status == 200


def test_a_parked_site_keeps_its_data_without_code_and_tasks(driver, tenant):
    site = driver.provision(tenant)
    site.sign_in()
    site.post("Kept while parked")
    driver.call("route", tenant, to=PARKED)
    driver.call("delete", tenant, resource="workers")
    page = site.get()
    assert page.status == 503 and "parked" in page.text
    assert not (site.root / "wp-config.php").exists() and (site.root / "wp-content").is_dir()
    driver.call("create", tenant, resource="workers", instance="inst-" + tenant, desired=2)
    driver.wait_running(tenant, 2)
    driver.call("route", tenant, to=OPEN)
    assert "Text of Kept while parked" in site.get("/kept-while-parked/").text
    driver.deprovision(tenant)


def test_reloads_for_one_tenant_cut_nothing_short_of_another(driver, busy, tenant):
    driver.call("create", tenant, resource="route", instance="i")
    with Load(busy.url + "/") as load:
        for to in (SUSPENDED, CLOSED, PARKED, SUSPENDED, CLOSED, PARKED, CLOSED):
            driver.call("route", tenant, to=to)
            load.more(3)
    assert load.bad() == []
    driver.call("delete", tenant, resource="route")


def test_a_new_database_password_reaches_all_tasks_without_a_failed_request(driver, busy):
    config = (busy.root / "wp-config.php").read_text()
    before = pids(driver, "tenant-busy")
    with Load(busy.url + "/") as load:
        driver.call("rotate", "tenant-busy")
        load.more(4)
    assert load.bad() == []
    assert (busy.root / "wp-config.php").read_text() != config
    assert not before & pids(driver, "tenant-busy"), "both tasks are new"
    assert driver.call("check", "tenant-busy", resource="secret")["exists"]
    old = config.split("'DB_PASSWORD', '")[1].split("'")[0]
    files = b"".join(p.read_bytes() for p in (driver.folder / "mariadb/data/mysql").glob("global_priv*"))
    assert old.encode() not in files


def test_a_larger_tier_replaces_the_tasks_one_by_one(driver, busy):
    before = pids(driver, "tenant-busy")
    spec = {"instance": "inst-tenant-busy", "organization": "x", "email": "x@y.example"}
    with Load(busy.url + "/", threads=2) as load:
        driver.call("configure", "tenant-busy", cpu=1024, memory=2048, **spec)
    assert load.bad() == []
    assert not before & pids(driver, "tenant-busy")
    groups = [os.getpgid(p) for p in driver.processes()]
    assert all(groups.count(p) == 5 for p in pids(driver, "tenant-busy")), "one master, four workers each"
    driver.call("configure", "tenant-busy", cpu=512, memory=1024, **spec)


def test_after_a_crash_everything_is_taken_over_and_nothing_doubled(frail):
    driver = frail
    site = driver.provision("tenant-crash")
    before, servers = driver.masters(), driver.masters("/usr/sbin/mariadbd") | driver.masters("nginx: master")
    assert len(before) == 3 and len(servers) == 2  # two tasks and the identity provider
    driver.kill()
    assert site.get().status == 200, "sites stay up without the server"
    dead = min(p for p, c in before.items() if "pools" in c)
    os.kill(dead, signal.SIGKILL)  # while nobody looks
    for lock in (driver.folder / "run").iterdir():
        os.utime(lock, (time.time() - 3600,) * 2)  # as if they had run for an hour: no reason to end them
    driver.start()
    driver.wait_running("tenant-crash", 2)
    after = driver.masters()
    assert driver.masters("/usr/sbin/mariadbd") | driver.masters("nginx: master") == servers
    assert len(after) == 3 and len(set(before) & set(after)) == 2, "who lived was taken over, who died replaced"
    assert site.get().status == 200
    # A tenant that is no more: what runs for it ends within seconds.
    driver.kill()
    (driver.folder / "tenants/tenant-crash.json").unlink()
    driver.start()
    until(lambda: not [c for c in driver.processes().values() if "pools" in c], "orphans have ended")
    shutil.rmtree(site.root)  # of which nobody knows any more


def test_two_processes_do_not_share_a_folder(driver):
    with pytest.raises(AssertionError, match="another process has the folder"):
        Driver(driver.folder).start()


def test_an_orderly_stop_ends_all_and_the_next_start_brings_it_back(frail):
    driver = frail
    site = driver.provision("tenant-stop")
    driver.stop()
    assert driver.processes() == {}
    driver.start()
    driver.wait_running("tenant-stop", 2)
    assert site.get().status == 200
    driver.deprovision("tenant-stop")


def test_killed_again_and_again_while_it_provisions_it_ends_whole(frail):
    driver = frail
    spec = {"instance": "i", "organization": "Org", "email": "a@b.example", "desired": 2}
    driver.call("create", "tenant-again", resource="database", **spec)  # the server's own folder is made once
    for pause in (0.02, 0.05, 0.1, 0.2, 0.4, 0.8):
        done = threading.Thread(target=lambda: attempt(driver, spec))
        done.start()
        time.sleep(pause)  # the moment of the kill is what differs
        driver.kill()
        done.join()
        driver.start()
    site = driver.provision("tenant-again", instance="i")
    assert site.get().status == 200
    assert site.sign_in().url.endswith("/wp-admin/"), "the administrator is there, with all his rights"
    assert len(driver.masters()) == 3
    driver.deprovision("tenant-again")
    assert driver.call("list")["things"] == []


def test_an_installation_that_was_killed_half_way_is_begun_anew_and_a_whole_one_never(frail):
    driver = frail
    site = driver.provision("tenant-half", opens=False)
    spec = {"instance": "inst-tenant-half", "organization": "Org", "email": "a@b.example", "desired": 2}
    record = driver.folder / "tenants/tenant-half.json"
    # What a kill leaves behind when it comes after the settings and before the administrator.
    driver.sql("tenant-half", "TRUNCATE wp_users; DROP TABLE wp_terms; DELETE FROM wp_options WHERE option_name = 'wp_user_roles'")
    driver.kill()
    record.write_text(json.dumps({**json.loads(record.read_text()), "installed": 0}))
    driver.start()
    driver.call("configure", "tenant-half", **spec)
    driver.call("route", "tenant-half", to=OPEN)
    assert site.get().status == 200
    assert site.sign_in().url.endswith("/wp-admin/")
    # Whatever a tenant does to a whole one, it is his: nothing is emptied.
    post = site.post("Kept")
    driver.sql("tenant-half", "DELETE FROM wp_options WHERE option_name LIKE 'leasehold%'")
    driver.kill()
    old = json.loads(record.read_text())
    assert old.pop("installed") == 1
    record.write_text(json.dumps(old))  # as it was written before this was kept
    driver.start()
    driver.call("configure", "tenant-half", **spec)
    assert "Kept" in site.get("/?p=%d" % post["id"]).text
    driver.sql("tenant-half", "DROP TABLE wp_options")  # WordPress gives up, with status 0
    with pytest.raises(Refused, match="WordPress gave up"):
        driver.call("configure", "tenant-half", **spec)
    driver.deprovision("tenant-half")


def attempt(driver, spec):
    try:
        for resource in ("storage", "database", "secret", "route", "workers", "identity"):
            driver.ask("create", "tenant-again", resource=resource, **spec)(timeout=1)
        driver.ask("configure", "tenant-again", **spec)(timeout=1)
    except Exception:  # it was killed under us
        pass


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another")
def test_an_ordinary_user_has_sites_too(new_driver):
    driver = new_driver(start=False)
    driver.user = "nobody"
    os.chown(driver.folder, 65534, 65534)
    driver.start()
    site = driver.provision("tenant-plain")
    assert site.get().status == 200
    assert site.sign_in().url.endswith("/wp-admin/")
    assert {os.stat("/proc/%d" % p).st_uid for p in driver.processes()} == {65534}
    driver.call("archive", "tenant-plain", name="a")
    driver.call("restore", "tenant-plain", name="a")
    assert site.get().status == 200
    driver.deprovision("tenant-plain")
    driver.stop()
    assert driver.processes() == {}


def test_a_log_that_has_grown_makes_room(driver, busy):
    log = next(p for p in (driver.folder / "log").glob("*.0.log") if p.name.split(".")[0] in str(driver.call("tasks", "tenant-busy")))
    with log.open("a") as out:
        out.write("[01-Jan-2020 00:00:00] filler\n" * 150000)
    until(lambda: log.with_name(log.name + ".1").exists(), "it was put aside")
    until(lambda: log.exists() and log.stat().st_size < 100000, "a new one was begun")
    until(lambda: busy.get().status == 200 and "index.php 200" in log.read_text(), "it is written to", 120)
    assert "filler" in driver.call("logs", "tenant-busy", max=1)["lines"][0] or driver.call("logs", "tenant-busy")["lines"]
