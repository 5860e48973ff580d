# SPDX-License-Identifier: Apache-2.0
"""Search for the shortest scenario of a violation."""

from tests.simulation.shrinking import MAX_RUNS, Scenario, shrink


def test_shrink_keeps_only_what_the_violation_needs() -> None:
    def violates(scenario: Scenario) -> bool:
        return scenario.users >= 2 and {3, 17} <= set(scenario.faults)

    assert shrink(Scenario(4, range(40)), violates) == Scenario(2, [3, 17])


def test_shrink_of_needed_parts_changes_nothing() -> None:
    longest = Scenario(4, [1, 2, 3])
    assert shrink(longest, lambda scenario: scenario == longest) == longest


def test_shrink_of_many_faults_ends() -> None:
    runs = []

    def violates(scenario: Scenario) -> bool:
        runs.append(scenario)
        return set(range(0, 400, 2)) <= set(scenario.faults)

    shortest = shrink(Scenario(1, range(400)), violates)
    assert violates(shortest)
    assert len(runs) <= MAX_RUNS + 1
