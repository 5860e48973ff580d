# SPDX-License-Identifier: Apache-2.0
"""Rules of accelerator requests.

Binding, unbinding and deleting what belongs to an instance need a service token
besides. That is decided in code, and no rule here can waive it.
"""

from oslo_policy import policy

from cyborg_lite.policies import base


def list_rules() -> list[policy.DocumentedRuleDefault]:
    return [
        base.documented(
            'cyborg:arq:get_all',
            base.READER_OR_ADMIN,
            'List accelerator requests.',
            'GET /v2/accelerator_requests',
        ),
        base.documented(
            'cyborg:arq:get_one',
            base.READER_OR_ADMIN,
            'Show an accelerator request, and its history.',
            'GET /v2/accelerator_requests/{uuid}',
            'GET /v2/accelerator_requests/{uuid}/events',
        ),
        base.documented(
            'cyborg:arq:create',
            base.MEMBER_OR_SERVICE,
            'Create the accelerator requests of a device profile.',
            'POST /v2/accelerator_requests',
        ),
        base.documented(
            'cyborg:arq:delete',
            base.MEMBER_OR_SERVICE,
            'Delete accelerator requests.',
            'DELETE /v2/accelerator_requests',
            'DELETE /v2/accelerator_requests/{uuid}',
        ),
        base.documented(
            'cyborg:arq:update',
            base.MEMBER_OR_SERVICE,
            'Bind and unbind accelerator requests.',
            'PATCH /v2/accelerator_requests',
            'PATCH /v2/accelerator_requests/{uuid}',
        ),
    ]
