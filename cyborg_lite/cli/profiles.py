# SPDX-License-Identifier: Apache-2.0
"""Commands ``openstack accelerator profile ...``: change, explain and share profiles.

``openstack accelerator device profile ...`` of python-cyborgclient creates, lists,
shows and deletes device profiles as of microversion 2.0.
"""

import argparse
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from osc_lib import exceptions

from cyborg_lite.cli.columns import Groups, Lines, build_fields, build_rows
from cyborg_lite.cli.commands import ApiCommand, ListCommand, ShowCommand, Table
from cyborg_lite.cli.rest import AcceleratorApi, build_patch, quote_path

_COLUMNS: Final = {
    'name': 'Name',
    'enabled': 'Enabled',
    'is_public': 'Public',
    'groups': 'Groups',
}
_LONG_COLUMNS: Final = {
    'uuid': 'UUID',
    **_COLUMNS,
    'description': 'Description',
    'generation': 'Generation',
    'created_at': 'Created At',
    'updated_at': 'Updated At',
}
_WARNING_COLUMNS: Final = {
    'code': 'Code',
    'text': 'Warning',
    'group': 'Group',
    'providers': 'Providers',
}
_LONGEST_GENERATION: Final = 10  # digits
_PROFILE_HELP: Final = 'Name or uuid of the device profile'


def _add_profile(parser: argparse.ArgumentParser) -> None:
    parser.add_argument('profile', metavar='<profile>', help=_PROFILE_HELP)


def _build_path(profile: str) -> str:
    return f'/device_profiles/{quote_path(profile)}'


def _add_generation(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        '--generation',
        metavar='<number>',
        type=parse_generation,
        help='Change the profile only if it has this generation, which earlier output '
        'of the profile contains. Default: the generation at the start of the command',
    )


def parse_generation(text: str) -> int:
    """Return a generation.

    :raises ArgumentTypeError: the text is no number of at most 10 digits
    """
    if not (text.isascii() and text.isdecimal() and len(text) <= _LONGEST_GENERATION):
        raise argparse.ArgumentTypeError(f'{text!r} is no generation')
    return int(text)


def _read_profile(api: AcceleratorApi, profile: str) -> dict[str, Any]:
    answer = api.call('GET', _build_path(profile))
    stored: dict[str, Any] = answer['device_profile']
    return stored


def _replace_values(
    api: AcceleratorApi,
    stored: Mapping[str, Any],
    values: Mapping[str, Any],
    generation: int | None,
) -> dict[str, Any]:
    """Change a profile, unless another client has changed it meanwhile.

    :param stored: the profile as it was read, from which the values may result
    :param generation: that the user requires; None: that of the profile as read
    :raises CommandError: the profile has another generation
    """
    expected = stored['generation'] if generation is None else generation
    path = _build_path(stored['uuid'])
    answer = api.call('PATCH', path, body=build_patch(values), generation=expected)
    changed: dict[str, Any] = answer['device_profile']
    return changed


def _show_profile(profile: Mapping[str, Any]) -> Table:
    return build_fields(profile, {'groups': Groups})


def parse_group(text: str) -> dict[str, str]:
    """Return a group of ``key=value`` pairs that are separated by commas.

    :raises ArgumentTypeError: a pair has no equals sign, or a key is repeated
    """
    group: dict[str, str] = {}
    for pair in text.split(','):
        key, separator, value = (word.strip() for word in pair.partition('='))
        if not separator or not key:
            raise argparse.ArgumentTypeError(f'{pair!r} is not <key>=<value>')
        if key in group:
            raise argparse.ArgumentTypeError(f'{key} is repeated')
        group[key] = value
    return group


def parse_group_key(text: str) -> tuple[int, str]:
    """Return the number of a group and a key in it.

    :raises ArgumentTypeError: the text is not ``<number>:<key>``
    """
    number, _, key = text.partition(':')
    if not number.isdecimal() or not key:
        raise argparse.ArgumentTypeError(f'{text!r} is not <number>:<key>')
    return int(number), key


def _read_options(options: argparse.Namespace, *names: str) -> dict[str, Any]:
    """Return the options that the user has set, by name."""
    values = {name: getattr(options, name) for name in names}
    return {name: value for name, value in values.items() if value is not None}


def _add_groups(parser: argparse.ArgumentParser, text: str, *, required: bool) -> None:
    parser.add_argument(
        '--group',
        metavar='<key>=<value>[,...]',
        type=parse_group,
        action='append',
        dest='groups',
        required=required,
        help=f'Group of requirements; repeat the option for several groups{text}',
    )


class ListProfiles(ListCommand):
    """List device profiles."""

    def _add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            '--name-prefix',
            metavar='<text>',
            help='Only profiles whose name starts with this text',
        )
        _add_switch(
            parser,
            'enabled',
            ('--enabled', 'Only profiles that new ARQs may use'),
            ('--disabled', 'Only profiles that refuse new ARQs'),
        )
        _add_switch(
            parser,
            'is_public',
            ('--public', 'Only profiles that all projects may use'),
            ('--private', 'Only profiles with an access list'),
        )
        parser.add_argument(
            '--long', action='store_true', help='Show more columns, such as the uuid'
        )

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        query = {
            'name_prefix': parsed_args.name_prefix,
            'enabled': parsed_args.enabled,
            'is_public': parsed_args.is_public,
            'sort_key': 'name',
        }
        profiles = self.api.list_all('/device_profiles', 'device_profiles', query)
        columns = _LONG_COLUMNS if parsed_args.long else _COLUMNS
        rows = ({**item, 'groups': Groups(item['groups'])} for item in profiles)
        return build_rows(columns, rows)


def _add_switch(
    parser: argparse.ArgumentParser,
    name: str,
    positive: tuple[str, str],
    negative: tuple[str, str],
    values: tuple[object, object] = ('true', 'false'),
) -> None:
    """Add two options that exclude each other, for the values of a boolean field.

    :param positive: name and help of the option for true
    :param negative: name and help of the option for false
    """
    group = parser.add_mutually_exclusive_group()
    for value, (option, text) in zip(values, (positive, negative), strict=True):
        group.add_argument(
            option, action='store_const', const=value, dest=name, help=text
        )


class ShowProfile(ShowCommand):
    """Show a device profile."""

    def _add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _add_profile(parser)

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        return _show_profile(_read_profile(self.api, parsed_args.profile))


class CreateProfile(ShowCommand):
    """Create a device profile."""

    def _add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument('name', metavar='<name>', help='Name')
        parser.add_argument('--description', metavar='<text>', help='Description')
        _add_groups(parser, '', required=True)

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        """Create the profile; print on standard error what no host can serve."""
        values = _read_options(parsed_args, 'name', 'description', 'groups')
        created = self.api.call('POST', '/device_profiles', body=[values])
        try:
            path = f'{_build_path(created["uuid"])}/explain'
            warnings = self.api.call('POST', path)['warnings']
            notes = [f'Warning: {warning["text"]}' for warning in warnings]
        except exceptions.CommandError as error:  # the profile is created
            notes = [f'The profile is not checked: {error}']
        for text in notes:
            self.progress_stream.write(f'{text}\n')
        return _show_profile(created)


class SetProfile(ShowCommand):
    """Change a device profile. ARQs that exist keep the profile that they had."""

    def _add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _add_profile(parser)
        _add_generation(parser)
        parser.add_argument('--name', metavar='<name>', help='New name')
        parser.add_argument('--description', metavar='<text>', help='New description')
        _add_groups(parser, ', which replace all present groups', required=False)
        _add_switch(
            parser,
            'is_public',
            ('--public', 'All projects may use the profile'),
            ('--private', 'Only the projects of the access list may use the profile'),
            (True, False),
        )

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        values = _read_options(
            parsed_args, 'name', 'description', 'groups', 'is_public'
        )
        if not values:
            raise exceptions.CommandError('Nothing to change: use an option.')
        stored = _read_profile(self.api, parsed_args.profile)
        changed = _replace_values(self.api, stored, values, parsed_args.generation)
        return _show_profile(changed)


class UnsetProfile(ShowCommand):
    """Remove the description or keys of groups from a device profile."""

    def _add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _add_profile(parser)
        _add_generation(parser)
        parser.add_argument(
            '--description', action='store_true', help='Remove the description'
        )
        parser.add_argument(
            '--group-key',
            metavar='<number>:<key>',
            type=parse_group_key,
            action='append',
            default=[],
            help='Remove a key from a group; the first group has the number 0; '
            'repeat the option for several keys',
        )

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        values: dict[str, Any] = (
            {'description': None} if parsed_args.description else {}
        )
        if not values and not parsed_args.group_key:
            raise exceptions.CommandError(
                'Nothing to remove: use --description or --group-key.'
            )
        stored = _read_profile(self.api, parsed_args.profile)
        if parsed_args.group_key:
            values['groups'] = _remove_keys(stored['groups'], parsed_args.group_key)
        changed = _replace_values(self.api, stored, values, parsed_args.generation)
        return _show_profile(changed)


def _remove_keys(
    groups: Iterable[Mapping[str, Any]], keys: Iterable[tuple[int, str]]
) -> list[dict[str, Any]]:
    """Return the groups without the keys.

    :raises CommandError: a group has no such key
    """
    remaining = [dict(group) for group in groups]
    for number, key in keys:
        if number >= len(remaining) or remaining[number].pop(key, None) is None:
            raise exceptions.CommandError(f'Group {number} has no key {key}.')
    return remaining


class _SwitchProfiles(ApiCommand):
    """Base of the commands that enable and disable profiles."""

    is_enabled: bool

    def _add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            'profiles', metavar='<profile>', nargs='+', help=_PROFILE_HELP
        )

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Change the profiles in their order; stop at the first error."""
        patch = build_patch({'enabled': self.is_enabled})
        for profile in parsed_args.profiles:
            self.api.call('PATCH', _build_path(profile), body=patch)


class EnableProfiles(_SwitchProfiles):
    """Permit new ARQs of device profiles."""

    is_enabled = True


class DisableProfiles(_SwitchProfiles):
    """Refuse new ARQs of device profiles. Present ARQs are not affected."""

    is_enabled = False


class _HostList(ListCommand):
    """Base of the commands that print one row per host for a device profile."""

    def _add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _add_profile(parser)
        parser.add_argument('--host', metavar='<host>', help='Only this host')


class ExplainProfile(_HostList):
    """Show on which hosts a device profile fits, and why it does not fit on others."""

    def _add_arguments(self, parser: argparse.ArgumentParser) -> None:
        super()._add_arguments(parser)
        parser.add_argument(
            '--warnings',
            action='store_true',
            help='List the warnings about the profile in place of the hosts',
        )

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        """Show one row per host or warning; print the summary on standard error."""
        answer = self.api.call(
            'POST',
            f'{_build_path(parsed_args.profile)}/explain',
            query={'hostname': parsed_args.host},
        )
        self.progress_stream.write(f'{answer["summary"]}\n')
        if parsed_args.warnings:
            return build_rows(_WARNING_COLUMNS, answer['warnings'])
        for text in _list_notes(answer):
            self.progress_stream.write(f'{text}\n')
        rows = [
            (host['hostname'], host['fits'], Lines(_list_reasons(host)))
            for host in answer['hosts']
        ]
        return ('Host', 'Fits', 'Reasons'), rows


class CountServers(_HostList):
    """Show how many more servers with a device profile fit, and what runs out first."""

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        """Show one row per host; print the total on standard error."""
        answer = self.api.call(
            'GET',
            f'{_build_path(parsed_args.profile)}/capacity',
            query={'hostname': parsed_args.host},
        )
        texts = [f'{_format_number(answer)}.']
        if answer['shortage'] is not None:
            texts.append(answer['shortage']['text'])
        texts += [warning['text'] for warning in answer['warnings']]
        for text in texts:
            self.progress_stream.write(f'{text}\n')
        rows = [
            (
                host['hostname'],
                host['servers'],
                host['is_exact'],
                Lines(host['shortage']['resource_classes']),
                host['shortage']['text'],
            )
            for host in answer['hosts']
        ]
        return ('Host', 'Servers', 'Exact', 'Runs Out First', 'Reason'), rows


def _format_number(answer: Mapping[str, Any]) -> str:
    servers = answer['servers']
    text = f'{servers} more {"server fits" if servers == 1 else "servers fit"}'
    return text if answer['is_exact'] else f'At least {text}'


def _list_notes(explanation: Mapping[str, Any]) -> Iterator[str]:
    """Yield the explained alternatives, except the groups themselves, and warnings."""
    for group, index in enumerate(explanation['alternatives']):
        if index:
            yield f'Group {group} is explained with alternative {index}.'
    for warning in explanation['warnings']:
        yield f'Warning: {warning["text"]}'


def _list_reasons(host: Mapping[str, Any]) -> list[str]:
    """Return the reasons of a host and of its groups, without repetition."""
    reasons = list(host['reasons'])
    for group in host['groups']:
        reasons += group['reasons']
    return list(dict.fromkeys(reason['text'] for reason in reasons))


class ListAccess(ListCommand):
    """List the projects that may use a device profile that is not public."""

    def _add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _add_profile(parser)

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        path = f'{_build_path(parsed_args.profile)}/access'
        projects = self.api.list_all(path, 'projects')
        return ('Project ID',), [(project,) for project in projects]


class _ChangeAccess(ApiCommand):
    """Base of the commands that change the access list."""

    def _add_arguments(self, parser: argparse.ArgumentParser) -> None:
        _add_profile(parser)
        parser.add_argument(
            'projects', metavar='<project-id>', nargs='+', help='Id of a project'
        )


class AddAccess(_ChangeAccess):
    """Permit projects to use a device profile that is not public."""

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        path = f'{_build_path(parsed_args.profile)}/access'
        self.api.call('POST', path, body={'projects': parsed_args.projects})


class RemoveAccess(_ChangeAccess):
    """Withdraw the permission of projects to use a device profile."""

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        path = f'{_build_path(parsed_args.profile)}/access'
        query = {'value': ','.join(parsed_args.projects)}
        self.api.call('DELETE', path, query=query)
