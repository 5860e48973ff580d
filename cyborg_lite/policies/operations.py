# SPDX-License-Identifier: Apache-2.0
"""Policy rules for operations, and for programming jobs before 2.7."""

from oslo_policy import policy

from cyborg_lite.policies import base


def list_rules() -> list[policy.DocumentedRuleDefault]:
    return [
        base.build_rule(
            'cyborg:attention:get_all',
            base.ADMIN,
            'List everything that waits for an operator.',
            'GET /v2/attention',
        ),
        base.build_rule(
            'cyborg:job:get_one',
            base.ADMIN,
            'Show the progress of a programming job. Users other than '
            'administrators see only the jobs of their project.',
            'GET /v2/jobs/{uuid}',
        ),
        base.build_rule(
            'cyborg:operation:get_all',
            base.READER_OR_ADMIN,
            'List operations. Users other than administrators see only the operations '
            'that their project has requested.',
            'GET /v2/operations',
        ),
        base.build_rule(
            'cyborg:operation:get_one',
            base.READER_OR_ADMIN,
            'Show an operation.',
            'GET /v2/operations/{uuid}',
        ),
        base.build_rule(
            'cyborg:operation:create',
            base.ADMIN,
            'Request an audit, or a reconcile or refresh of a host.',
            'POST /v2/operations',
        ),
        base.build_rule(
            'cyborg:operation:retry',
            base.ADMIN,
            'Run a waiting or failed operation now.',
            'POST /v2/operations/{uuid}/retry',
        ),
        base.build_rule(
            'cyborg:operation:cancel',
            base.ADMIN,
            'Cancel an operation; a conductor reverts its incomplete changes.',
            'POST /v2/operations/{uuid}/cancel',
        ),
    ]
