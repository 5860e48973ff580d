# SPDX-License-Identifier: Apache-2.0
"""Commands on devices: status with a reason, cleaning runs and modes."""

import argparse
import json
from collections.abc import Mapping
from typing import Any, Final

from osc_lib import exceptions

from cyborg_lite.cli import waiting
from cyborg_lite.cli.columns import build_fields, build_rows
from cyborg_lite.cli.commands import ApiCommand, ListCommand, ShowCommand, Table
from cyborg_lite.cli.rest import AcceleratorApi, build_patch, quote_path

_UNIT_COLUMNS: Final = {
    'unit': 'Unit',
    'state': 'State',
    'policy': 'Policy',
    'reason': 'Reason',
}
_RECORD_COLUMNS: Final = {
    'uuid': 'UUID',
    'unit': 'Unit',
    'state': 'State',
    'actor': 'Actor',
    'progress': 'Steps',
    'started_at': 'Started At',
    'finished_at': 'Finished At',
    'reason': 'Reason',
}


def _add_device(parser: argparse.ArgumentParser) -> None:
    parser.add_argument('device', metavar='<device>', help='Uuid of the device')


def _build_path(uuid: str, *segments: str) -> str:
    return '/'.join(['/devices', quote_path(uuid), *segments])


# Any: JSON.
def _set_paths(api: AcceleratorApi, uuid: str, values: Mapping[str, Any]) -> Any:
    return api.call('PATCH', _build_path(uuid), body=build_patch(values))


class SetDevice(ShowCommand):
    """Disable a device with a reason, or enable it."""

    def _add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _add_device(parser)
        status = parser.add_mutually_exclusive_group(required=True)
        status.add_argument(
            '--enable',
            action='store_const',
            const='enabled',
            dest='status',
            help='Offer the device to new instances',
        )
        status.add_argument(
            '--disable',
            action='store_const',
            const='maintaining',
            dest='status',
            help='Keep the device from new instances',
        )
        parser.add_argument(
            '--reason', metavar='<text>', help='Why the device is disabled'
        )

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        values = {'status': parsed_args.status}
        if parsed_args.reason:
            values['reason'] = parsed_args.reason
        return build_fields(_set_paths(self.api, parsed_args.device, values))


# --- quarantines ---


class QuarantineDevice(ShowCommand):
    """Keep new instances from a device until it is cleared."""

    def _add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _add_device(parser)
        parser.add_argument(
            '--reason', metavar='<text>', required=True, help='Why nobody may get it'
        )
        parser.add_argument(
            '--force',
            metavar='<name>',
            default='',
            help='Who decides that the instances with the device keep it',
        )

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        value = {'reason': parsed_args.reason, 'name': parsed_args.force}
        values = {'quarantine': value}
        return build_fields(_set_paths(self.api, parsed_args.device, values))


class ClearDevice(ShowCommand):
    """End the quarantine of a device. The history of the device has the name."""

    def _add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _add_device(parser)
        parser.add_argument(
            '--name', metavar='<name>', required=True, help='Who has checked the device'
        )

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        values = {'quarantine': {'name': parsed_args.name}}
        return build_fields(_set_paths(self.api, parsed_args.device, values))


class ExportRecord(ApiCommand):
    """Print the record of a device as JSON: its facts, counters and history.

    A device with a serial number has the history of all its slots and hosts.
    """

    def _add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _add_device(parser)

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        path = _build_path(parsed_args.device)
        events = self.api.list_all(f'{path}/events', 'events', {})
        record = {'device': self.api.read(path), 'events': list(events)}
        self.app.stdout.write(f'{json.dumps(record, indent=2)}\n')


# --- cleaning runs ---


def _read_cleanings(api: AcceleratorApi, uuid: str) -> dict[str, Any]:
    return api.read(_build_path(uuid, 'cleanings'))


class ListCleans(ListCommand):
    """List the units of a device and their cleaning state, or its cleaning runs."""

    def _add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _add_device(parser)
        parser.add_argument(
            '--history',
            action='store_true',
            help='List the cleaning runs, the latest first',
        )

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        answer = _read_cleanings(self.api, parsed_args.device)
        if not parsed_args.history:
            return build_rows(_UNIT_COLUMNS, answer['units'])
        records = [
            {**record, 'progress': f'{len(record["steps"])}/{record["step_count"]}'}
            for record in answer['cleanings']
        ]
        return build_rows(_RECORD_COLUMNS, records)


class RetryClean(ListCommand):
    """Clean units of a device again, and list the units.

    The units are those whose cleaning run has failed, and those that were used and have
    the cleaning policy one-time.
    """

    def _add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _add_device(parser)
        parser.add_argument(
            '--unit', metavar='<unit>', help='Only this unit (default: all such units)'
        )
        waiting.add_wait_options(parser)

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        uuid, unit = parsed_args.device, parsed_args.unit
        self.api.call(
            'POST',
            _build_path(uuid, 'cleanings', 'retry'),
            body={'unit': unit} if unit else {},
        )
        self.wait(parsed_args)
        return build_rows(_UNIT_COLUMNS, _read_cleanings(self.api, uuid)['units'])


class ResetDevice(ListCommand):
    """Reset the free units of a device with proof, and list the units.

    The data of an NVMe drive is erased. No instance gets a unit until its cleaning run
    has succeeded.
    """

    def _add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _add_device(parser)
        parser.add_argument(
            '--unit', metavar='<unit>', help='Only this unit (default: all free units)'
        )
        parser.add_argument(
            '--force',
            metavar='<name>',
            help='Who decides to reset free units while instances have others',
        )
        waiting.add_wait_options(parser)

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        uuid = parsed_args.device
        values = {'unit': parsed_args.unit, 'force': parsed_args.force}
        body = {name: value for name, value in values.items() if value}
        self.api.call('POST', _build_path(uuid, 'reset'), body=body)
        self.wait(parsed_args)
        return build_rows(_UNIT_COLUMNS, _read_cleanings(self.api, uuid)['units'])


class AcceptClean(ApiCommand):
    """Declare units of a device clean. The service records the name.

    The units are those whose cleaning run has failed, and those that were used and have
    the cleaning policy one-time.
    """

    def _add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _add_device(parser)
        parser.add_argument(
            '--name', metavar='<name>', required=True, help='Who has checked the units'
        )
        parser.add_argument(
            '--unit', metavar='<unit>', help='Only this unit (default: all such units)'
        )

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        unit = {'unit': parsed_args.unit} if parsed_args.unit else {}
        self.api.call(
            'POST',
            _build_path(parsed_args.device, 'cleanings', 'accept'),
            body={'name': parsed_args.name, **unit},
        )


# --- modes ---


def _read_modes(api: AcceleratorApi, uuid: str) -> dict[str, Any]:
    return api.read(_build_path(uuid, 'modes'))


def _format_inventories(inventories: list[dict[str, Any]]) -> list[str]:
    return [f'{item["total"]} {item["resource_class"]}' for item in inventories]


class ListModes(ListCommand):
    """List the modes of a device, and what a change to each would do."""

    def _add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _add_device(parser)

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        answer = _read_modes(self.api, parsed_args.device)
        if answer['arqs']:
            arqs = ', '.join(answer['arqs'])
            self.progress_stream.write(f'No change is possible: in use by {arqs}\n')
        rows = [
            {
                **mode,
                'is_declared': mode['name'] == answer['declared'],
                'appears': _format_inventories(mode['appears']),
                'vanishes': _format_inventories(mode['vanishes']),
            }
            for mode in answer['modes']
        ]
        columns = {
            'name': 'Mode',
            'is_current': 'Current',
            'is_declared': 'Declared',
            'appears': 'Appears',
            'vanishes': 'Vanishes',
        }
        return build_rows(columns, rows)


class SetMode(ShowCommand):
    """Change the mode of a device that no ARQ uses."""

    def _add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _add_device(parser)
        parser.add_argument('mode', metavar='<mode>', help='Name of the mode')
        waiting.add_wait_options(parser)

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        """Start the change; with ``--wait`` return after its end."""
        uuid, mode = parsed_args.device, parsed_args.mode
        answer = _set_paths(self.api, uuid, {'mode': mode})
        self.wait(parsed_args)
        if parsed_args.wait:
            answer = _read_modes(self.api, uuid)
        names = ('device_uuid', 'current', 'declared', 'stored', 'change')
        return build_fields({name: answer[name] for name in names})


class ApplyModes(ListCommand):
    """Change the devices of a host to the modes that its agent declares.

    The list has the devices that do not have their declared mode.
    """

    def _add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument('host', metavar='<host>', help='Name of the host')
        parser.add_argument(
            '--dry-run', action='store_true', help='Only list the devices'
        )

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        """Start the changes that the service accepts."""
        query = {'hostname': parsed_args.host}
        rows = []
        for device in self.api.list_all('/devices', 'devices', query):
            modes = _read_modes(self.api, device['uuid'])
            current = [mode['name'] for mode in modes['modes'] if mode['is_current']]
            if modes['declared'] is None or modes['declared'] in current:
                continue
            result = None if parsed_args.dry_run else self._apply(modes)
            rows.append({**device, **modes, 'result': result})
        columns = {
            'device_uuid': 'Device',
            'model': 'Model',
            'current': 'Current',
            'declared': 'Declared',
            'arqs': 'Used By',
            'result': 'Result',
        }
        return build_rows(columns, rows)

    def _apply(self, modes: Mapping[str, Any]) -> str:
        """Start the change of a device; return the result as text."""
        values = {'mode': modes['declared']}
        try:
            _set_paths(self.api, modes['device_uuid'], values)
        except exceptions.CommandError as error:
            return str(error)
        return 'started'
