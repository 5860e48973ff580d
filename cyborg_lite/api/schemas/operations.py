# SPDX-License-Identifier: Apache-2.0
"""Schemas of the bodies of requests for operations."""

from typing import Final

from cyborg_lite.api.call.validation import Schema
from cyborg_lite.model.operations import REQUESTABLE

CREATE: Final = Schema(
    {
        'type': 'object',
        'required': ['kind'],
        'properties': {
            'kind': {
                'description': 'audit: find ARQs whose instance or job no longer '
                'exists. reconcile: read all providers of a host from Placement and '
                'correct them. refresh: have the agent of a host send a complete '
                'report, and reconcile.',
                'enum': [kind.value for kind in REQUESTABLE],
            },
            'apply': {
                'description': 'Of an audit: apply the remedies of what it finds, even '
                'if the option reap_orphans does not allow it, and delete leaked '
                'allocations. Nothing is applied while the database is in quarantine.',
                'type': 'boolean',
            },
            'hostname': {
                'description': 'Host of a reconcile or refresh.',
                'type': 'string',
                'maxLength': 255,
            },
        },
        'examples': [
            {'kind': 'audit'},
            {'kind': 'audit', 'apply': True},
            {'kind': 'reconcile', 'hostname': 'compute-1'},
        ],
    }
)
