# SPDX-License-Identifier: Apache-2.0
"""Rules of devices."""

from oslo_policy import policy

from cyborg_lite.policies import base


def list_rules() -> list[policy.DocumentedRuleDefault]:
    return [
        base.documented(
            'cyborg:device:get_all',
            base.MANAGER_OR_ADMIN,
            'List devices.',
            'GET /v2/devices',
        ),
        base.documented(
            'cyborg:device:get_one',
            base.MANAGER_OR_ADMIN,
            'Show a device.',
            'GET /v2/devices/{uuid}',
        ),
        base.documented(
            'cyborg:device:update',
            base.ADMIN,
            'Begin or end the maintenance of a device, with a reason. Besides, '
            'cyborg:device:disable or cyborg:device:enable must allow it.',
            'PATCH /v2/devices/{uuid}',
        ),
        base.documented(
            'cyborg:device:enable',
            base.ADMIN,
            'Let a device be scheduled again.',
            'POST /v2/devices/{uuid}/enable',
        ),
        base.documented(
            'cyborg:device:disable',
            base.ADMIN,
            'Keep a device from being scheduled.',
            'POST /v2/devices/{uuid}/disable',
        ),
    ]
