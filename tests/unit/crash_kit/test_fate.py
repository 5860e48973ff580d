# SPDX-License-Identifier: Apache-2.0
"""A process dies where it should, and does nothing afterwards."""

import pytest

from cyborg_lite.crash_kit.fate import Fate
from cyborg_lite.drivers.kit_faults import Death


def live(fate: Fate) -> list[str]:
    """What a process of two steps gets done."""
    done = []
    try:
        for what in ('one', 'two'):
            with fate.step(what):
                done.append(what)
    except Death:
        pass
    return done


def test_every_step_has_two_moments() -> None:
    fate = Fate()
    with fate.at_large():
        assert live(fate) == ['one', 'two']
    assert fate.moments == ['before one', 'after one', 'before two', 'after two']
    assert fate.met is None


@pytest.mark.parametrize(
    ('moment', 'done', 'met'),
    [
        (0, [], 'before one'),
        (1, ['one'], 'after one'),
        (2, ['one'], 'before two'),
        (3, ['one', 'two'], 'after two'),
    ],
)
def test_a_process_dies_at_its_moment(moment: int, done: list[str], met: str) -> None:
    fate = Fate(moment)
    with fate.at_large():
        assert live(fate) == done
    assert fate.met == met


def test_the_dead_do_nothing_more_and_their_successors_live() -> None:
    fate = Fate(0)
    with fate.at_large():
        assert live(fate) == []
        assert live(fate) == []
        fate.succeed()
        assert live(fate) == ['one', 'two']


def test_nobody_dies_outside_of_the_dangerous_part() -> None:
    fate = Fate(0)
    assert live(fate) == ['one', 'two']
    assert fate.moments == []


def test_what_must_be_done_at_a_death_is_done_before_anything_unwinds() -> None:
    fate, heard = Fate(1), []
    fate.at_death = lambda: heard.append(fate.met)
    with fate.at_large():
        live(fate)
    assert heard == ['after one']
