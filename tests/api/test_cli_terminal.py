# SPDX-License-Identifier: Apache-2.0
"""The command line as a person at a terminal sees it: colours, pictures that are drawn anew, the overview, the demo, exit codes."""

import json
import os
import re
import shlex
import signal
import subprocess
import termios

import pytest

from lib.server import ROOT, binary, clean_env, run
from lib.terminal import ESCAPE, Terminal
from lib.wait import until

OK, REFUSED, USAGE, EMPTY, NOT_FOUND, NOT_ALLOWED, UNREACHABLE = range(7)
FAST = {"LEASEHOLD_TIME_SCALE": "3600", "LEASEHOLD_SIM_SANDBOXES": "60", "LEASEHOLD_SINK_TRIES": "2", "LEASEHOLD_SINK_BACKOFF_SEC": "0.01"}


@pytest.fixture(scope="module")
def dev(make_for_module):
    """A development server like that of make run: it makes its own tokens, and time is fast."""
    return make_for_module.server(args=["--dev"], bare=True, **FAST)


@pytest.fixture
def env(dev):
    return {"LEASEHOLD_DATA": str(dev.data)}


def longest(text):
    return max(len(line) for line in ESCAPE.sub("", text).splitlines())


# Finding the server.


def test_a_development_server_is_found_by_its_file(dev, env):
    assert (dev.data / "client").stat().st_mode & 0o777 == 0o600
    for command in (["sandbox", "stats"], ["lease", "list"], ["template", "list"]):
        assert run(*command, env=env).returncode == OK
    assert run("sandbox", "claim", "--track", "finder", env=env).returncode == OK


@pytest.mark.parametrize("name, code", [("LEASEHOLD_ADDRESS", NOT_ALLOWED), ("BROKER_API_TOKEN", NOT_ALLOWED)])
def test_the_file_never_mixes_with_other_settings(dev, env, name, code):
    """An address of the file must not get a token from elsewhere, nor the other way round."""
    value = {"LEASEHOLD_ADDRESS": "http://127.0.0.1:1", "BROKER_API_TOKEN": "0123456789abcdef"}[name]
    got = run("sandbox", "stats", env={**env, name: value, "HOME": "/nonexistent"})
    assert got.returncode == code and "no token" in got.stderr
    assert "%s was not used, because" % (dev.data / "client") in got.stderr


def test_who_has_no_token_hears_where_one_may_be(env, tmp_path):
    nowhere = {"HOME": str(tmp_path), "LEASEHOLD_DATA": str(tmp_path)}
    got = run("sandbox", "stats", env=nowhere)
    assert got.returncode == NOT_ALLOWED and "set LEASEHOLD_DATA" in got.stderr
    got = run("sandbox", "stats", "--address", "http://127.0.0.1:1", env={**nowhere, **env})
    assert got.returncode == NOT_ALLOWED and "was not used, because an address" in got.stderr


def test_a_file_that_others_may_read_is_refused(dev, env, tmp_path):
    copy = tmp_path / "client"
    copy.write_text((dev.data / "client").read_text())
    copy.chmod(0o644)
    got = run("sandbox", "stats", env={"LEASEHOLD_DATA": str(tmp_path)})
    assert got.returncode == USAGE and "chmod 600" in got.stderr


def test_a_server_that_has_stopped_is_told_as_such(tmp_path):
    (tmp_path / "client").write_text("LEASEHOLD_ADDRESS=http://127.0.0.1:1\nBROKER_ADMIN_TOKEN=0123456789abcdef\n")
    (tmp_path / "client").chmod(0o600)
    got = run("status", env={"LEASEHOLD_DATA": str(tmp_path)})
    assert got.returncode == UNREACHABLE
    assert str(tmp_path / "client") in got.stderr and "make run" in got.stderr


def test_the_start_says_where_who_and_what_to_try(dev):
    said = dev.says("leasehold lease request --template Playground")
    assert dev.url in said and "leasehold demo" in said and "leasehold lease request --template Playground" in said
    for who in ("admin", "manager", "user"):
        assert re.search(r"^  %s@example.com +password \S+$" % who, said, re.M)


# Colours.


@pytest.mark.parametrize("command", [["status"], ["job", "list"], ["sandbox", "list"], ["sandbox", "stats"]])
def test_colours_are_for_terminals(dev, env, command):
    there = Terminal(*command, env=env)
    assert there.end() == OK and ESCAPE.search(there.text)
    without = Terminal(*command, env={**env, "NO_COLOR": "1"})
    assert without.end() == OK and not ESCAPE.search(without.text)
    piped = run(*command, env=env)
    assert piped.returncode == OK and not ESCAPE.search(piped.stdout + piped.stderr)


# The overview.


def test_the_overview_fits_80_columns_and_has_all_parts(dev, env):
    for text in (run("status", env=env).stdout, finished(Terminal("status", env=env))):
        assert longest(text) < 80
        for label in ("Sandboxes", "Claims", "Leases", "Spend", "Accounts", "Queues", "Alarms"):
            assert re.search("^%s  " % label, ESCAPE.sub("", text), re.M), (label, text)


def test_the_overview_fits_with_accounts_in_cooldown(dev, env):
    accounts = json.loads(run("account", "list", "--status", "Available", "--json", env=env).stdout)["data"]["result"]
    for account, more in zip(accounts, ([], ["--hours", "5000"])):
        assert run("hold", "add", account["awsAccountId"], "--reason", "audit", *more, env=env).returncode == OK
    text = run("status", env=env).stdout
    assert re.search(r"next cooldown ends .+ \(\d{12}\); \d+ held until released$", text, re.M), text
    assert longest(text) < 80


def finished(terminal):
    assert terminal.end() == OK
    return terminal.text


def test_the_overview_as_json_is_what_the_server_said(dev, env):
    got = json.loads(run("status", "--json", env=env).stdout)
    assert got["overview"]["pool"]["total"] == 60 and got["overview"]["leases"]["by_status"]["Active"] >= 0
    assert got["queues"]["queues"] and got["events"]["events"] and got["holds"]["holds"] is not None


def test_the_bar_of_the_pool_shows_its_parts(dev, env):
    total = 68
    lines = run("status", env=env).stdout.splitlines()
    bar = next(line for line in lines if line.startswith("Sandboxes")).split()[1]
    assert len(bar) == total
    counts = json.loads(run("status", "--json", env=env).stdout)["overview"]["pool"]
    assert ("#" in bar) == (counts["available"] > 0)


# --watch.


@pytest.mark.parametrize("command", [["status"], ["job", "list"], ["template", "show", "Project"]])
def test_watching_draws_over_what_was_there_and_ends_with_0(dev, env, command):
    there = Terminal(*command, "--watch", "1", env=env)
    there.until(lambda text: len(re.findall(r"\x1b\[\d+F", text)) >= 2, "it is drawn three times")
    assert there.interrupt() == OK
    rounds = re.split(r"\x1b\[(\d+)F", there.text)
    lines = rounds[0].count("\n")
    assert int(rounds[1]) == lines  # as far up as was drawn
    assert "\x1b[?1049" not in there.text and "\x1b[2J" not in there.text  # no other screen, nothing blinks
    assert "\x1b[K" in rounds[2] and "Ctrl-C ends" in rounds[2]


def test_watching_keeps_within_a_small_window(dev, env):
    there = Terminal("sandbox", "list", "--watch", "1", env=env, rows=10)
    there.until(lambda text: re.search(r"\x1b\[\d+F", text), "it is drawn twice")
    assert there.interrupt() == OK
    picture = re.split(r"\x1b\[\d+F", there.text)[0]
    assert picture.count("\n") <= 9 and longest(picture) <= 80


def test_watching_in_a_pipe_goes_on_line_by_line(dev, env):
    watching = subprocess.Popen([binary(), "sandbox", "stats", "--json", "--watch", "1"], env=clean_env(env),
                                stdout=subprocess.PIPE, text=True)
    rounds = [json.loads(watching.stdout.readline()) for _ in range(2)]
    watching.send_signal(signal.SIGINT)
    assert watching.wait(90) == OK
    watching.stdout.close()
    assert all(r["total"] > 0 for r in rounds), "two whole answers, one a line"


def test_watching_what_is_not_there_ends_at_once(dev, env):
    assert run("sandbox", "show", "nope", "--watch", env=env).returncode == NOT_FOUND
    assert run("status", "--watch", "0", env=env).returncode == USAGE


def test_every_list_and_show_can_be_watched():
    listed = run("help").stdout
    for command in re.findall(r"^  (\S+ (?:list|show))  ", listed, re.M):
        assert "--watch" in run("help", *command.split()).stdout, command


# The password.


def echoes(terminal):
    return bool(termios.tcgetattr(terminal.master)[3] & termios.ECHO)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_password_that_is_not_typed_to_its_end_leaves_the_terminal_with_echo(number):
    there = Terminal("token", "hash-password")
    slave = os.open("/proc/%d/fd/0" % there.process.pid, os.O_RDWR | os.O_NOCTTY)  # the terminal outlives the program
    there.until(lambda text: "Password: " in text, "it asks")
    assert not echoes(there)
    os.write(there.master, b"secr")
    there.process.send_signal(number)
    assert there.process.wait(60) == -number
    assert echoes(there)
    os.close(slave)
    there.end()
    assert "secr" not in there.text


def test_a_password_is_typed_without_echo():
    there = Terminal("token", "hash-password")
    there.until(lambda text: "Password: " in text, "it asks")
    os.write(there.master, b"correct horse battery\n")
    assert there.end() == OK and "$argon2id$" in there.text and "horse" not in there.text


# The demo.


def test_the_demo_leaves_a_lively_world(make):
    server = make.server(args=["--dev"], bare=True, **{**FAST, "LEASEHOLD_TIME_SCALE": "1440"})
    env = {"LEASEHOLD_DATA": str(server.data)}
    done = run("demo", "--for", "12s", env=env, timeout=60)
    assert done.returncode == OK, done.stderr
    for deed in ("claims a sandbox", "gives the sandbox back", "requests a lease", "approves the lease of", "denies the lease of",
                 "freezes the lease of", "starts something expensive", "ends the lease", "has a WordPress made for tenant-acorn",
                 "suspends tenant-birch", "parks tenant-clover", "gives four tasks to tenant-acorn", "backs up tenant-dune"):
        assert deed in done.stdout
    now = json.loads(run("status", "--json", env=env).stdout)["overview"]
    assert now["pool"]["allocated"] > 0 and now["claims"]["per_minute"] > 20
    leases = now["leases"]["by_status"]
    assert all(leases[status] > 0 for status in ("PendingApproval", "Active", "ApprovalDenied", "ManuallyTerminated")), leases
    until(lambda: json.loads(run("status", "--json", env=env).stdout)["overview"]["kernel"]["dead_letters"] > 0,
          "the webhook that nobody answers has a dead letter", 30, pause=0.5)
    until(lambda: "quarantined" in run("status", env=env).stdout, "a cleanup has failed for good", 60, pause=0.5)
    until(lambda: tenants(env) >= {("tenant-acorn", "ACTIVE"), ("tenant-birch", "SUSPENDED"), ("tenant-clover", "PARKED"), ("tenant-ember", "FAILED")},
          "tenants have met their fates", 60, pause=0.5)


def tenants(env):
    return {(i["tenantId"], i["status"]) for i in json.loads(run("instance", "list", "--json", env=env).stdout)["instances"]}


def test_the_demo_leaves_tenants_out_where_there_are_no_instances(make):
    server = make.server(args=["--dev"], bare=True, **FAST, LEASEHOLD_INSTANCE_DRIVER="off")
    done = run("demo", "--for", "3s", "--speed", "3600", env={"LEASEHOLD_DATA": str(server.data)})
    assert done.returncode == OK and "requests a lease" in done.stdout and "tenant-" not in done.stdout


def test_a_demo_is_the_same_for_the_same_seed(make):
    def deeds(seed):
        server = make.server(args=["--dev"], bare=True, **FAST)
        got = run("demo", "--json", "--for", "4s", "--seed", seed, "--speed", "2000", env={"LEASEHOLD_DATA": str(server.data)})
        assert got.returncode == OK, got.stderr
        server.stop()
        return [(d["at"], d["who"], d["does"]) for d in map(json.loads, got.stdout.splitlines())]

    one, again, other = deeds("5"), deeds("5"), deeds("6")
    common = min(len(one), len(again))
    assert common > 20 and one[:common] == again[:common]
    assert other[:20] != one[:20]


def test_a_day_of_not_quite_four_minutes_is_one_of_four(dev, env):
    done = run("demo", "--for", "1s", "--speed", "361", env=env)
    assert "A day takes 4 min here; this runs for 1 s." in done.stderr


def test_the_demo_ends_cleanly_by_ctrl_c(dev, env):
    there = Terminal("demo", env=env)
    there.until(lambda text: "requests a lease" in text, "it is under way")
    assert there.interrupt() == OK
    assert "actions done" in there.text
    assert json.loads(run_sim(dev))["faults"] == []


def run_sim(dev):
    token = re.search("^BROKER_ADMIN_TOKEN=(.*)$", (dev.data / "client").read_text(), re.M).group(1)
    return dev.client({"Authorization": "Bearer " + token}).get("/v1/sim").body


def test_the_demo_refuses_a_server_that_is_not_in_development(make):
    server = make.server(count=2)
    env = {"LEASEHOLD_ADDRESS": server.url, "BROKER_ADMIN_TOKEN": server.env["BROKER_ADMIN_TOKEN"]}
    got = run("demo", env=env)
    assert got.returncode == REFUSED and "not in development mode" in got.stderr and "make run" in got.stderr
    assert not got.stdout


# Exit codes, help, completion.


def test_exit_codes_are_the_same_everywhere():
    table = dict(re.findall(r"^(\d)  (.+)$", run("help", "exit-codes").stdout, re.M))
    assert sorted(table) == list("01234567")
    in_help = run("help").stdout
    page = (ROOT / "docs/cli.md").read_text()
    for number, text in table.items():
        assert re.search(r"^  %s +%s$" % (number, re.escape(text)), in_help, re.M)
        assert "| %s | %s |" % (number, text) in page
    manual = run("help", "--man").stdout
    assert manual[manual.index(".SH EXIT STATUS"):].count(".TP") == len(table)


@pytest.mark.parametrize(
    "command, code",
    [(["sandbox", "stats"], OK), (["sandbox", "bulk-delete", "--status", "nope", "--yes"], REFUSED), (["sandbox"], USAGE),
     (["wait", "account", "ACCOUNT", "--for", "Frozen", "--timeout", "0"], EMPTY), (["sandbox", "show", "nope"], NOT_FOUND),
     (["status", "--address", "http://127.0.0.1:1", "--token-file", "TOKEN"], UNREACHABLE),
     (["status", "--address", "URL", "--token-file", "TOKEN"], NOT_ALLOWED)])
def test_each_outcome_has_its_exit_code(dev, env, tmp_path, command, code):
    (tmp_path / "token").write_text("of-somebody-else-0123456789\n")
    account = json.loads(run("account", "list", "--json", env=env).stdout)["data"]["result"][0]["awsAccountId"]
    words = {"ACCOUNT": account, "URL": dev.url, "TOKEN": str(tmp_path / "token")}
    got = run(*[words.get(word, word) for word in command], env=env)
    assert got.returncode == code, got


def test_every_command_of_the_runbook_is_one_that_can_be_typed():
    """With nobody to answer it: what is wrong with its words is said before anything is sent."""
    nobody = {name: "nobody-answers-0123456789" for name in ("BROKER_ADMIN_TOKEN", "BROKER_API_TOKEN", "LEASEHOLD_TOKEN")}
    lines = re.findall(r"`leasehold ([a-z][^`]*)`", (ROOT / "docs/runbook.md").read_text())
    sent = 0
    for line in sorted(set(lines)):
        given = re.sub(r"(--[a-z-]+) \.\.\.", r"\1 x", line).split(" > ")[0]
        words = shlex.split(given)
        if words[0] in ("serve", "init", "config", "version", "health", "store") or {"FILE", "..."} & set(words) or words[:2] in (["event", "watch"], ["doctor", "aws"]):
            continue  # works here, waits, or is not all of it
        if len(words) == 2 and not words[1].startswith("-"):  # its name alone
            assert run("help", *words).returncode == OK, line
            continue
        got = run(*words, "--address", "http://127.0.0.1:1", env=nobody)
        assert got.returncode == UNREACHABLE, (line, got.stderr)
        sent += 1
    assert sent > 30


@pytest.mark.parametrize("command", [["help"], ["help", "lease", "list"], ["help", "demo"], ["sandbox", "--help"]])
def test_help_fits_a_terminal(command):
    assert longest(finished(Terminal(*command))) <= 80


def complete(words):
    """What bash offers behind these words."""
    script = ('source <("$0" completion bash); COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _leasehold; '
              'printf "%s\\n" "${COMPREPLY[@]}"')
    done = subprocess.run(["bash", "-c", script, binary(), *words], stdout=subprocess.PIPE, text=True, timeout=90, check=True)
    return done.stdout.split()


def test_completion_knows_nouns_verbs_options_and_words():
    assert {"status", "demo", "sandbox", "lease", "hold", "doctor"} <= set(complete(["leasehold", ""]))
    assert {"delete", "list", "claim"} <= set(complete(["leasehold", "sandbox", ""]))
    assert {"--watch", "--json", "--status"} <= set(complete(["leasehold", "lease", "list", "--"]))
    assert complete(["leasehold", "lease", "list", "--status", "Budget"]) == ["BudgetExceeded"]
    assert complete(["leasehold", "wait", "lease", "1", "--for", "Froz"]) == ["Frozen"]
    assert complete(["leasehold", "hold", "drain", "hand"]) == ["hand-over"]
    assert "exit-codes" in complete(["leasehold", "help", "exit"])
