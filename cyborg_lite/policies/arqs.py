# SPDX-License-Identifier: Apache-2.0
"""Policy rules for ARQs.

Binding, unbinding and deleting the ARQs of an instance also requires a service token.
The code enforces this; no rule can disable it.
"""

from oslo_policy import policy

from cyborg_lite.policies import base


def list_rules() -> list[policy.DocumentedRuleDefault]:
    return [
        base.build_rule(
            'cyborg:arq:get_all',
            base.READER_OR_ADMIN,
            'List ARQs (accelerator requests).',
            'GET /v2/accelerator_requests',
        ),
        base.build_rule(
            'cyborg:arq:get_one',
            base.READER_OR_ADMIN,
            'Show an ARQ, its history, and that of an instance.',
            'GET /v2/accelerator_requests/{uuid}',
            'GET /v2/accelerator_requests/{uuid}/events',
            'GET /v2/instance_events',
        ),
        base.build_rule(
            'cyborg:arq:create',
            base.MEMBER_OR_SERVICE,
            'Create the ARQs of a device profile.',
            'POST /v2/accelerator_requests',
        ),
        base.build_rule(
            'cyborg:arq:delete',
            base.MEMBER_OR_SERVICE,
            'Delete ARQs.',
            'DELETE /v2/accelerator_requests',
            'DELETE /v2/accelerator_requests/{uuid}',
        ),
        base.build_rule(
            'cyborg:arq:update',
            base.MEMBER_OR_SERVICE,
            'Bind and unbind ARQs.',
            'PATCH /v2/accelerator_requests',
            'PATCH /v2/accelerator_requests/{uuid}',
        ),
    ]
