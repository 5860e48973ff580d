# SPDX-License-Identifier: Apache-2.0
"""Lists of the REST API with real SQL, on each database."""

import pytest

from cyborg_lite.db.core.engine import Database
from cyborg_lite.db.profiles import profiles
from cyborg_lite.model.profiles.device_profiles import ProfileChange
from tests.builders.provider_rows import change_deployable
from tests.builders.rows import add_card, add_profile
from tests.support.api.conductor import LocalConductor
from tests.support.api.conversation import Client


@pytest.fixture
def newest(database: Database) -> Client:
    """Return a client of an API whose lists come from the database."""
    return Client(LocalConductor(database)).at('2.7')


@pytest.mark.parametrize(
    ('prefix', 'names'),
    [
        ('gpu', ['gpu', 'gpu%', 'gpu_x', 'gpuax']),
        ('GPU', ['GPU-A']),
        ('gpu_', ['gpu_x']),
        ('gpu%25', ['gpu%']),
        ('%25', []),
        ('gpu%20', []),
        ('gpu/', []),
        ('gpu%5C', []),
        ('%C3%A9', ['ét']),
        ('e', []),
        ('%C3%89', []),
        ("gpu'", []),
        ('%F0%9F%92%BB', ['💻1']),
        ('x' * 255, []),
    ],
)
def test_prefix_is_literal_and_distinguishes_case(
    newest: Client, database: Database, prefix: str, names: list[str]
) -> None:
    for name in ('gpu', 'GPU-A', 'gpu_x', 'gpuax', 'gpu%', 'ét', '💻1'):
        provider = add_card(database, 1)
        change_deployable(database, provider, name=name)
    path = f'/deployables?name_prefix={prefix}&sort_key=name'
    objects = newest.get(path).json['deployables']
    assert sorted(item['name'] for item in objects) == sorted(names)


def test_prefix_of_profiles_ignores_former_names(
    newest: Client, database: Database
) -> None:
    name = add_profile(database, [{'resources:PGPU': '1'}])
    path = f'/device_profiles?name_prefix={name[:-1]}'
    (profile,) = newest.get(path).json['device_profiles']
    assert profile['name'] == name
    change = ProfileChange(('name',), name='renamed')
    uuid = newest.get('/device_profiles').json['device_profiles'][0]['uuid']
    database.write(profiles.update_profile, uuid, change)
    assert newest.get(path).json['device_profiles'] == []
