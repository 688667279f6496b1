# SPDX-License-Identifier: Apache-2.0
"""Both data sets are archived, and come back exactly."""

import gzip
import json
import os
import tarfile

import pytest

from lib.local_driver import Browser, Refused


def test_a_site_comes_back_from_its_archive_after_it_was_removed(driver, tenant):
    site = driver.provision(tenant)
    site.sign_in()
    site.post("Before the archive")
    picture = site.upload()["source_url"]
    made = driver.call("archive", tenant, name="first")["outputs"]
    assert made["id"] == "first" and made["bytes"] > 10000 and made["parts"] == ["database", "files"]
    assert driver.call("archive", tenant, name="first")["outputs"] == made, "once is enough"
    site.post("After the archive")

    driver.deprovision(tenant)
    assert Browser().open(picture).status == 404
    again = driver.provision(tenant, instance="inst-second")
    assert again.get("/before-the-archive/").status == 404
    driver.call("restore", tenant, name="first")
    assert again.sign_in().url.endswith("/wp-admin/"), "with the password of now, not of the archive"
    assert "Text of Before the archive" in again.get("/before-the-archive/").text
    assert again.get("/after-the-archive/").status == 404
    assert Browser().open(picture).status == 200
    content = again.root / "wp-content"
    assert {p.lstat().st_uid for p in content.rglob("*")} == {content.stat().st_uid}
    assert driver.call("check", tenant, resource="storage")["exists"]

    driver.call("drop_archive", tenant, name="first")
    with pytest.raises(Refused, match="has no archive"):
        driver.call("restore", tenant, name="first")
    driver.deprovision(tenant)
    assert not (driver.folder / "archives" / tenant).exists()


def test_an_archive_is_two_files_that_anybody_can_read_with_usual_tools(driver, site):
    driver.call("archive", "tenant-shared", name="usual.1")
    folder = driver.folder / "archives/tenant-shared/usual.1"
    assert "CREATE TABLE `wp_posts`" in gzip.open(folder / "database.sql.gz", "rt").read()
    with tarfile.open(folder / "files.tar.gz") as tar:
        assert "wp-content/themes/twentytwentythree/style.css" in tar.getnames()
    assert folder.parent.stat().st_mode & 0o077 == 0
    people = json.loads((folder / "people.json").read_text())["people"]
    assert "owner@tenant-shared.example" in [p["email"] for p in people] and set(people[0]) == {"email", "name", "added"}, "and no password"
    driver.call("drop_archive", "tenant-shared", name="usual.1")


def test_links_that_a_tenant_made_lead_nowhere(driver, tenant):
    site = driver.provision(tenant, desired=1)
    victim = driver.folder / "victim"
    victim.mkdir()
    (victim / "kept").write_text("kept")
    uid = (site.root / "wp-content").stat().st_uid
    link = site.root / "wp-content/uploads/out"
    os.symlink(victim, link)
    os.lchown(link, uid, uid)
    driver.call("archive", tenant, name="linked")
    with tarfile.open(driver.folder / "archives" / tenant / "linked/files.tar.gz") as tar:
        assert not [n for n in tar.getnames() if n.endswith("kept")]
    driver.call("restore", tenant, name="linked")
    driver.deprovision(tenant)
    assert (victim / "kept").read_text() == "kept"
    driver.call("drop_archive", tenant, name="linked")


def test_a_dump_that_runs_a_program_runs_it_as_the_tenant(driver, tenant):
    """The client program of the database obeys what is in its input."""
    site = driver.provision(tenant, desired=1)
    driver.call("archive", tenant, name="crafted")
    told = driver.folder / "told"
    told.mkdir()
    told.chmod(0o777)
    dump = driver.folder / "archives" / tenant / "crafted/database.sql.gz"
    text = gzip.decompress(dump.read_bytes())
    dump.write_bytes(gzip.compress(b"\\! id > %s/who\n" % str(told).encode() + text))  # first: further down it is forbidden
    driver.call("restore", tenant, name="crafted")
    owner = (site.root / "wp-content").stat()
    who = (told / "who").read_text()
    assert "uid=%d" % owner.st_uid in who and "gid=%d" % owner.st_gid in who, who
    assert owner.st_uid != 0 or os.getuid() != 0
    assert site.sign_in().url.endswith("/wp-admin/"), "and the site is back"
    driver.deprovision(tenant)
    driver.call("drop_archive", tenant, name="crafted")


def test_an_archive_that_was_cut_short_is_no_archive(driver, tenant):
    """Killed in the middle it has no name; the next attempt makes it whole."""
    driver.provision(tenant, desired=1)
    draft = driver.folder / "archives" / tenant
    draft.mkdir(mode=0o700)
    (draft / "half..draft").mkdir()
    (draft / "half..draft/database.sql.gz").write_bytes(b"half")
    with pytest.raises(Refused, match="has no archive"):
        driver.call("restore", tenant, name="half")
    driver.call("archive", tenant, name="half")
    driver.call("restore", tenant, name="half")
    driver.deprovision(tenant)
    driver.call("drop_archive", tenant, name="half")


def test_what_an_archive_that_was_cut_short_has_left_is_dropped_too(driver, tenant):
    """Of one that nobody tried again."""
    driver.provision(tenant, desired=1)
    draft = driver.folder / "archives" / tenant / "half..draft"
    draft.mkdir(parents=True)
    (draft / "database.sql.gz").write_bytes(b"half")
    driver.call("drop_archive", tenant, name="half")
    assert not (driver.folder / "archives" / tenant).exists()
    driver.deprovision(tenant)
