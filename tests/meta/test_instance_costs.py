# SPDX-License-Identifier: Apache-2.0
"""The table of what a tenant costs (docs/instances-aws.md) adds up, with the sizes of tiers that the program has."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
HOURS = 730
TIERS = ("STANDARD", "PROFESSIONAL", "ENTERPRISE")


def rows():
    text = (ROOT / "docs/instances-aws.md").read_text().split("## What a tenant costs")[1].split("\n## ")[0]
    found = [[cell.strip(" *") for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]
    assert [cell.strip() for cell in found[0][2:]] == list(TIERS)
    return {row[0]: row[1:] for row in found[2:]}


def sizes():
    """vCPUs and GB of a task, by tier."""
    text = (ROOT / "src/domain/instance.c").read_text()
    cpu, mb = (int(re.search(r"\*ret_%s = (\d+) << tier;" % name, text).group(1)) for name in ("cpu_units", "memory_mb"))
    return {tier: ((cpu << i) / 1024, (mb << i) / 1024) for i, tier in enumerate(TIERS)}


@pytest.mark.parametrize("column,tier", enumerate(TIERS, 1))
def test_the_costs_of_a_tenant_add_up(column, tier):
    table, (cpu, gb) = rows(), sizes()[tier]
    vcpu_price, gb_price = map(float, re.findall(r"[\d.]{6,}", table["two Fargate tasks, Linux on x86"][0]))
    task = (cpu * vcpu_price + gb * gb_price) * HOURS
    shown = {name: float(row[column]) for name, row in table.items()}
    assert shown["two Fargate tasks, Linux on x86"] == pytest.approx(2 * task, abs=0.006) and shown["each further task"] == pytest.approx(task, abs=0.006)
    kept = {name: value for name, value in shown.items() if name not in ("each further task", "a tenant that runs", "suspended or parked")}
    assert shown["a tenant that runs"] == pytest.approx(sum(kept.values()), abs=0.001)
    assert shown["suspended or parked"] == pytest.approx(shown["three secrets"] + shown["1 GB of files"] + shown["an archive of 1 GB, kept 90 days"], abs=0.001)
