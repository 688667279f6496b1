# SPDX-License-Identifier: Apache-2.0
"""What scripts/coverage-report makes of gcov's counts."""

import importlib.machinery
import importlib.util
import io
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def tool(tmp_path, monkeypatch):
    loader = importlib.machinery.SourceFileLoader("coverage_report", str(ROOT / "scripts/coverage-report"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("coverage_report", loader))
    loader.exec_module(module)
    monkeypatch.setattr(module, "ROOT", tmp_path)
    return module


def counted(tool, tmp_path, text, counts):
    """A file of the domain with this text; counts: {line: (count, branches)}."""
    path = Path("src/domain/thing.c")
    (tmp_path / path).parent.mkdir(parents=True)
    (tmp_path / path).write_text(text)
    lines = {}
    for number, (count, branches) in counts.items():
        lines[number] = tool.Line()
        lines[number].add(count, "thing", [{"count": b} for b in branches])
    out = io.StringIO()
    rooms, kinds = tool.report({path: lines}, out)
    return rooms["domain"], kinds["domain"], out.getvalue()


def test_what_was_not_reached_is_listed_by_function(tool, tmp_path):
    room, kinds, listed = counted(tool, tmp_path, "if (a)\n\treturn rc;\nb();\n", {1: (4, [4, 0]), 2: (0, []), 3: (4, [])})
    assert (room.lines, room.reached, room.branches, room.taken) == (3, 2, 2, 1)
    assert kinds["a failure from below is passed on"] == 1
    assert "src/domain/thing.c: thing()" in listed and "1 of 2    if (a)" in listed and "never     return rc;" in listed and "b();" not in listed


def test_assertions_and_braces_have_no_branches(tool, tmp_path):
    room, _, listed = counted(tool, tmp_path, "assert(a);\n}\nprint(STR_ARG(s));\n", {1: (1, [1, 0]), 2: (1, [1, 0]), 3: (1, [1, 0])})
    assert (room.lines, room.branches, listed) == (2, 0, "")


def test_a_line_that_was_compiled_twice_counts_as_the_program_has_it(tool):
    line = tool.Line()
    line.add(1, "f", [{"count": 1}, {"count": 0}])
    line.add(1, "f", [{"count": 0}, {"count": 1}])
    line.add(1, "f", [{"count": 1}] * 4)  # with a deliberate mistake in it
    assert line.taken() == (2, 2)
