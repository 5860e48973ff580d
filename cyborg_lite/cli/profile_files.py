# SPDX-License-Identifier: Apache-2.0
"""Commands ``openstack accelerator device profile export`` and ``import``.

The file is the body that creates the profiles, with the projects of each access list.
"""

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from osc_lib import exceptions

from cyborg_lite.cli.commands import ApiCommand, ListCommand, Table
from cyborg_lite.cli.rest import AcceleratorApi, quote_path

_FIELDS: Final = ('name', 'description', 'groups', 'enabled', 'is_public')
_BATCH: Final = 100  # profiles per request, as the service allows


class ExportProfiles(ApiCommand):
    """Write all device profiles with their access lists to a file."""

    def _add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument('file', metavar='<file>', help='File to write, as JSON')

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Write the file.

        :raises CommandError: the file cannot be written
        """
        profiles = list(_read_profiles(self.api))
        text = json.dumps(profiles, indent=2, sort_keys=True)
        try:
            Path(parsed_args.file).write_text(f'{text}\n')
        except OSError as error:
            raise exceptions.CommandError(str(error)) from None


class ImportProfiles(ListCommand):
    """Create the device profiles of a file that do not exist, and their access lists.

    A profile that differs from the one in the file is a conflict: nothing is changed.
    """

    def _add_arguments(self, parser: argparse.ArgumentParser) -> None:
        text = 'File of `device profile export`'
        parser.add_argument('file', metavar='<file>', help=text)

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        """Show what was done with each profile.

        :raises CommandError: the file is no export, or a profile differs
        """
        profiles = _read_file(parsed_args.file)
        stored = {item['name']: item for item in _read_profiles(self.api)}
        conflicts = list(_list_conflicts(profiles, stored))
        if conflicts:
            raise exceptions.CommandError('; '.join(conflicts))
        new = [item for item in profiles if item['name'] not in stored]
        for start in range(0, len(new), _BATCH):
            body = new[start : start + _BATCH]
            self.api.call('POST', '/device_profiles', body=body)
        rows = [(item['name'], self._share(item, stored)) for item in profiles]
        return ('Name', 'Result'), rows

    def _share(self, profile: Mapping[str, Any], stored: Mapping[str, Any]) -> str:
        """Add the projects that the access list lacks; return what was done."""
        before = stored.get(profile['name'])
        present = before['projects'] if before else ()
        projects = [item for item in profile['projects'] if item not in present]
        if projects:
            path = f'/device_profiles/{quote_path(profile["name"])}/access'
            self.api.call('POST', path, body={'projects': projects})
        if before is None:
            return 'created'
        return f'shared with {", ".join(projects)}' if projects else 'unchanged'


def _read_profiles(api: AcceleratorApi) -> Iterator[dict[str, Any]]:
    query = {'sort_key': 'name'}
    for item in api.list_all('/device_profiles', 'device_profiles', query):
        access = api.read(f'/device_profiles/{item["uuid"]}/access')
        fields = {name: item[name] for name in ('uuid', *_FIELDS)}
        yield {**fields, 'projects': access['projects']}


def _read_file(name: str) -> Sequence[dict[str, Any]]:
    """Return the profiles of a file.

    :raises CommandError: the file is no export
    """
    try:
        profiles: list[dict[str, Any]] = json.loads(Path(name).read_text())
        for index in range(len(profiles)):
            for field in (*_FIELDS, 'projects'):
                profiles[index][field]
    except (OSError, ValueError, LookupError, TypeError) as error:
        reason = f'{name} is no export of device profiles: {error}'
        raise exceptions.CommandError(reason) from None
    return profiles


def _list_conflicts(
    profiles: Sequence[Mapping[str, Any]], stored: Mapping[str, Mapping[str, Any]]
) -> Iterator[str]:
    for item in profiles:
        present = stored.get(item['name'], item)
        fields = [name for name in _FIELDS if item[name] != present[name]]
        if fields:
            verb = 'differs' if len(fields) == 1 else 'differ'
            yield f'Device profile {item["name"]} exists: {", ".join(fields)} {verb}'
