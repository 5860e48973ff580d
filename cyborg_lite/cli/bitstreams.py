# SPDX-License-Identifier: Apache-2.0
"""Commands ``openstack accelerator bitstream ...``: images and their loading.

``openstack accelerator deployable program`` of python-cyborgclient uses microversion
2.0, where the response comes after the load, and nothing shows the progress.
"""

import argparse
from typing import Final

from cyborg_lite.cli import waiting
from cyborg_lite.cli.columns import build_fields, build_rows
from cyborg_lite.cli.commands import ListCommand, ShowCommand, Table
from cyborg_lite.cli.rest import build_patch, quote_path

_FILTERS: Final = ('vendor', 'board', 'region', 'function', 'deployable')
_COLUMNS: Final = {
    'image_uuid': 'Image',
    'name': 'Name',
    'vendor': 'Vendor',
    'board': 'Board',
    'function_name': 'Function',
    'region_uuid': 'Region',
    'size': 'Size',
}
_VERDICT_COLUMNS: Final = {'accepted': 'Accepted', 'reasons': 'Reasons'}


class ListBitstreams(ListCommand):
    """List bitstreams in Glance, and whether a deployable accepts them."""

    def _add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument('--vendor', metavar='<vendor>', help='Only this vendor')
        parser.add_argument('--board', metavar='<board>', help='Only this board')
        parser.add_argument('--region', metavar='<uuid>', help='Only this region')
        parser.add_argument(
            '--function', metavar='<function>', help='Only this function name or uuid'
        )
        parser.add_argument(
            '--deployable',
            metavar='<uuid>',
            help='Show whether this deployable accepts each bitstream',
        )

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        query = {name: getattr(parsed_args, name) for name in _FILTERS}
        bitstreams = self.api.list_all('/bitstreams', 'bitstreams', query)
        extra = _VERDICT_COLUMNS if parsed_args.deployable else {}
        return build_rows({**_COLUMNS, **extra}, bitstreams)


class LoadBitstream(ShowCommand):
    """Load a bitstream into a deployable. The service runs the load as an operation."""

    def _add_arguments(self, parser: argparse.ArgumentParser) -> None:
        parser.add_argument(
            'deployable', metavar='<deployable>', help='Uuid of the deployable'
        )
        parser.add_argument(
            'image', metavar='<image>', help='Uuid of the image in Glance'
        )
        waiting.add_wait_options(parser)

    def take_action(self, parsed_args: argparse.Namespace) -> Table:
        """Start the operation and show it; with ``--wait`` after its end."""
        path = f'/deployables/{quote_path(parsed_args.deployable)}/program'
        patch = build_patch({'program': [{'image_uuid': parsed_args.image}]})
        operation = self.api.call('PATCH', path, body=patch)
        self.wait(parsed_args)
        if parsed_args.wait:
            operation = self.api.read(self.api.operation)
        return build_fields(operation)
