# SPDX-License-Identifier: Apache-2.0
"""Requests about device profiles that extend other ones."""

from itertools import pairwise
from typing import Any, Final

from tests.builders.patches import build_replace_patch
from tests.support.api.conversation import Answer, Client

NEWEST: Final = '2.25'
BASE: Final = {'resources:PGPU': '1', 'trait:CUSTOM_A': 'required'}


def create(client: Client, name: str, **fields: Any) -> Answer:
    """Create a device profile."""
    return client.post('/device_profiles', [{'name': name, **fields}])


def create_chain(client: Client, *names: str) -> None:
    """Create a profile with one group, and others that extend the one before them."""
    assert create(client, names[0], groups=[BASE]).status == 201
    for parent, name in pairwise(names):
        own_groups = [{'resources:PGPU': '2'}] if parent == names[0] else []
        answer = create(client, name, extends=parent, own_groups=own_groups)
        assert answer.status == 201, answer.fault


def show(client: Client, name: str) -> Any:
    """Return a device profile."""
    answer = client.get(f'/device_profiles/{name}')
    assert answer.status == 200, answer.body
    return answer.json['device_profile']


def patch(client: Client, profile: str, **values: Any) -> Answer:
    """Change fields of a device profile."""
    return client.patch(f'/device_profiles/{profile}', build_replace_patch(**values))
