# SPDX-License-Identifier: Apache-2.0
"""Hardware sets, and changes of the configuration of devices by their playbooks.

A hardware set is a pair of Ansible playbooks, one for teardown and one for set-up, that
the operator allows for some devices. A caller selects a set by its name and gives
values for the settings that the set declares. Ansible receives nothing else.
"""

import enum
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Any, Final

from cyborg_lite.errors.daemons import ConfigurationError
from cyborg_lite.errors.devices import InvalidSettings

SET_NAME: Final = re.compile(r'[a-z0-9][a-z0-9_.-]{0,63}')
SETTING_NAME: Final = re.compile(r'(?!ansible_)[a-z][a-z0-9_]{0,63}')
MAX_SETTINGS: Final = 32
DEFAULT_TIMEOUT: Final = 1800  # seconds of one playbook

# Ansible evaluates braces as a template, on the conductor.
_TEXT: Final = re.compile(r'[\w .,:;+=@%/-]{0,255}', re.ASCII)
# Text of a setting that declares neither `enum` nor `pattern`: no slash, so no path.
_PLAIN_TEXT: Final = re.compile(r'[\w .,:+-]{0,255}', re.ASCII)
# A group, a range or a file would extend the limit of a play to other hosts.
_TARGET: Final = re.compile(r'[\w][\w.:-]{0,254}', re.ASCII)
_HOST: Final = re.compile(r'[\w][\w.-]{0,254}', re.ASCII)

_PATTERNS: Final = {
    'type': 'array',
    'minItems': 1,
    'items': {'type': 'string', 'minLength': 1},
}
_PLAYBOOK: Final = {'type': 'string', 'pattern': r'^[A-Za-z0-9_][A-Za-z0-9_./-]*$'}
_FILE_SCHEMA: Final = {
    'type': 'object',
    'required': ['directory', 'inventory', 'sets'],
    'additionalProperties': False,
    'properties': {
        'directory': {'type': 'string', 'pattern': '^/'},
        'inventory': {'type': 'string', 'minLength': 1},
        'sets': {
            'type': 'object',
            'minProperties': 1,
            'propertyNames': {'pattern': f'^{SET_NAME.pattern}$'},
            'additionalProperties': {
                'type': 'object',
                'required': ['setup', 'teardown', 'devices'],
                'additionalProperties': False,
                'properties': {
                    'setup': _PLAYBOOK,
                    'teardown': _PLAYBOOK,
                    'devices': {
                        'type': 'object',
                        'minProperties': 1,
                        'additionalProperties': False,
                        'properties': dict.fromkeys(
                            ('type', 'vendor', 'model', 'driver', 'host'), _PATTERNS
                        ),
                    },
                    'scope': {'enum': ['host', 'device']},
                    'settings': {
                        'type': 'object',
                        'maxProperties': MAX_SETTINGS,
                        'propertyNames': {'pattern': f'^{SETTING_NAME.pattern}$'},
                        'additionalProperties': {
                            'type': 'object',
                            'required': ['type'],
                            'properties': {
                                'type': {
                                    'enum': ['string', 'integer', 'boolean', 'array']
                                }
                            },
                        },
                    },
                    'required': {'type': 'array', 'items': {'type': 'string'}},
                    'variables': {'type': 'object'},
                    'timeout': {'type': 'integer', 'minimum': 1, 'maximum': 86400},
                },
            },
        },
    },
}


class Phase(enum.StrEnum):
    """The playbook of a change that runs, or ran last."""

    TEARDOWN = 'teardown'
    SETUP = 'setup'


class ReconfigurationState(enum.StrEnum):
    """State of a change of the configuration of a device."""

    WAITING = 'waiting'
    RUNNING = 'running'
    SUCCEEDED = 'succeeded'
    FAILED = 'failed'


@dataclass(frozen=True, slots=True)
class DeviceFacts:
    """Values of a device by which hardware sets select it."""

    uuid: str
    hostname: str
    address: str  # PCI address of the managing function
    type: str
    vendor: str
    model: str
    driver: str

    def find_unsafe(self) -> str:
        """Return why Ansible must not receive the names of the device, or ''.

        The names come from the agent of the host. Ansible on the conductor would
        evaluate a template in them.
        """
        if not _HOST.fullmatch(self.hostname):
            return 'Ansible cannot address the name of the host.'
        if not _TARGET.fullmatch(self.address):
            return 'Ansible cannot receive the address of the device.'
        return ''


@dataclass(frozen=True, slots=True)
class HardwareSet:
    """Playbooks for some devices, and the settings that a caller may give."""

    name: str
    setup: str  # playbook: a path below the directory, or a name of a collection
    teardown: str
    devices: Mapping[str, tuple[str, ...]]  # patterns, by field of ``DeviceFacts``
    # False: the playbooks affect all devices of a host that the set selects.
    is_per_device: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict)  # JSON Schema, by name
    required: tuple[str, ...] = ()
    variables: Mapping[str, Any] = field(default_factory=dict)  # of the operator
    timeout: int = DEFAULT_TIMEOUT  # seconds of one playbook

    def selects(self, device: DeviceFacts) -> bool:
        """Check whether the set is for a device."""
        names = {'host': 'hostname'}
        return all(
            any(
                fnmatchcase(getattr(device, names.get(name, name)), pattern)
                for pattern in patterns
            )
            for name, patterns in self.devices.items()
        )

    def check_settings(self, values: Mapping[str, Any]) -> None:
        """Check that values are valid and safe.

        :raises InvalidSettings: they are not
        """
        schema = {
            'type': 'object',
            'additionalProperties': False,
            'required': list(self.required),
            'properties': dict(self.settings),
        }
        for violation in _list_violations(schema, values):
            raise InvalidSettings(name=self.name, reason=violation)
        for name, value in values.items():
            schema = self.settings[name]
            is_array = schema['type'] == 'array'
            schema = schema.get('items', schema) if is_array else schema
            allowed = _TEXT if {'enum', 'pattern'} & schema.keys() else _PLAIN_TEXT
            if not all(map(allowed.fullmatch, _list_texts(value))):
                reason = f'{name} has a character that is not allowed.'
                raise InvalidSettings(name=self.name, reason=reason)

    def to_view(self) -> 'SetView':
        """Return what a caller needs to select the set."""
        return SetView(self.name, dict(self.settings), self.required)


@dataclass(frozen=True, slots=True)
class SetView:
    """A hardware set as callers see it: no file or variable of the operator."""

    name: str
    settings: Mapping[str, Any]  # JSON Schema, by name
    required: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class HardwareSets:
    """The sets of a conductor, and where Ansible finds their files."""

    directory: str = ''  # absolute; ansible.cfg and relative playbooks are here
    inventory: str = ''  # a path, relative to the directory or absolute
    sets: tuple[HardwareSet, ...] = ()

    def find(self, name: str) -> HardwareSet | None:
        """Return the set of a name, or None."""
        return next((item for item in self.sets if item.name == name), None)

    def list_matching(self, device: DeviceFacts) -> tuple[HardwareSet, ...]:
        """Return the sets that are for a device."""
        return tuple(item for item in self.sets if item.selects(device))


@dataclass(frozen=True, slots=True)
class Reconfiguration:
    """A change of the configuration of a device, as it is stored."""

    uuid: str
    hardware_set: str
    settings: Mapping[str, Any]  # JSON values that the set declares
    state: ReconfigurationState
    actor: str
    created_at: datetime
    finished_at: datetime | None = None  # None: it has not ended
    phase: Phase | None = None  # None: no playbook has started
    tasks: int = 0  # number of tasks that have ended
    log: str = ''
    reason: str = ''  # why it failed or waits; empty: neither


@dataclass(frozen=True, slots=True)
class ConfigurationRequest:
    """The configuration that a caller requests for a device."""

    hardware_set: str
    settings: Mapping[str, Any]  # JSON values
    actor: str  # the caller


@dataclass(frozen=True, slots=True)
class DeviceConfiguration:
    """The hardware sets of a device, its changes, and what prevents a change."""

    device_uuid: str
    hostname: str
    sets: tuple[SetView, ...] = ()
    arqs: tuple[str, ...] = ()  # uuids of the ARQs that use an affected device
    changes: tuple[Reconfiguration, ...] = ()  # the latest first
    operation: str = ''  # uuid of the operation that the call has started; empty: none


def parse_hardware_sets(data: object) -> HardwareSets:
    """Return the sets in the content of a file of hardware sets.

    :raises ConfigurationError: the content is invalid
    """
    for violation in _list_violations(_FILE_SCHEMA, data):
        raise ConfigurationError(reason=f'Hardware sets: {violation}')
    assert isinstance(data, dict)  # by the schema
    sets = tuple(_parse_set(name, item) for name, item in data['sets'].items())
    return HardwareSets(data['directory'], data['inventory'], sets)


# Any: values that match the schema.
def _parse_set(name: str, item: Mapping[str, Any]) -> HardwareSet:
    settings = item.get('settings', {})
    for setting, schema in settings.items():
        error = _find_schema_error(schema)
        if error is not None:
            reason = f'Hardware set {name}, setting {setting}: {error}'
            raise ConfigurationError(reason=reason)
    for playbook in (item['setup'], item['teardown']):
        if '..' in playbook.split('/'):
            reason = f'Hardware set {name}: a playbook is outside of the directory.'
            raise ConfigurationError(reason=reason)
    overlap = sorted(settings.keys() & item.get('variables', {}).keys())
    if overlap:
        reason = f'Hardware set {name}: {overlap[0]} is a setting and a variable.'
        raise ConfigurationError(reason=reason)
    return HardwareSet(
        name,
        item['setup'],
        item['teardown'],
        {key: tuple(patterns) for key, patterns in item['devices'].items()},
        item.get('scope', 'host') == 'device',
        settings,
        tuple(item.get('required', ())),
        item.get('variables', {}),
        item.get('timeout', DEFAULT_TIMEOUT),
    )


# The import of jsonschema takes 3 MB, and most conductors have no hardware sets.


# Any: JSON.
def _list_violations(schema: Mapping[str, Any], value: Any) -> Iterator[str]:
    from jsonschema import Draft202012Validator

    for error in Draft202012Validator(schema).iter_errors(value):
        path = '.'.join(str(key) for key in error.absolute_path)
        yield f'{path or "top level"}: {error.message[:200]}.'


# Any: JSON.
def _find_schema_error(schema: Any) -> str | None:
    from jsonschema import Draft202012Validator, SchemaError

    try:
        Draft202012Validator.check_schema(schema)
    except SchemaError as error:
        return str(error.message)
    return None


def _list_texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _list_texts(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            yield str(key)
            yield from _list_texts(item)
