# SPDX-License-Identifier: Apache-2.0
"""The pace is that of all nodes together. It takes its time, so it runs beside all other tests from the first one on, on a front of its own."""


def assert_pace(times, gap, burst):
    """The burst, and then one for each gap; a quarter more, for calls do not come as evenly as they leave. The exact rule is in tests/unit/test_aws_pace.c."""
    assert len(times) > burst
    assert len(times) <= burst + 1.25 * (max(times) - min(times)) / gap + 3, (len(times), max(times) - min(times))


def test_c21_two_nodes_and_sixty_moves_never_over_the_pace(sixty_moves):
    front, answers = sixty_moves
    got = {id: answer.get(timeout=180)["rc"] for id, answer in answers.items()}
    # Who would have to wait too long is told so; on a machine that is very busy a call may run out of time.
    assert set(got.values()) <= {"OK", "LIMITED", "UNAVAILABLE", "TIMEOUT"}
    moved = [m["account"] for m in front.state("organizations")["moves"]]
    assert len(moved) == len(set(moved)) and {id for id in got if got[id] == "OK"} <= set(moved)
    assert all(got[id] in ("OK", "TIMEOUT") for id in moved)
    assert_pace([e["time"] for e in front.log("organizations", "MoveAccount")], 1.0, 2)
    assert_pace([e["time"] for e in front.log("organizations", "ListParents")], 0.25, 8)
