# SPDX-License-Identifier: Apache-2.0
"""Tests of the topology property of bitstream images."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from cyborg_lite.model.bitstreams import function_layout

_FACTS = {'pci_offset': '0x10', 'capability': 'ipsec', 'kpi': {'gbps': 10}}
_FLAT = {
    'pf_num': 2,
    'vf_num': 2,
    'pf_1': _FACTS,
    'pf_2': _FACTS,
    'vf_1': _FACTS,
    'vf_2': _FACTS,
}
_NESTED = {'pf_1': {**_FACTS, 'vf_1': _FACTS}, 'pf_2': {**_FACTS, 'vf_2': _FACTS}}
_LIST_FORM = {
    'pf_num': '2',
    'pf': [{'pf_1': _FACTS}, {'name': 'pf_2', **_FACTS}],
    'vf': {'vf_1': {**_FACTS, 'parent': 'pf_1'}, 'vf_2': {**_FACTS, 'parent': 'pf_2'}},
}
# The form in the specification of the metadata.
_SPECIFIED = {
    'pf_num': 2,
    'vf_num': 2,
    'pf': [
        {'name': 'pf_1', **_FACTS, 'vf': [{'name': 'vf_1', **_FACTS}]},
        {'name': 'pf_2', **_FACTS, 'vf': [{'name': 'vf_2', **_FACTS}]},
    ],
}


@pytest.mark.parametrize('document', [_FLAT, _NESTED, _LIST_FORM, _SPECIFIED])
def test_build_deployables_returns_tree_for_each_form(document: Any) -> None:
    deployables = function_layout.build_deployables('host_card', json.dumps(document))
    tree = {
        deployable.name: [child.name for child in deployable.children]
        for deployable in deployables
    }
    assert tree == {
        'host_card_pf_1': ['host_card_vf_1'],
        'host_card_pf_2': ['host_card_vf_2'],
    }
    all_deployables = [child for root in deployables for child in root.walk()]
    assert all(
        deployable.resource_class is None and not deployable.handles
        for deployable in all_deployables
    )
    assert all_deployables[1].attributes == {
        'pci_offset': '0x10',
        'capability': 'ipsec',
        'kpi': '{"gbps": 10}',
    }


def test_parse_topology_single_physical_function_is_default_parent() -> None:
    functions = function_layout.parse_topology(
        json.dumps({'pf_1': {}, 'vf_1': {}, 'vf_7': {}})
    )
    assert [function.parent for function in functions] == [None, 'pf_1', 'pf_1']


@pytest.mark.parametrize('document', [{'slots': [1, 2]}, {'x': {'pf_1': {}}}])
def test_topology_in_vendor_form_is_ignored(document: Any) -> None:
    text = json.dumps(document)
    assert function_layout.list_topology_faults(text) == ()
    assert function_layout.build_deployables('host_card', text) == ()


@pytest.mark.parametrize(
    ('text', 'fault'),
    [
        ('', 'not JSON'),
        ('{', 'not JSON'),
        ('[]', 'not an object'),
        ('{"a": NaN}', 'not JSON'),
        ('{"a": ' + '9' * 10_000 + '}', 'not JSON'),
        ('{}', 'no physical function'),
        ('{"vf_1": {}}', 'no physical function'),
        ('{"pf_num": 1, "x": 2}', 'pf_num is 1, but 0'),
        ('[' * 10_000, 'nested more than'),
        ('{"a":' * 7 + '1' + '}' * 7, 'nested more than'),
        (' ' * 20_000, 'longer than'),
        ('{"pf_1": 5}', 'pf_1 is not an object'),
        ('{"pf": [5]}', 'pf does not list objects'),
        ('{"pf_num": 3, "pf_1": {}}', 'pf_num is 3, but 1 are described'),
        ('{"pf_1": {}, "pf1": {}}', 'describes pf_1 twice'),
        ('{"pf_1": {"pf_2": {}}}', 'pf_2 is inside pf_1'),
        ('{"pf_1": {"vf_1": {"vf_2": {}}}}', 'vf_2 is inside vf_1'),
        ('{"pf_1": {}, "vf_1": {"parent": "pf_9"}}', 'belongs to pf_9'),
        ('{"pf_1": {}, "pf_2": {}, "vf_3": {}}', 'belongs to pf_3'),
        ('{"pf_1": {"kpi": "' + 'x' * 300 + '"}}', 'kpi of pf_1 is too long'),
        ('{"pf_1": {"pci_offset": "1.0"}}', 'pci_offset of pf_1 is not a number'),
        ('{"pf_1": {"pci_offset": 256}}', 'from 0 to 255'),
        (json.dumps({f'pf_{n}': {} for n in range(65)}), 'more than 64 functions'),
    ],
)
def test_list_topology_faults_names_fault(text: str, fault: str) -> None:
    (message,) = function_layout.list_topology_faults(text)
    assert fault in message


_JSON = some.recursive(
    some.none() | some.booleans() | some.integers() | some.floats() | some.text(),
    lambda inner: (
        some.lists(inner, max_size=4)
        | some.dictionaries(
            some.sampled_from(
                ['pf', 'vf', 'pf_1', 'vf_1', 'pf_2', 'name', 'parent', 'x']
            ),
            inner,
            max_size=4,
        )
    ),
)


@given(_JSON)
def test_parse_topology_arbitrary_json_returns_or_reports_fault(document: Any) -> None:
    text = json.dumps(document)
    if function_layout.list_topology_faults(text):
        return
    functions = function_layout.parse_topology(text)
    names = {function.name for function in functions}
    assert len(names) == len(functions)
    assert all(
        function.parent in names for function in functions if function.name[0] == 'v'
    )


@pytest.mark.parametrize(
    ('offset', 'address'),
    [
        ('0', '0000:5e:00.0'),
        ('0x1', '0000:5e:00.1'),
        ('9', '0000:5e:01.1'),
        ('255', '0000:5e:1f.7'),
    ],
)
def test_find_function_address_adds_offset(offset: str, address: str) -> None:
    card = '0000:5e:00.3'
    assert (
        function_layout.find_function_address(card, {'pci_offset': offset}) == address
    )
    assert function_layout.find_function_address(card, {}) is None


def test_find_function_address_beyond_bus_returns_none() -> None:
    facts = {'pci_offset': '255'}
    assert function_layout.find_function_address('0000:5e:01.0', facts) is None
