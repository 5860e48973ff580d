# SPDX-License-Identifier: Apache-2.0
"""Commands ``openstack accelerator operation ...``: work that the service continues."""

import argparse
from typing import Final

from cyborg_lite.cli import waiting
from cyborg_lite.cli.columns import build_fields, build_rows
from cyborg_lite.cli.commands import ApiCommand, ListCommand, ShowCommand, Table
from cyborg_lite.cli.rest import quote_path

_COLUMNS: Final = {
    'uuid': 'UUID',
    'kind': 'Kind',
    'subject': 'Subject',
    'state': 'State',
    'progress': 'Progress [%]',
    'created_at': 'Created At',
    'reason': 'Reason',
}
_STATES: Final = ('waiting', 'running', 'succeeded', 'failed', 'cancelled')
_KINDS: Final = ('audit', 'reconcile', 'refresh')


class ListOperations(ListCommand):
    """List operations, oldest first."""

    def _add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument('--kind', metavar='<kind>', help='Only this kind')
        parser.add_argument('--state', choices=_STATES, help='Only this state')
        parser.add_argument(
            '--subject',
            metavar='<subject>',
            help='Only this object: a uuid, or the name of a host',
        )

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        names = ('kind', 'state', 'subject')
        query = {name: getattr(parsed_args, name) for name in names}
        operations = self.api.list_all('/operations', 'operations', query)
        rows = [
            {**item, 'subject': ' '.join((item['subject'] or {}).values())}
            for item in operations
        ]
        return build_rows(_COLUMNS, rows)


class CreateOperation(ShowCommand):
    """Request an audit, or a reconcile or refresh of a host."""

    def _add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            'kind',
            choices=_KINDS,
            help='audit: find ARQs and handles that nothing needs, and release them if '
            'the option reap_orphans allows it; reconcile: correct the providers of a '
            'host in Placement; refresh: have the agent of a host report all '
            'devices again, and reconcile',
        )
        parser.add_argument(
            '--host', metavar='<host>', help='Host of a reconcile or refresh'
        )
        parser.add_argument(
            '--apply',
            action='store_true',
            help='Apply the remedies of an audit, and delete leaked allocations',
        )
        waiting.add_wait_options(parser)

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        """Start the operation and show it; with ``--wait`` after its end."""
        host = {'hostname': parsed_args.host} if parsed_args.host else {}
        body = {'kind': parsed_args.kind, **host}
        if parsed_args.apply:
            body['apply'] = True
        operation = self.api.call('POST', '/operations', body=body)
        self.wait(parsed_args)
        if parsed_args.wait:
            operation = self.api.read(self.api.operation)
        return build_fields(operation)


class _ChangeOperations(ApiCommand):
    """Base of the commands that change operations."""

    action: str

    def _add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            'operations', metavar='<operation>', nargs='+', help='Uuid of an operation'
        )

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Change the operations in their order; stop at the first error."""
        for uuid in parsed_args.operations:
            self.api.call('POST', f'/operations/{quote_path(uuid)}/{self.action}')


class RetryOperations(_ChangeOperations):
    """Run failed or waiting operations now."""

    action = 'retry'


class CancelOperations(_ChangeOperations):
    """Cancel operations. A conductor reverts their incomplete changes."""

    action = 'cancel'


class ShowOperation(ShowCommand):
    """Show an operation."""

    def _add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            'operation', metavar='<operation>', help='Uuid of the operation'
        )

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        path = f'/operations/{quote_path(parsed_args.operation)}'
        return build_fields(self.api.read(path))


class WaitForOperation(ShowOperation):
    """Show the progress of an operation until its end, then the operation."""

    def _add_arguments(self, parser: argparse.ArgumentParser) -> None:
        super()._add_arguments(parser)
        waiting.add_timeout(parser)

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        """Wait for the end, and show the operation."""
        self.api.operation = f'/operations/{quote_path(parsed_args.operation)}'
        self.wait(argparse.Namespace(wait=True, timeout=parsed_args.timeout))
        return super().take_action(parsed_args)
