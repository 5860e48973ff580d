# SPDX-License-Identifier: Apache-2.0
"""Schedules: a seed repeats its schedule, and every fault occurs in some of them."""

from itertools import pairwise

from tests.chaos.history.schedule import FaultKind, plan

SECONDS = 20.0


def test_plan_seed_repeats_schedule() -> None:
    assert plan(7, SECONDS) == plan(7, SECONDS)
    assert plan(7, SECONDS) != plan(8, SECONDS)


def test_plan_seeds_use_every_fault() -> None:
    faults = [fault for seed in range(20) for fault in plan(seed, SECONDS).faults]
    assert {fault.kind for fault in faults} == set(FaultKind)


def test_plan_faults_of_target_do_not_overlap() -> None:
    for seed in range(20):
        faults = sorted(plan(seed, SECONDS).faults, key=lambda fault: fault.start)
        for target in {fault.target for fault in faults}:
            of_target = [fault for fault in faults if fault.target == target]
            assert all(a.end < b.start for a, b in pairwise(of_target))
