# SPDX-License-Identifier: Apache-2.0
"""Policy rules for jobs that clients follow."""

from oslo_policy import policy

from cyborg_lite.policies import base


def list_rules() -> list[policy.DocumentedRuleDefault]:
    return [
        base.build_rule(
            'cyborg:job:get_one',
            base.ADMIN,
            'Show the progress of a programming job. Users other than '
            'administrators see only the jobs of their project.',
            'GET /v2/jobs/{uuid}',
        ),
        base.build_rule(
            'cyborg:job:get_all',
            base.ADMIN,
            'List unfinished and failed jobs of all types.',
            'GET /v2/jobs',
        ),
        base.build_rule(
            'cyborg:job:create',
            base.ADMIN,
            'Request an audit, or a reconcile or refresh of a host.',
            'POST /v2/jobs',
        ),
        base.build_rule(
            'cyborg:job:retry',
            base.ADMIN,
            'Run a waiting or failed job now.',
            'POST /v2/jobs/{uuid}/retry',
        ),
        base.build_rule(
            'cyborg:job:cancel',
            base.ADMIN,
            'Cancel a job; a conductor reverts its incomplete changes.',
            'POST /v2/jobs/{uuid}/cancel',
        ),
    ]
