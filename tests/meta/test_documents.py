# SPDX-License-Identifier: Apache-2.0
"""What the documents state is what the source says."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCES = [path.read_text() for path in sorted((ROOT / "src").rglob("*.[ch]"))]


def test_every_queue_is_in_the_table_of_queues():
    named = set(re.findall(r'^#define \w+_QUEUE\s+"([a-z-]+)"', "\n".join(SOURCES), re.M))
    table = (ROOT / "src/app/subscriptions.c").read_text()
    named |= {a or b for a, b in re.findall(r'\.name = "([a-z-]+)"|sink\(c, "([a-z-]+)"', table)}
    documented = re.findall(r"^\| `([a-z-]+)` \| (?:call|handler) \|", (ROOT / "docs/kernel.md").read_text(), re.M)
    assert len(documented) == len(set(documented))
    assert set(documented) == named


def test_the_states_of_an_account_are_those_of_its_table():
    states = set(re.findall(r'X\(([A-Z]+), "', (ROOT / "src/domain/account.h").read_text()))
    steps = set()
    for event, origins, to in re.findall(r"\[ACCOUNT_ON_([A-Z_]+)\]\s+= \{ (.*?),\s+ACCOUNT_([A-Z]+),", (ROOT / "src/domain/account.c").read_text()):
        named = set(re.findall(r"IN\(([A-Z]+)\)", origins))
        steps |= {(origin, event, to) for origin in (states - named if origins.startswith("~") else named)}
    assert len(states) == 7 and len(steps) > 20
    chapter = (ROOT / "docs/leases.md").read_text().split("## States of an account")[1].split("\n## ")[0]
    documented = set()
    for origin, event, to in re.findall(r"^\| (.+?) \| ([a-z ]+) \| (\w+) \|", chapter, re.M):
        if origin == "(not known)" or origin == "from":
            continue
        names = states - {origin[len("all but "):].upper()} if origin.startswith("all but ") else origin.upper().split(", ")
        documented |= {(name, event.upper().replace(" ", "_"), to.upper()) for name in names}
    assert documented == steps


def test_a_back_end_has_as_many_functions_as_the_documents_say():
    words = "zero one two three four five six seven eight nine ten eleven twelve".split()
    table = (ROOT / "src/store/store_ops.h").read_text().split("struct store_ops {")[1].split("};")[0]
    functions = len(re.findall(r"_fn\s+\*", table))
    assert "Back ends implement %s functions" % words[functions] in (ROOT / "docs/architecture.md").read_text()


PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]


def test_every_source_file_that_a_page_names_exists():
    missing = []
    for page in PAGES:
        for name in re.findall(r"`((?:[\w.-]+/)+[\w-]+\.(?:[ch]|def|py))`|\b(src/[\w/]+\.(?:[ch]|def))\b", page.read_text()):
            name = name[0] or name[1]
            if not any((ROOT / below / name).exists() for below in ("", "src", "tests")):
                missing.append("%s: %s" % (page.relative_to(ROOT), name))
    assert not missing


def test_every_room_has_a_row_in_the_architecture():
    rooms = [line.split()[0] for line in (ROOT / "src/LAYERS").read_text().splitlines() if line and line[0] != "#"]
    assert len(rooms) > 30
    rows = re.findall(r"^\| `([a-z/]+)` \|", (ROOT / "docs/architecture.md").read_text(), re.M)
    assert sorted(rows) == sorted(rooms)


def test_every_decision_is_listed():
    folder = ROOT / "docs/decisions"
    files = sorted(path.name for path in folder.glob("[0-9]*.md"))
    assert files == re.findall(r"\]\((\d[^)]*\.md)\)", (folder / "README.md").read_text())


def test_every_link_between_pages_leads_somewhere():
    broken = []
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", page.read_text()):
            if not (page.parent / target).exists():
                broken.append("%s: %s" % (page.relative_to(ROOT), target))
    assert not broken


def test_every_function_that_a_page_names_exists():
    scripts = [path.read_text() for path in sorted((ROOT / "src/console").rglob("*.js"))]
    code = "\n".join(SOURCES + scripts)
    missing = []
    for page in PAGES:
        for name in set(re.findall(r"`(\w+)\(", page.read_text())):
            if "NAME" not in name and not re.search(r"\b%s\b" % name, code):
                missing.append("%s: %s" % (page.relative_to(ROOT), name))
    assert not missing


def test_a_walk_enters_each_file_once_and_finds_the_functions_there():
    for walk in (ROOT / "docs/walks.md").read_text().split("\n## ")[1:]:
        entered = []
        for step in re.findall(r"^\d+\. (.+)$", walk, re.M):
            for name, rest in re.findall(r"`([\w/]+\.c)`([^;.]*)", step):
                entered.append(name)
                for function in re.findall(r"^, `(\w+)\(\)`", rest):
                    assert re.search(r"^[a-z].*\b%s\(" % function, (ROOT / "src" / name).read_text(), re.M), (name, function)
        assert len(entered) > 8
        once = [name for name in entered if name.split("/")[0] not in ("store", "kernel")]
        assert len(once) == len(set(once))


def test_every_alarm_has_a_row_in_the_runbook():
    rules = re.findall(r'RULE\("([a-z-]+)"', (ROOT / "src/service/alarms/alarms.c").read_text())
    assert len(rules) > 20
    assert rules == re.findall(r"^\| \[([a-z-]+)\]\(#\1\) \|", (ROOT / "docs/runbook.md").read_text(), re.M)


def test_every_noun_of_the_command_line_is_in_its_grammar():
    names = re.findall(r'^COMMAND\(\w+, \w+, "([a-z -]+)"', (ROOT / "src/cli/term/commands.def").read_text(), re.M)
    assert len(names) > 80
    grammar = (ROOT / "docs/cli.md").read_text().split("## Grammar")[1].split("\n| ")[0]
    hidden = {"api-doc", "settings-doc"}
    assert {name.split()[0] for name in names} - hidden - set(re.findall(r"`([a-z-]+)`", grammar)) == set()


def test_the_threads_that_block_are_as_many_as_the_architecture_says():
    kinds = re.findall(r'X\([A-Z]+, (\d+), \d+, "', (ROOT / "src/http/api/blocking.h").read_text())
    assert len(kinds) > 5
    assert "%d in all, each kind with its own" % sum(map(int, kinds)) in (ROOT / "docs/architecture.md").read_text()


def test_every_case_of_the_contract_with_aws_is_a_test_with_its_number():
    named = {int(n) for path in (ROOT / "tests").rglob("test_*.[cp]*") for n in re.findall(r"^(?:def test_|TEST\()[cC](\d+)_", path.read_text(), re.M)}
    assert set(range(1, 48)) - named == set()


def test_every_file_with_a_lock_is_in_the_table_of_locks():
    locks = (ROOT / "docs/architecture.md").read_text().split("## Locks")[1].split("\n## ")[0]
    with_lock = {str(path.relative_to(ROOT / "src")) for path in sorted((ROOT / "src").rglob("*.[ch]"))
                 if re.search(r"^\s*(?:static )?pthread_mutex_t\s", path.read_text(), re.M)}
    of_the_client = {name for name in with_lock if name.startswith("cli/")}
    assert {name.replace("inbox.h", "inbox.c") for name in with_lock - of_the_client} - set(re.findall(r"`([\w/]+\.[ch])`", locks)) == set()


def test_every_file_that_starts_a_thread_is_known():
    """The table of threads in docs/architecture.md is for these; a new one needs a row there and a page in docs/decisions."""
    starts = {str(path.relative_to(ROOT / "src")) for path in sorted((ROOT / "src").rglob("*.c"))
              if re.search(r"\bpthread_create\(|\buv_thread_create\(", path.read_text())}
    assert starts == {"app/reload.c", "app/wiring.c", "cli/term/progress.c", "kernel/pump.c", "providers/aws/messages/poller.c", "providers/local/supervise.c", "service/jobs/jobs.c",
                      "store/dynamodb/dynamodb.c", "store/sqlite/sqlite.c"}


def test_the_states_of_an_instance_are_those_of_its_table():
    rows = re.findall(r"\{ (.+?),\s+INSTANCE_ON_(\w+),\s+INSTANCE_(\w+),\s+\"", (ROOT / "src/domain/instance.c").read_text())
    assert len(rows) > 30
    documented = re.findall(r"^\| (\d+) \| (.+?) \| (\w+) \|", (ROOT / "docs/instances.md").read_text(), re.M)
    assert [int(row[0]) for row in documented] == list(range(1, len(rows) + 1))
    assert [row[2] for row in documented] == [row[2] for row in rows]
