# SPDX-License-Identifier: Apache-2.0
"""Descriptions of the path and query arguments, for the API document.

The controllers list the arguments of each method. An argument has the same meaning in
all methods. Keys are those of an OpenAPI parameter object.
"""

from collections.abc import Mapping
from typing import Any, Final

from cyborg_lite.api.microversion import VERSIONS

LONGEST_PREFIX: Final = 255  # characters, as of a name

Parameter = Mapping[str, Any]  # JSON

_UUID: Final = {'type': 'string', 'format': 'uuid'}


def _text(description: str) -> Parameter:
    return {'description': description, 'schema': {'type': 'string'}}


def _switch(description: str) -> Parameter:
    return {'description': description, 'schema': {'type': 'boolean'}}


def _uuid(description: str) -> Parameter:
    return {'description': description, 'schema': _UUID}


def _time(description: str) -> Parameter:
    text = f'{description} A time in ISO 8601; without an offset it is UTC.'
    return {'description': text, 'schema': {'type': 'string'}}


IN_PATH: Final[Mapping[str, Parameter]] = {
    'uuid': _uuid('Lower or upper case, with or without hyphens.'),
    'same_uuid': _uuid('The same UUID as before.'),
    'device_profile': _text(
        'The uuid of a device profile or, since microversion 2.2, its name.'
    ),
    'name': _text('The name of a host, as its agent reports it.'),
}

IN_QUERY: Final[Mapping[str, Parameter]] = {
    # --- pages ---
    'limit': {
        'description': 'Maximum number of elements in the response. Since '
        'microversion 2.5 the service lowers it to its option [api] max_limit, 1000 '
        'unless configured, which is also the default.',
        'schema': {'type': 'integer', 'minimum': 1},
    },
    'marker': {
        'description': 'Return only elements after the element with this uuid. Since '
        'microversion 2.5 also the marker of a next link, which is valid after the '
        'element is deleted.',
        'schema': {
            'type': 'string',
            'pattern': '^[A-Za-z0-9_-]+$',
            'minLength': 1,
            'maxLength': 2048,
        },
    },
    'sort_key': _text('Field to sort by. Default: creation time, oldest first.'),
    'sort_dir': {
        'description': 'Sort direction.',
        'schema': {'enum': ['asc', 'desc'], 'default': 'asc'},
    },
    # --- the API document ---
    'microversion': {
        'description': 'Show only what this microversion supports.',
        'schema': {'enum': [str(version) for version in VERSIONS]},
    },
    # --- which elements ---
    'arqs': {
        'description': 'ARQ uuids, separated by commas.',
        'schema': {'type': 'array', 'items': _UUID},
        'style': 'form',
        'explode': False,
    },
    'binary': _text('Only daemons with this binary name.'),
    'bind_state': {
        'description': 'Only ARQs whose bind has ended: those in Bound, BindFailed, '
        'Deleting or Unknown. With the argument instance: all ARQs of the instance, '
        'or error 423 while a bind runs.',
        'schema': {'enum': ['resolved']},
    },
    'agent_state': _text('Only hosts whose agent has this state.'),
    'board': _text('Only bitstreams for this board.'),
    'bitstream_id': _text('Only deployables that are programmed with this image.'),
    'deployable': _uuid('Show for each bitstream whether this deployable accepts it.'),
    'deployable_id': {
        'description': 'Only attributes of this deployable; 0: all deployables.',
        'schema': {'type': 'integer', 'minimum': -(2**31), 'maximum': 2**31 - 1},
    },
    'device_id': {
        'description': 'Only deployables of this device.',
        'schema': {'type': 'integer', 'minimum': -(2**31), 'maximum': 2**31 - 1},
    },
    'device_uuid': _uuid('Only deployables of this device.'),
    'device_profile_name': _text('Only ARQs of this device profile.'),
    'device_rp_uuid': _text('Only ARQs that are bound to this resource provider.'),
    'drain': _switch(
        'First put all devices of the host into maintenance. It stays if ARQs or the '
        'agent prevent the removal.'
    ),
    'driver_name': _text('Only deployables that this driver discovered.'),
    'enabled': _switch(
        'Only device profiles that are enabled (true) or disabled (false).'
    ),
    'function': _text('Only bitstreams with this function name or uuid.'),
    'health': _text('Only devices with this health.'),
    'host': _text('Only daemons on this host.'),
    'end': _time('End of the period, which itself is not included. Default: now.'),
    'hostname': _text('Only objects on this host.'),
    'instance': _uuid('Only ARQs of this instance.'),
    'is_public': _switch(
        'Only device profiles that are public (true) or not public (false).'
    ),
    'key': _text('Only attributes with this key.'),
    'kind': _text('Only operations of this kind, for example bind or release.'),
    'model': _text('Only devices of this model.'),
    'name': _text(
        'Only objects with this name. For device profiles: names, comma-separated.'
    ),
    'name_prefix': {
        'description': 'Only objects whose name starts with this text, in upper and '
        'lower case as it is written. The characters % and _ stand for themselves.',
        'schema': {
            'type': 'string',
            'minLength': 1,
            'maxLength': LONGEST_PREFIX,
            'examples': ['gpu-'],
        },
    },
    'parent_uuid': _uuid('Only children of this deployable.'),
    'project_id': _text(
        'Only what belongs to this project. Default: all projects for an '
        'administrator, otherwise the project of the token.'
    ),
    'region': _text('Only bitstreams for this region.'),
    'root_uuid': _uuid('Only deployables in the tree of this root deployable.'),
    'rp_uuid': _text('Only the deployable of this resource provider.'),
    'start': _time('Start of the period. Default: 30 days before the end.'),
    'state': _text('Only objects in this state.'),
    'status': {
        **_text('Only devices with this status.'),
        'x-openstack': {'min-ver': '2.3'},
    },
    'subject': _text('Only operations on this object: a uuid, or the name of a host.'),
    'type': _text('Only devices of this type; a driver may report any type.'),
    'value': _text('Names or uuids, separated by commas.'),
    'vendor': _text('Only devices or bitstreams of this vendor.'),
    'wait': {
        'description': 'Seconds for which the response waits for the end of the '
        'operation.',
        'schema': {'type': 'integer', 'minimum': 0, 'maximum': 60},
    },
}
