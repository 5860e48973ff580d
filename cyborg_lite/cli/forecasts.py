# SPDX-License-Identifier: Apache-2.0
"""Command ``openstack accelerator profile forecast``: effects of a change of hardware.

The change is not made.
"""

import argparse
from collections.abc import Mapping
from typing import Any, Final

from osc_lib import exceptions

from cyborg_lite.cli.columns import Lines
from cyborg_lite.cli.commands import ListCommand, Table
from cyborg_lite.cli.profiles import parse_group

_VERSION: Final = '2.26'
_BOOLEANS: Final = {'true': True, 'false': False}


def parse_mode(text: str) -> dict[str, str]:
    """Return the change of the mode of a device.

    :raises ArgumentTypeError: the text is not ``<device>=<mode>``
    """
    device, separator, mode = text.partition('=')
    if not separator or not device or not mode:
        raise argparse.ArgumentTypeError(f'{text!r} is not <device>=<mode>')
    return {'device': device, 'mode': mode}


def parse_device(text: str) -> dict[str, Any]:
    """Return new devices of ``key=value`` pairs that are separated by commas.

    :raises ArgumentTypeError: a key is unknown, or a number is malformed
    """
    change: dict[str, Any] = {}
    for key, value in parse_group(text).items():
        prefix, _, name = key.partition(':')
        if key == 'host':
            change['hostname'] = value
        elif key == 'count':
            change['count'] = _parse_number(key, value)
        elif key == 'type':
            change['attach_handle_type'] = value
        elif prefix == 'resources' and name:
            change.setdefault('resources', {})[name] = _parse_number(key, value)
        elif prefix == 'trait' and name:
            change.setdefault('traits', []).append(name)
        elif prefix == 'attribute' and name:
            change.setdefault('attributes', {})[name] = _parse_value(value)
        else:
            raise argparse.ArgumentTypeError(f'{key} is not a key of new devices')
    return change


def _parse_number(key: str, text: str) -> int:
    if not (text.isascii() and text.isdecimal()):
        raise argparse.ArgumentTypeError(f'{key}: {text!r} is not a number')
    return int(text)


def _parse_value(text: str) -> int | str | bool:
    if text in _BOOLEANS:
        return _BOOLEANS[text]
    digits = text.removeprefix('-')
    return int(text) if digits.isascii() and digits.isdecimal() else text


class ForecastProfiles(ListCommand):
    """Show which device profiles gain or lose capacity with a change of hardware.

    The change is not made.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            '--remove',
            metavar='<device>',
            action='append',
            default=[],
            help='Uuid of a device that is removed; repeat the option for several',
        )
        parser.add_argument(
            '--mode',
            metavar='<device>=<mode>',
            type=parse_mode,
            action='append',
            default=[],
            help='Uuid of a device, and the mode that it gets',
        )
        parser.add_argument(
            '--add',
            metavar='<key>=<value>[,...]',
            type=parse_device,
            action='append',
            default=[],
            help='New devices with the keys host, resources:<class>, trait:<name>, '
            'attribute:<name>, type (PCI or MDEV) and count; trait:<name> has the '
            'value required',
        )
        parser.add_argument(
            '--profile',
            metavar='<profile>',
            action='append',
            dest='profiles',
            help='Name or uuid of a device profile; default: all',
        )
        parser.add_argument(
            '--group',
            metavar='<key>=<value>[,...]',
            type=parse_group,
            action='append',
            dest='groups',
            help='Group of a device profile that does not exist; repeat the option '
            'for several groups of it',
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        """Show one row per profile; print warnings on standard error."""
        removals = [{'device': uuid, 'remove': True} for uuid in parsed_args.remove]
        body: dict[str, Any] = {
            'changes': [*removals, *parsed_args.mode, *parsed_args.add]
        }
        if parsed_args.profiles:
            body['profiles'] = parsed_args.profiles
        if parsed_args.groups:
            body['groups'] = parsed_args.groups
        if not body['changes'] and not parsed_args.groups:
            raise exceptions.CommandError(
                'Nothing to forecast: use --remove, --mode, --add or --group.'
            )
        path = '/device_profiles/explain'
        answer = self.api.call('POST', path, _VERSION, body=body)
        for change in answer['changes']:
            for text in change['warnings']:
                self.progress_stream.write(f'{change["hostname"]}: {text}\n')
        rows = [_format_row(profile) for profile in answer['device_profiles']]
        return ('Profile', 'Result', 'Before', 'After', 'Hosts', 'Reasons'), rows


def _format_row(profile: Mapping[str, Any]) -> tuple[Any, ...]:
    before, after = profile['before'], profile['after']
    return (
        profile['device_profile_name'] or '(new)',
        profile['result'],
        _format_number(before),
        'unknown' if after is None else _format_number(after),
        Lines(_format_hosts(before, after)),
        Lines(profile['reasons']),
    )


def _format_number(capacity: Mapping[str, Any]) -> str:
    servers = capacity['servers']
    return f'{servers}' if capacity['is_exact'] else f'at least {servers}'


def _format_hosts(
    before: Mapping[str, Any], after: Mapping[str, Any] | None
) -> list[str]:
    """Return a line for each host with its numbers before and after."""
    if after is None:
        return []
    numbers = {host['hostname']: host['servers'] for host in before['hosts']}
    return [
        f'{host["hostname"]}: {numbers.get(host["hostname"], 0)} to {host["servers"]}'
        for host in after['hosts']
    ]
