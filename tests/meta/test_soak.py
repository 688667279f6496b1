# SPDX-License-Identifier: Apache-2.0
"""The long run: who comes next, and what its report says."""

import importlib.machinery
import importlib.util
import re
import tarfile
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def soak():
    loader = importlib.machinery.SourceFileLoader("soak", str(ROOT / "scripts/soak"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("soak", loader))
    loader.exec_module(module)
    return module


def part(soak, name, done, goal, spent=0.0, rounds=1):
    p = soak.Part(name, "work of " + name, None, None, ("kills", goal))
    p.did["kills"], p.spent, p.rounds = done, spent, rounds
    return p


def test_the_part_that_is_furthest_from_its_goal_comes_next(soak):
    parts = [part(soak, "a", 50, 100), part(soak, "b", 9, 1000), part(soak, "c", 1, 10)]
    assert soak.next_part(parts, set()).name == "b"
    assert soak.next_part(parts, {parts[1]}).name == "c"
    assert soak.next_part(parts, set(parts)).name == "b"  # no other is left: two rounds of it at once


def test_a_part_that_has_reached_its_goal_yields_its_time(soak):
    parts = [part(soak, "quick", 10, 10), part(soak, "slow", 99, 100, spent=1e6)]
    assert soak.next_part(parts, set()).name == "slow"
    assert soak.next_part(parts, {parts[1]}).name == "slow"  # a second round of it
    parts[1].did["kills"] = 100
    assert soak.next_part(parts, set()).name == "quick"


def test_a_part_that_comes_no_nearer_to_its_goal_does_not_hold_up_the_others(soak):
    parts = [part(soak, "broken", 0, 10), part(soak, "good", 9, 10)]
    parts[0].vain = soak.VAIN_MAX
    assert soak.next_part(parts, set()).name == "good"


def test_the_report_says_which_goal_was_missed(soak, tmp_path, monkeypatch):
    monkeypatch.setattr(soak, "REPORT", tmp_path / "endurance.md")
    monkeypatch.setattr(soak, "COMMIT", "abc")
    parts = [part(soak, "a", 1000, 1000), part(soak, "b", 250, 1000)]
    soak.write_report(parts, time.monotonic(), tmp_path / "report.md")
    report = (tmp_path / "report.md").read_text()
    assert "| work of a | 1,000 kills | %s, `abc` | 1 | 1,000 kills | 0 |" % soak.today() in report
    assert "| work of b | 1,000 kills: **missed**, 25 %% | %s, `abc` | 1 | 250 kills | 0 |" % soak.today() in report


def test_a_part_that_did_not_run_keeps_its_figures(soak, tmp_path, monkeypatch):
    monkeypatch.setattr(soak, "REPORT", tmp_path / "endurance.md")
    first, second = part(soak, "a", 1000, 1000), part(soak, "b", 1000, 1000)
    first.did["fault: node paused"] = 21
    soak.write_report([first, second], time.monotonic(), soak.REPORT)
    second.did["kills"] = 2000
    soak.write_report([second, part(soak, "a", 0, 1000, rounds=0)], time.monotonic(), soak.REPORT)
    report = soak.REPORT.read_text()
    assert re.findall(r"^\| work of (\w) .*\| 1 \| ([\d,]+) kills", report, re.M) == [("a", "1,000"), ("b", "2,000")]
    assert report.count("## Faults injected: work of a") == report.count("| node paused | 21 |") == report.count(soak.RUNS) == 1


def test_the_parsers_are_timed_by_the_processor(soak):
    parsers = next(p for p in soak.PARTS if p.name == "parsers")
    assert parsers.read("fuzz: time: Done 12 runs in 60 second(s), 48 edges\n\n31 s of processor time\n") == {"runs": 12, "seconds": 31}


def test_every_parser_and_every_file_of_the_api_has_its_turn(soak):
    by_name = {p.name: p for p in soak.PARTS}
    names = [file.stem for file in (ROOT / "tests/api").glob("test_*.py")]
    commands = [" ".join(by_name["threads"].command(1000 + 3 * turn, turn)[0]) for turn in range(len(names))]
    assert all(any("/%s.py" % name in command for command in commands) for name in names)
    parsers = {by_name["parsers"].command(7, turn)[0][-1] for turn in range(100)}
    assert parsers == {file.stem.partition("_")[2] for file in (ROOT / "tests/fuzz").glob("fuzz_*.c")}


def test_every_parser_starts_from_what_was_found(soak):
    with tarfile.open(ROOT / "tests/fuzz/found.tar.gz") as found:
        assert {Path(one.name).parts[0] for one in found if one.isfile()} == set(soak.PARSERS)


def test_what_the_simulator_printed_is_read(soak):
    text = """BROKEN: a promise
7 seeds, 730 simulated days, 1.0 s of CPU: 730 days a second
100 of these days at the ends, without faults
12 steps, 3 commits
faults injected:
          21  node paused
promises broken: 1
"""
    did = soak.read_simulator(text)
    assert (did["seeds"], did["days"], did["calm"], did["broken"], did["fault: node paused"]) == (7, 730, 100, 1, 21)


def test_only_a_round_that_passed_counts(soak):
    read = soak.passed(kills=r"(\d+) nodes killed")
    assert read("5 nodes killed, 7 calls in 20 s\n.\n1 passed in 3.1s\n") == {"kills": 5}
    assert read("5 nodes killed, 7 calls in 20 s\n.F\n1 failed, 1 passed in 3.1s\n") == {}


def test_a_goal_for_all_runs_counts_those_before(soak, tmp_path, monkeypatch):
    monkeypatch.setattr(soak, "REPORT", tmp_path / "endurance.md")
    fuzz = soak.Part("api", "fuzzed", None, None, ("seconds", 2 * soak.HOUR), in_all=True)
    for share in (0.25, 0.5, 0.75):
        fuzz.did.clear()
        soak.count_earlier_runs([fuzz])
        fuzz.rounds, fuzz.did["seconds"] = 1, 1800
        assert fuzz.share() == share
        soak.write_report([fuzz], time.monotonic(), soak.REPORT)
        assert "| fuzzed | 2.0 hours in all runs: **missed**, %d %% | " % (100 * share) in soak.REPORT.read_text()
    assert re.search(r"^\| all \|.*\| 90 \| 0 \| 0 \| 0 \|$", soak.REPORT.read_text(), re.M)


def test_a_goal_for_one_run_does_not(soak, tmp_path, monkeypatch):
    monkeypatch.setattr(soak, "REPORT", tmp_path / "endurance.md")
    kills = part(soak, "a", 250, 1000)
    soak.write_report([kills], time.monotonic(), soak.REPORT)
    soak.count_earlier_runs([kills])
    assert kills.share() == 0.25
