# SPDX-License-Identifier: Apache-2.0
"""Commands that change devices by the playbooks of a hardware set."""

import argparse
import json
from collections.abc import Iterable
from typing import Any, Final

from osc_lib import exceptions

from cyborg_lite.cli import waiting
from cyborg_lite.cli.columns import build_fields, build_rows
from cyborg_lite.cli.commands import ListCommand, ShowCommand, Table
from cyborg_lite.cli.rest import AcceleratorApi, build_patch, quote_path

_COLUMNS: Final = {
    'name': 'Set',
    'required': 'Required Settings',
    'settings': 'Settings',
}
_CHANGE_COLUMNS: Final = {
    'uuid': 'UUID',
    'set': 'Set',
    'settings': 'Settings',
    'state': 'State',
    'actor': 'Actor',
    'created_at': 'Created At',
    'finished_at': 'Finished At',
    'reason': 'Reason',
    'log': 'Log',
}


def parse_setting(text: str) -> tuple[str, Any]:
    """Return the name and the value of a setting; a value that is no JSON is text.

    :raises ArgumentTypeError: the text is not ``<name>=<value>``
    """
    name, separator, value = text.partition('=')
    if not separator or not name:
        raise argparse.ArgumentTypeError(f'{text!r} is not <name>=<value>')
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


def _read(api: AcceleratorApi, uuid: str) -> dict[str, Any]:
    return api.read(f'/devices/{quote_path(uuid)}/configuration')


def _find_change(changes: Iterable[dict[str, Any]], uuid: str) -> dict[str, Any]:
    """Return a change of the device.

    :raises CommandError: the service does not list the change any more
    """
    for change in changes:
        if change['uuid'] == uuid:
            return change
    raise exceptions.CommandError(f'The change {uuid} is not listed any more.')


class ListHardwareSets(ListCommand):
    """List the hardware sets of a device with their settings, or its changes."""

    def _add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument('device', metavar='<device>', help='Uuid of the device')
        parser.add_argument(
            '--history',
            action='store_true',
            help='List the changes with their logs, the latest first',
        )

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        configuration = _read(self.api, parsed_args.device)
        if parsed_args.history:
            return build_rows(_CHANGE_COLUMNS, configuration['changes'])
        if configuration['arqs']:
            arqs = ', '.join(configuration['arqs'])
            self.progress_stream.write(f'No change is possible: in use by {arqs}\n')
        return build_rows(_COLUMNS, configuration['sets'])


class ReconfigureDevice(ShowCommand):
    """Change a device that no ARQ uses by the playbooks of a hardware set."""

    def _add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument('device', metavar='<device>', help='Uuid of the device')
        parser.add_argument('set', metavar='<set>', help='Name of the hardware set')
        parser.add_argument(
            '--setting',
            metavar='<name>=<value>',
            type=parse_setting,
            action='append',
            default=[],
            help='Value of a setting, as JSON or text; repeat the option for several',
        )
        waiting.add_wait_options(parser)

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        """Start the change and show it; with ``--wait`` after its end."""
        uuid = parsed_args.device
        value = {'set': parsed_args.set, 'settings': dict(parsed_args.setting)}
        patch = build_patch({'configuration': value})
        path = f'/devices/{quote_path(uuid)}'
        answer = self.api.call('PATCH', path, body=patch)
        change = answer['changes'][0]  # the latest is the first
        self.wait(parsed_args)
        if parsed_args.wait:
            change = _find_change(_read(self.api, uuid)['changes'], change['uuid'])
        return build_fields(change)
