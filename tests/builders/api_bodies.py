# SPDX-License-Identifier: Apache-2.0
"""Hooks of schemathesis that generate valid bodies beside its own.

The schema does not say which groups a device profile may have or which ARQs exist.
Without these bodies hardly any request would pass the first checks.
The command line of schemathesis loads it: see ``tests/functional/test_openapi.py``.
"""

import os
from typing import Any, Final

import schemathesis
from hypothesis import strategies as st

PROVIDER: Final = 'CYBORG_LITE_TEST_PROVIDER'
"""Uuid of a resource provider of FPGAs, from the environment."""

HOST: Final = 'CYBORG_LITE_TEST_HOST'
"""Name of its compute node, from the environment."""

NAMES: Final = [f'profile-{number}' for number in range(4)]

_GROUPS: Final = st.lists(
    st.sampled_from(
        [
            {'resources:FPGA': '1'},
            {'resources:FPGA': 2, 'trait:CUSTOM_FAKE_DEVICE': 'required'},
            {'resources:CUSTOM_NONE': '1', 'accel:attach_target': 'none'},
        ]
    ),
    min_size=1,
    max_size=2,
)
_PROFILE: Final = st.fixed_dictionaries(
    {'name': st.sampled_from(NAMES), 'groups': _GROUPS},
    optional={
        'description': st.text(max_size=9),
        'enabled': st.booleans(),
        'is_public': st.booleans(),
    },
)
_INSTANCES: Final = [f'e6463ae6-ef41-41b7-b171-95f3754f140{digit}' for digit in '0123']
_IMAGE: Final = [{'image_uuid': 'd5ca2f11-3108-4426-a11c-a959987565df'}]


def _build_replacement(
    path: str, values: st.SearchStrategy[Any]
) -> st.SearchStrategy[Any]:
    operation = {'op': st.just('replace'), 'path': st.just(path), 'value': values}
    return st.fixed_dictionaries(operation).map(lambda operation: [operation])


_STATUS: Final = _build_replacement(
    '/status', st.sampled_from(['enabled', 'maintaining'])
)
_ATTRIBUTE: Final = st.fixed_dictionaries(
    {
        'deployable_id': st.integers(1, 2),
        'key': st.sampled_from(['rack', 'row']),
        'value': st.text(min_size=1, max_size=9),
    }
)
_BODIES: Final[dict[str, st.SearchStrategy[Any]]] = {
    'POST /v2/device_profiles': st.lists(_PROFILE, min_size=1, max_size=2),
    'PATCH /v2/device_profiles/{device_profile}': st.one_of(
        _build_replacement('/enabled', st.booleans()),
        _build_replacement('/is_public', st.booleans()),
        _build_replacement('/name', st.sampled_from(NAMES)),
        _build_replacement('/groups', _GROUPS),
    ),
    'POST /v2/accelerator_requests': st.sampled_from(NAMES).map(
        lambda name: {'device_profile_name': name}
    ),
    'PATCH /v2/devices/{uuid}': _STATUS,
    'PATCH /v2/deployables/{uuid}/program': _build_replacement(
        '/program', st.just(_IMAGE)
    ),
    'POST /v2/attributes': _ATTRIBUTE,
}


@schemathesis.hook
def before_generate_body(
    context: schemathesis.HookContext, strategy: st.SearchStrategy[Any]
) -> st.SearchStrategy[Any]:
    """Return a generated or a valid body."""
    label = getattr(context.operation, 'label', '')
    return st.one_of(strategy, _BODIES[label]) if label in _BODIES else strategy


@schemathesis.hook
def map_case(context: schemathesis.HookContext, case: Any) -> Any:
    """Give a patch of one ARQ the uuid that its path has."""
    label = 'PATCH /v2/accelerator_requests/{uuid}'
    if getattr(context.operation, 'label', '') == label and case.path_parameters:
        uuid = str(case.path_parameters['uuid'])
        case.body = {uuid: _binding(len(repr(case.body)))}
    return case


def _binding(choice: int) -> list[dict[str, str]]:
    """Return a bind to one of few instances, or an unbind."""
    values = {
        '/hostname': os.environ[HOST],
        '/device_rp_uuid': os.environ[PROVIDER],
        '/instance_uuid': _INSTANCES[choice % len(_INSTANCES)],
    }
    operation = 'add' if choice % 3 else 'remove'
    return [
        {'op': operation, 'path': path, 'value': value}
        for path, value in values.items()
    ]
