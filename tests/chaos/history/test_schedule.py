# SPDX-License-Identifier: Apache-2.0
"""Schedules: a seed repeats its schedule, and every fault occurs in some of them."""

from itertools import pairwise

from tests.chaos.history.schedule import FIXED_SEEDS, FaultKind, plan


def test_plan_seed_repeats_schedule() -> None:
    assert plan(7) == plan(7)
    assert plan(7) != plan(8)


def test_plan_seeds_use_every_fault() -> None:
    faults = [fault for seed in range(20) for fault in plan(seed).faults]
    assert {fault.kind for fault in faults} == set(FaultKind)


def test_plan_fixed_seeds_use_every_fault() -> None:
    seeds = [seed for seeds in FIXED_SEEDS.values() for seed in seeds]
    faults = [fault for seed in seeds for fault in plan(seed).faults]
    assert {fault.kind for fault in faults} == set(FaultKind)


def test_plan_faults_of_target_do_not_overlap() -> None:
    for seed in range(20):
        faults = sorted(plan(seed).faults, key=lambda fault: fault.start)
        for target in {fault.target for fault in faults}:
            of_target = [fault for fault in faults if fault.target == target]
            assert all(a.end < b.start for a, b in pairwise(of_target))
