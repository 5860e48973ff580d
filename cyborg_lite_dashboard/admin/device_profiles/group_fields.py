# SPDX-License-Identifier: Apache-2.0
"""Input of the form for the groups that a device profile has."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from cyborg_lite.model.profiles.selectors import list_computed_traits
from cyborg_lite_dashboard.admin.device_profiles.forms import MAX_GROUPS, GroupForm

_RESOURCES: Final = 'resources:'
_TRAIT: Final = 'trait:'
_FIELDS: Final = {'accel:selector': 'selector', 'accel:attach_target': 'attach_target'}
_ATTACH_TARGETS: Final = ('host', 'none')


# Any, here and below: JSON.
def remove_computed(group: Mapping[str, Any]) -> dict[str, Any]:
    """Return the group without the trait of its selector.

    The service computes the trait again.
    """
    computed = list_computed_traits(group)
    return {key: value for key, value in group.items() if key not in computed}


def build_inputs(groups: Iterable[Mapping[str, Any]]) -> list[dict[str, str]] | None:
    """Return the input of the form that results in the groups.

    :returns: None: the form cannot express a group, for example one with alternatives
    """
    inputs = []
    for group in map(remove_computed, groups):
        fields = _build_input(group)
        form = GroupForm(fields)
        if not form.is_valid() or form.build_group() != group:
            return None
        inputs.append(fields)
    return inputs if len(inputs) <= MAX_GROUPS else None


def _build_input(group: Mapping[str, Any]) -> dict[str, str]:
    fields, lines = {}, []
    for key, value in group.items():
        if key.startswith(_RESOURCES):
            fields['resource_class'] = key.removeprefix(_RESOURCES)
            fields['quantity'] = str(value)
        elif key in _FIELDS and (key, value) not in _list_special(group):
            fields[_FIELDS[key]] = str(value)
        elif not key.startswith(_TRAIT):
            lines.append(f'{key}={value}')
    for word in ('required', 'forbidden'):
        fields[f'{word}_traits'] = ' '.join(
            key.removeprefix(_TRAIT)
            for key, value in group.items()
            if key.startswith(_TRAIT) and value == word
        )
    return {**fields, 'properties': '\n'.join(lines)}


def _list_special(group: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """Return the attach target, if the list of the form has no such element."""
    key = 'accel:attach_target'
    return [] if group.get(key) in _ATTACH_TARGETS else [(key, group.get(key))]
