# SPDX-License-Identifier: Apache-2.0
"""Tests of the form of a device profile."""

from typing import Any

import pytest

from cyborg_lite_dashboard.admin.device_profiles import forms


def build_data(*groups: dict[str, str]) -> dict[str, str]:
    """Return the fields of a request with these groups."""
    count = str(len(groups))
    data = {'form-TOTAL_FORMS': count, 'form-INITIAL_FORMS': '0'}
    for number, group in enumerate(groups):
        data |= {f'form-{number}-{name}': text for name, text in group.items()}
    return data


def build_group(**fields: str) -> dict[str, str]:
    """Return the group that a form builds."""
    form = forms.GroupForm({'resource_class': 'PGPU', 'quantity': '1', **fields})
    assert form.is_valid(), form.errors
    return form.build_group()


def test_group_has_only_keys_with_values() -> None:
    assert build_group(quantity='2') == {'resources:PGPU': '2'}


def test_group_has_traits_selector_and_properties() -> None:
    group = build_group(
        required_traits='CUSTOM_A, CUSTOM_B',
        forbidden_traits=' CUSTOM_C ',
        selector=' device.memory_mib >= 40GiB ',
        attach_target='host',
        properties='accel:function_id=x\n\n accel:cleaning = never ',
    )
    assert group == {
        'resources:PGPU': '1',
        'trait:CUSTOM_A': 'required',
        'trait:CUSTOM_B': 'required',
        'trait:CUSTOM_C': 'forbidden',
        'accel:selector': 'device.memory_mib >= 40GiB',
        'accel:attach_target': 'host',
        'accel:function_id': 'x',
        'accel:cleaning': 'never',
    }


@pytest.mark.parametrize(
    ('field', 'text'),
    [
        ('resource_class', 'VCPU'),
        ('resource_class', 'PGPU\n'),
        ('resource_class', ''),
        ('quantity', '0'),
        ('quantity', 'x'),
        ('attach_target', 'guest'),
        ('properties', 'function_id=x'),
        ('properties', 'accel:function_id'),
        ('properties', 'accel:a=1\naccel:a=2'),
    ],
)
def test_invalid_field_of_group_is_refused(field: str, text: str) -> None:
    data = {'resource_class': 'PGPU', 'quantity': '1', field: text}
    # Django strips white space around the text, so a line feed needs a word after it.
    if text.endswith('\n'):
        data[field] += 'x'
    form = forms.GroupForm(data)
    assert not form.is_valid()
    assert set(form.errors) == {field}


@pytest.mark.parametrize('name', ['', 'a b', 'a/b', 'ä'])
def test_invalid_name_of_profile_is_refused(name: str) -> None:
    assert not forms.ProfileForm({'name': name}).is_valid()


def test_form_set_without_groups_is_invalid() -> None:
    assert not forms.GroupFormSet(build_data()).is_valid()


def test_form_set_refuses_too_many_groups() -> None:
    group = {'resource_class': 'PGPU', 'quantity': '1'}
    groups = [group] * (forms.MAX_GROUPS + 1)
    assert not forms.GroupFormSet(build_data(*groups)).is_valid()


def test_profile_has_groups_in_order() -> None:
    form = forms.ProfileForm({'name': 'pair', 'description': ''})
    groups: Any = forms.GroupFormSet(
        build_data(
            {'resource_class': 'PGPU', 'quantity': '1'},
            {'resource_class': 'FPGA', 'quantity': '2'},
        )
    )
    assert form.is_valid()
    assert groups.is_valid()
    assert forms.build_profile(form, groups) == {
        'name': 'pair',
        'groups': [{'resources:PGPU': '1'}, {'resources:FPGA': '2'}],
    }


def test_groups_are_read_as_typed() -> None:
    data = build_data({'resource_class': '<b>', 'quantity': 'x'})
    [group] = forms.read_groups(data, 1)
    assert (group['resource_class'], group['quantity']) == ('<b>', 'x')
    assert group['selector'] == ''


def build_edit_form(**fields: str) -> forms.EditForm:
    form = forms.EditForm({'name': 'gpu', 'generation': '3', **fields})
    assert form.is_valid(), form.errors
    return form


def test_changes_are_values_that_differ() -> None:
    groups = [{'resources:PGPU': '1'}]
    profile = {'name': 'gpu', 'description': None, 'enabled': True, 'groups': groups}
    unchanged = build_edit_form(enabled='on')
    assert forms.build_changes(profile, unchanged, groups) == {}
    assert forms.build_changes(profile, unchanged, None) == {}
    form = build_edit_form(description='x')
    assert forms.build_changes(profile, form, [{'resources:PGPU': '2'}]) == {
        'description': 'x',
        'enabled': False,
        'groups': [{'resources:PGPU': '2'}],
    }
    described = {**profile, 'description': 'x'}
    assert forms.build_changes(described, unchanged, None) == {'description': None}


@pytest.mark.parametrize('generation', ['', 'x', '-1'])
def test_edit_form_needs_generation(generation: str) -> None:
    assert not forms.EditForm({'name': 'gpu', 'generation': generation}).is_valid()
