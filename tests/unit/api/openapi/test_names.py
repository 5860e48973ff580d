# SPDX-License-Identifier: Apache-2.0
"""Tests that the newest microversion has one spelling for each fact."""

from collections.abc import Iterator
from typing import Any, Final

from cyborg_lite.api.microversion import MAXIMUM
from tests.support.api.api_document import load_document
from tests.support.api.conversation import Client

SPELLINGS: Final = {
    'hostname': {'host', 'host_name'},
    'project_id': {'project', 'project_uuid', 'tenant', 'tenant_id'},
    'kind': {'event', 'event_type', 'job_type', 'operation_type'},
    'type': {'device_type', 'unit_type', 'handle_type'},
}
"""Other spellings that a name replaces."""

OF_HARDWARE: Final = {
    'Device',
    'DeviceType',
    'TopologyDevice',
    'TopologyUnit',
    'DeployableAttribute',
}
"""Components with a type: devices, units and values. What happens has a kind."""


def list_names(node: Any, place: str) -> Iterator[tuple[str, str]]:
    """Yield place and name of each parameter and each property of a document."""
    if isinstance(node, list):
        for index, item in enumerate(node):
            yield from list_names(item, f'{place}/{index}')
    if isinstance(node, dict):
        if 'in' in node and 'name' in node:
            yield place, node['name']
        properties = node.get('properties', {})
        if isinstance(properties, dict):
            yield from ((place, name) for name in properties)
        for key, item in node.items():
            if key not in ('example', 'examples'):
                yield from list_names(item, f'{place}/{key}')


def list_sort_keys(document: Any) -> Iterator[tuple[str, str]]:
    """Yield path and word of each sort key."""
    for path, operations in document['paths'].items():
        for parameter in operations.get('get', {}).get('parameters', ()):
            if parameter.get('name') == 'sort_key':
                yield from ((path, key) for key in parameter['schema']['enum'])


DOCUMENT: Final = load_document(MAXIMUM)
SORT_KEYS: Final = list(list_sort_keys(DOCUMENT))
NAMES: Final = [
    *list_names(DOCUMENT, ''),
    *((f'paths{path}', key) for path, key in SORT_KEYS),
]


def test_newest_document_has_one_spelling_per_fact() -> None:
    replaced = {word: name for name, words in SPELLINGS.items() for word in words}
    seconds = [(*item, replaced[item[1]]) for item in NAMES if item[1] in replaced]
    assert not seconds, 'name the field or argument as the last word says'
    assert set(SPELLINGS) <= {name for _, name in NAMES}


def test_only_hardware_and_values_have_a_type() -> None:
    places = {place for place, name in NAMES if name == 'type' and 'paths' not in place}
    assert {place.rpartition('/')[2].removeprefix('Partial') for place in places} == (
        OF_HARDWARE
    )


def test_sort_keys_are_those_that_service_accepts(client: Client) -> None:
    """At each list the words of the document are accepted, and another is refused."""
    latest = client.at('latest')
    for path, key in SORT_KEYS:
        answer = latest.get(f'{path.removeprefix("/v2")}?sort_key={key}')
        assert answer.status == 200, (path, key)
    for path in {path for path, _ in SORT_KEYS}:
        assert latest.get(f'{path.removeprefix("/v2")}?sort_key=id').status == 400, path
