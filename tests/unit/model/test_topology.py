# SPDX-License-Identifier: Apache-2.0
"""The functions of an image are read in all their forms, and bombs defused."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from cyborg_lite.model import topology

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
_LISTED = {
    'pf_num': '2',
    'pf': [{'pf_1': _FACTS}, {'name': 'pf_2', **_FACTS}],
    'vf': {'vf_1': {**_FACTS, 'parent': 'pf_1'}, 'vf_2': {**_FACTS, 'parent': 'pf_2'}},
}
# As the specification of the metadata has it.
_DOCUMENTED = {
    'pf_num': 2,
    'vf_num': 2,
    'pf': [
        {'name': 'pf_1', **_FACTS, 'vf': [{'name': 'vf_1', **_FACTS}]},
        {'name': 'pf_2', **_FACTS, 'vf': [{'name': 'vf_2', **_FACTS}]},
    ],
}


@pytest.mark.parametrize('described', [_FLAT, _NESTED, _LISTED, _DOCUMENTED])
def test_the_functions_become_a_tree_below_the_root(described: Any) -> None:
    found = topology.parts('host_card', json.dumps(described))
    tree = {part.name: [below.name for below in part.parts] for part in found}
    assert tree == {
        'host_card_pf_1': ['host_card_vf_1'],
        'host_card_pf_2': ['host_card_vf_2'],
    }
    everything = [each for part in found for each in part.walk()]
    assert all(each.resource_class is None and not each.units for each in everything)
    assert everything[1].attributes == {
        'pci_offset': '0x10',
        'capability': 'ipsec',
        'kpi': '{"gbps": 10}',
    }


def test_virtual_functions_of_the_only_physical_one_need_not_say_so() -> None:
    found = topology.functions(json.dumps({'pf_1': {}, 'vf_1': {}, 'vf_7': {}}))
    assert [each.parent for each in found] == [None, 'pf_1', 'pf_1']


@pytest.mark.parametrize('described', [{'slots': [1, 2]}, {'x': {'pf_1': {}}}])
def test_the_form_of_a_driver_is_left_to_the_driver(described: Any) -> None:
    text = json.dumps(described)
    assert topology.faults(text) == ()
    assert topology.parts('host_card', text) == ()


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
        ('{"pf_1": {"pf_2": {}}}', 'pf_2 stands inside of pf_1'),
        ('{"pf_1": {"vf_1": {"vf_2": {}}}}', 'vf_2 stands inside of vf_1'),
        ('{"pf_1": {}, "vf_1": {"parent": "pf_9"}}', 'belongs to pf_9'),
        ('{"pf_1": {}, "pf_2": {}, "vf_3": {}}', 'belongs to pf_3'),
        ('{"pf_1": {"kpi": "' + 'x' * 300 + '"}}', 'kpi of pf_1 is too long'),
        (json.dumps({f'pf_{n}': {} for n in range(65)}), 'more than 64 functions'),
    ],
)
def test_what_cannot_be_a_topology_is_told_why(text: str, fault: str) -> None:
    (found,) = topology.faults(text)
    assert fault in found


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
def test_whatever_is_described_is_read_or_refused(described: Any) -> None:
    text = json.dumps(described)
    if topology.faults(text):
        return
    found = topology.functions(text)
    names = {each.name for each in found}
    assert len(names) == len(found)
    assert all(each.parent in names for each in found if each.name[0] == 'v')


@given(some.text(max_size=200))
def test_whatever_is_written_is_read_or_refused(text: str) -> None:
    if not topology.faults(text):
        topology.functions(text)


@given(some.integers(1, 20), some.integers(0, 20))
def test_as_many_deployables_come_of_it_as_functions(physical: int, more: int) -> None:
    described: dict[str, Any] = {f'pf_{n}': {} for n in range(1, physical + 1)}
    described |= {f'vf_{n}': {'parent': 'pf_1'} for n in range(1, more + 1)}
    found = topology.parts('root', json.dumps(described))
    assert sum(1 for part in found for _ in part.walk()) == physical + more
