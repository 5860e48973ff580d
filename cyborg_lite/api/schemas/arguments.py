# SPDX-License-Identifier: Apache-2.0
"""What the arguments of the API mean, by their names, for the API document.

Controllers say which arguments a method knows; an argument means the same wherever it
is known. Keys are those of a parameter of OpenAPI.
"""

from collections.abc import Mapping
from typing import Any, Final

from cyborg_lite.api.microversion import VERSIONS

Parameter = Mapping[str, Any]  # JSON

_UUID: Final = {'type': 'string', 'format': 'uuid'}


def _text(description: str) -> Parameter:
    return {'description': description, 'schema': {'type': 'string'}}


def _switch(description: str) -> Parameter:
    return {'description': description, 'schema': {'type': 'boolean'}}


def _uuid(description: str) -> Parameter:
    return {'description': description, 'schema': _UUID}


IN_PATH: Final[Mapping[str, Parameter]] = {
    'uuid': _uuid('In any case, with or without hyphens.'),
    'same_uuid': _uuid('The same as before.'),
    'device_profile': _text(
        'The uuid of a device profile or, from microversion 2.2 on, its name.'
    ),
}

IN_QUERY: Final[Mapping[str, Parameter]] = {
    # --- pages ---
    'limit': {
        'description': 'The most elements that the answer may have.',
        'schema': {'type': 'integer', 'minimum': 1},
    },
    'marker': _uuid('Only what comes after this element.'),
    'sort_key': _text('A field to sort by; without one, the oldest is the first.'),
    'sort_dir': {
        'description': 'The direction of the order.',
        'schema': {'enum': ['asc', 'desc'], 'default': 'asc'},
    },
    # --- the API document ---
    'microversion': {
        'description': 'Only what a client of this microversion meets.',
        'schema': {'enum': [str(version) for version in VERSIONS]},
    },
    # --- which elements ---
    'arqs': {
        'description': 'Accelerator requests, by uuid.',
        'schema': {'type': 'array', 'items': _UUID},
        'style': 'form',
        'explode': False,
    },
    'binary': _text('Only daemons of this kind.'),
    'bind_state': {
        'description': 'Only what is bound, or whose bind has failed; of an instance, '
        'either all of its accelerator requests or error 423.',
        'schema': {'enum': ['resolved']},
    },
    'board': _text('Only bitstreams for this board.'),
    'bitstream_id': _text('Only what was programmed with this image.'),
    'deployable': _uuid('Say of each bitstream whether this deployable takes it.'),
    'deployable_id': {
        'description': 'Only what belongs to this deployable; 0: to any.',
        'schema': {'type': 'integer', 'minimum': -(2**31), 'maximum': 2**31 - 1},
    },
    'device_id': {
        'description': 'Only parts of this device.',
        'schema': {'type': 'integer', 'minimum': -(2**31), 'maximum': 2**31 - 1},
    },
    'device_profile_name': _text('Only what was made from this device profile.'),
    'device_rp_uuid': _text('Only what is bound to this resource provider.'),
    'driver_name': _text('Only what this driver found.'),
    'enabled': _switch('Only what is enabled, or only what is not.'),
    'function': _text('Only bitstreams of this function, by its name or uuid.'),
    'health': _text('Only devices of this health.'),
    'host': _text('Only daemons on this host.'),
    'hostname': _text('Only what is on this host.'),
    'instance': _uuid('Only what belongs to this instance.'),
    'is_public': _switch('Only what all projects see, or only what they do not.'),
    'key': _text('Only attributes of this key.'),
    'model': _text('Only devices of this model.'),
    'name': _text('Only what has this name; device profiles: names, parted by commas.'),
    'parent_uuid': _uuid('Only parts of this deployable.'),
    'project_id': _text('Only what belongs to this project.'),
    'region': _text('Only bitstreams for this region.'),
    'root_uuid': _uuid('Only what is in the tree of this deployable.'),
    'rp_uuid': _text('Only what is this resource provider.'),
    'state': _text('Only what is in this state.'),
    'status': {
        **_text('Only devices of this status.'),
        'x-openstack': {'min-ver': '2.3'},
    },
    'type': _text('Only devices of this type.'),
    'value': _text('Names or uuids, parted by commas.'),
    'vendor': _text('Only devices or bitstreams of this vendor.'),
}
