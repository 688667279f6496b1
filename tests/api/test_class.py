# SPDX-License-Identifier: Apache-2.0
"""A class: sandboxes for a roster, a broken one replaced, all given back, and whether there are enough."""

import csv
import io
import json
import time

import pytest

from lib import server as program
from lib.server import ADMIN_TOKEN

OK, EMPTY, NOT_FOUND, FOUND = 0, 3, 4, 7


@pytest.fixture
def pool(make):
    return make.server(csp=make.csp(32))


@pytest.fixture
def admin(pool):
    return pool.admin()


@pytest.fixture
def teacher(pool):
    """At a terminal, with an operator's token."""
    env = {"LEASEHOLD_ADDRESS": pool.url, "BROKER_ADMIN_TOKEN": ADMIN_TOKEN, "NO_COLOR": "1", "TZ": "UTC"}

    def run(*args, code=OK):
        done = program.run(*args, env=env)
        assert done.returncode == code, done
        return done

    return run


def claim_for(admin, track, **headers):
    return admin.post("/v1/admin/allocate", headers={"X-Track-ID": track, **headers})


def test_an_operator_claims_for_a_track_which_holds_it_then(pool, admin, owner):
    first = claim_for(admin, owner, **{"X-Instruqt-Track-ID": "intro"})
    again = claim_for(admin, owner)
    assert (first.status, again.status) == (201, 200)
    assert first.json["sandbox_id"] == again.json["sandbox_id"] == pool.track(owner).claim()["sandbox_id"]
    record = admin.record(first.json["sandbox_id"])
    assert (record["allocated_to_track"], record["track_name"]) == (owner, "intro")
    told = admin.get("/v1/ops/events?type=SandboxAllocated").json["events"][0]
    assert told["actor"] == "admin"


@pytest.mark.parametrize("headers", [{}, {"X-Track-ID": "two words"}, {"X-Track-ID": "x" * 129}])
def test_a_claim_for_nobody_is_refused(admin, headers):
    assert admin.post("/v1/admin/allocate", headers=headers).status == 400


def test_only_an_operator_claims_for_others(pool, owner):
    assert pool.track(owner).post("/v1/admin/allocate").status == 403


def test_a_broken_one_is_replaced_in_one_step(pool, admin, owner):
    broken = pool.track(owner).claim()["sandbox_id"]
    reply = admin.on(broken, "replace", body={"reason": "login fails"})
    assert reply.status == 201 and reply.json["allocated_to_track"] == owner and reply.json["sandbox_id"] != broken
    assert pool.track(owner).claim()["sandbox_id"] == reply.json["sandbox_id"]
    old = admin.record(broken)
    assert (old["status"], old["quarantine_reason"]) == ("stale", "login fails")
    assert admin.on(broken, "replace").status == 409, "nobody holds it any more"
    assert admin.on("no-such", "replace").status == 404


def test_without_another_one_the_broken_one_stays(make, owner):
    pool = make.server(csp=make.csp(1))
    held = pool.track(owner).claim()["sandbox_id"]
    reply = pool.admin().on(held, "replace")
    assert (reply.status, reply.code) == (409, "NO_SANDBOXES_AVAILABLE")
    assert pool.admin().record(held)["status"] == "allocated"


def test_the_forecast_counts_what_is_free_and_what_comes(make, new_owner):
    csp = make.csp(32)
    for one in list(csp.accounts.values())[:3]:
        one["created_at"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() - 3600))
    pool = make.server(csp=csp)
    admin = pool.admin()
    for _ in range(4):
        pool.track(new_owner()).claim()
    tomorrow = int(time.time()) + 86400 + 60
    now = admin.get("/v1/admin/forecast?need=28").json
    assert (now["available"], now["expected_refill"], now["enough"]) == (28, 0, "yes")
    assert admin.get("/v1/admin/forecast?need=29").json["enough"] == "no"
    later = admin.get("/v1/admin/forecast?need=30&at=%d" % tomorrow).json
    assert (later["ending"], later["added_last_day"], later["expected_refill"]) == (4, 3, 3)
    assert (later["expected"], later["enough"]) == (31, "likely")
    assert admin.get("/v1/admin/forecast?need=33&at=%d" % tomorrow).json["enough"] == "no"
    for query in ("need=x", "need=-1", "at=tomorrow", "at="):
        assert admin.get("/v1/admin/forecast?" + query).status == 400, query


# At a terminal.


@pytest.fixture
def roster(tmp_path):
    path = tmp_path / "students.csv"
    lines = ["track,name"] + ['s%02d@school.example,"Student, %d"' % (i, i) for i in range(30)]
    path.write_text("\r\n".join(lines) + "\r\n")
    return path


def test_a_class_of_thirty_is_one_command_and_its_list_is_printed(teacher, admin, roster):
    done = teacher("sandbox", "claim", "--file", roster, "--lab", "intro")
    lines = done.stdout.splitlines()
    assert len(lines) == 31 and lines[0].split() == ["TRACK", "STUDENT", "SANDBOX", "NAME", "EXTERNAL", "ID", "ENDS"]
    assert "s07@school.example" in lines[8] and "Student, 7" in lines[8]
    assert "30 have a sandbox" in done.stderr
    assert admin.stats()["allocated"] == 30
    rows = list(csv.DictReader(io.StringIO(teacher("sandbox", "claim", "--file", roster, "--csv").stdout)))
    assert len({row["sandbox_id"] for row in rows}) == 30 and admin.stats()["allocated"] == 30, "again is the same list"
    assert rows[7]["student"] == "Student, 7" and rows[7]["expires_at"].endswith("Z")
    as_json = json.loads(teacher("sandbox", "claim", "--file", roster, "--json").stdout)["class"]
    assert [one["sandbox_id"] for one in as_json] == [row["sandbox_id"] for row in rows]


def test_the_list_is_safe_for_spreadsheets(teacher, tmp_path):
    """Students choose their names; a cell that begins like a formula is computed."""
    names = {"=1+1": "'=1+1", "+1": "'+1", "-1": "'-1", "@x": "'@x", "|x": "'|x", "%x": "'%x", "=a,b": "'=a,b", 'say "x"': 'say "x"', "a=b": "a=b"}
    path = tmp_path / "students.csv"
    with path.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(("s%d" % i, name) for i, name in enumerate([*names, ""]))
    done = teacher("sandbox", "claim", "--file", path, "--csv")
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    assert [row["student"] for row in rows] == [*names.values(), ""]
    assert [row["track"] for row in rows] == ["s%d" % i for i in range(10)]


@pytest.mark.parametrize("mark", [";", "\t"])
def test_a_list_as_spreadsheets_of_other_countries_save_it(teacher, admin, tmp_path, mark):
    path = tmp_path / "students.csv"
    path.write_text(mark.join(("track", "name")) + "\n" + mark.join(("ada@school.example", '"Lovelace, Ada"')) + "\n" + mark.join(('"a;b"', "Alan")))
    rows = list(csv.DictReader(io.StringIO(teacher("sandbox", "claim", "--file", path, "--csv").stdout)))
    assert [(row["track"], row["student"]) for row in rows] == [("ada@school.example", "Lovelace, Ada"), ("a;b", "Alan")]
    assert admin.stats()["allocated"] == 2


def test_what_is_wrong_with_a_roster_is_named(teacher, tmp_path):
    path = tmp_path / "students.csv"
    path.write_text("track,name\nada@school.example,Ada\nŁuka\x1bsz,Łukasz\n")
    said = teacher("sandbox", "claim", "--file", path, code=2).stderr
    assert "'Łuka sz' is not a track" in said and "\x1b" not in said
    path.write_text("track\tname\n\tAda\n")
    assert "'' is not a track" in teacher("sandbox", "claim", "--file", path, code=2).stderr  # nor is the name one
    path.write_text("ada@school.example\n")
    assert "--lab must be" in teacher("sandbox", "claim", "--file", path, "--lab", "Einführung", code=2).stderr
    assert "--lab must be" in teacher("sandbox", "claim", "--track", "ada", "--lab", "two words", code=2).stderr


def test_a_student_s_sandbox_is_found_replaced_and_the_class_given_back(teacher, admin, roster):
    teacher("sandbox", "claim", "--file", roster)
    held = next(s for s in admin.list("?limit=100").json["sandboxes"] if s["allocated_to_track"] == "s03@school.example")
    for what in ("s03@school.example", held["name"], held["external_id"], held["sandbox_id"]):
        assert held["sandbox_id"] in teacher("sandbox", "show", what).stdout, what
        assert held["sandbox_id"] in teacher("explain", "sandbox", what).stdout, what
    assert held["sandbox_id"] in teacher("sandbox", "list", "--find", "s03@").stdout
    assert "s04@" not in teacher("sandbox", "list", "--find", "s03@").stdout
    told = teacher("sandbox", "replace", "s03@school.example", "--reason", "no network")
    assert held["sandbox_id"] not in told.stdout and "s03@school.example" in told.stdout
    assert admin.record(held["sandbox_id"])["quarantine_reason"] == "no network"
    assert teacher("sandbox", "give-back", "--file", roster).stdout == "30 given back, 0 not\n"
    assert admin.stats()["allocated"] == 0 and admin.stats()["pending_deletion"] == 30
    again = teacher("sandbox", "give-back", "--file", roster)
    assert again.stdout == "0 given back, 0 not\n" and "30 hold none" in again.stderr
    teacher("sandbox", "show", "nobody@school.example", code=NOT_FOUND)


def test_who_gets_none_is_named_and_the_others_have_theirs(teacher, tmp_path):
    path = tmp_path / "big.csv"
    path.write_text("".join("s%d\n" % i for i in range(34)))
    done = teacher("sandbox", "claim", "--file", path, code=EMPTY)
    assert "32 have a sandbox, 2 have none" in done.stderr and done.stdout.count("none free") == 2


def test_a_roster_that_makes_no_sense_claims_nothing(teacher, admin, tmp_path):
    path = tmp_path / "bad.csv"
    for text in ("ok\ntwo words,x\n", "same\nsame\n", "", "track,name\n", '"open\n'):
        path.write_text(text)
        teacher("sandbox", "claim", "--file", path, code=2)
    assert admin.stats()["allocated"] == 0


def test_enough_for_thirty_tomorrow(teacher):
    assert "yes" in teacher("pool", "forecast", "--need", "30", "--at", "2099-01-01T09:00:00Z").stdout
    done = teacher("pool", "forecast", "--need", "33", code=FOUND)
    assert "no" in done.stdout and "28" not in done.stdout
