# SPDX-License-Identifier: Apache-2.0
"""The unit tests of the same name, and races, on each kind of database."""

from collections.abc import Callable, Sequence
from functools import partial

import pytest

from tests.functional.db.concurrent_calls import run_at_once
from tests.support.api.conversation import Answer, Client
from tests.support.api.inheritance import BASE, create, create_chain, patch, show
from tests.unit.db.device_profiles.test_inheritance import *  # noqa: F403  # the tests

_ROUNDS = 12


def send_at_once(requests: Sequence[Callable[[], Answer]]) -> list[int]:
    """Send requests at the same time; return the status of each answer."""
    answers = run_at_once(requests)
    return [answer.status for answer in answers if isinstance(answer, Answer)]


def test_child_created_during_change_is_not_stale(client: Client) -> None:
    create_chain(client, 'a', 'b')
    for number in range(_ROUNDS):
        trait = f'trait:CUSTOM_N{number}'
        change = partial(patch, client, 'a', groups=[{**BASE, trait: 'required'}])
        children = [
            partial(create, client, f'c{number}-{parent}', extends=parent)
            for parent in 'ab'
        ]
        assert send_at_once([change, *children]) == [200, 201, 201]
        # Profiles of earlier rounds have it, too.
        for profile in client.get('/device_profiles').json['device_profiles']:
            assert trait in profile['groups'][0], profile['name']


def test_own_groups_changed_with_parent_are_merged(client: Client) -> None:
    create_chain(client, 'a', 'b')
    for number in range(_ROUNDS):
        group = {**BASE, f'trait:CUSTOM_A{number}': 'required'}
        own_group = {f'trait:CUSTOM_B{number}': 'required'}
        changes = [
            partial(patch, client, 'a', groups=[group]),
            partial(patch, client, 'b', own_groups=[own_group]),
        ]
        assert send_at_once(changes) == [200, 200]
        assert show(client, 'b')['groups'] == [{**group, **own_group}]


def test_concurrent_changes_make_no_cycle(client: Client) -> None:
    for number in range(_ROUNDS):
        names = [f'{letter}{number}' for letter in 'xyz']
        for name in names:
            create(client, name, groups=[BASE])
        following = [*names[1:], names[0]]
        changes = [
            partial(patch, client, name, extends=parent, own_groups=[])
            for name, parent in zip(names, following, strict=True)
        ]
        assert sorted(send_at_once(changes)) == [200, 200, 400]


def test_parent_deleted_while_child_is_created(client: Client) -> None:
    for number in range(_ROUNDS):
        create(client, f'p{number}', groups=[BASE])
        delete = partial(client.delete, f'/device_profiles/p{number}')
        child = partial(create, client, f'c{number}', extends=f'p{number}')
        assert send_at_once([delete, child]) in ([204, 400], [409, 201])


@pytest.mark.parametrize(
    ('links', 'length'),
    [
        pytest.param([('p0', 'q1'), ('q0', 'p1')], 2, id='cycle'),
        pytest.param([('p0', 'q1'), ('q0', 'r1')], 2, id='long chain'),
    ],
)
def test_moved_chains_are_checked_together(
    client: Client, links: Sequence[tuple[str, str]], length: int
) -> None:
    """A move is valid without the other one."""
    for number in range(_ROUNDS):
        for letter in 'pqr':
            names = [f'{letter}{level}-{number}' for level in range(length)]
            create_chain(client, *names)
        moves = [
            partial(
                patch,
                client,
                f'{name}-{number}',
                extends=f'{parent}-{number}',
                own_groups=[],
            )
            for name, parent in links
        ]
        assert sorted(send_at_once(moves)) == [200, 400]


def test_moved_chain_has_groups_of_changed_ancestor(client: Client) -> None:
    create_chain(client, 'a', 'b')
    for number in range(_ROUNDS):
        create_chain(client, f'c{number}', f'd{number}')
        group = {**BASE, f'trait:CUSTOM_N{number}': 'required'}
        changes = [
            partial(patch, client, 'a', groups=[group]),
            partial(patch, client, f'c{number}', extends='b', own_groups=[]),
        ]
        assert send_at_once(changes) == [200, 200]
        expected = {**group, 'resources:PGPU': '2'}
        for name in ('b', f'c{number}', f'd{number}'):
            assert show(client, name)['groups'] == [expected], name
