# SPDX-License-Identifier: Apache-2.0
"""Rules of device profiles."""

from oslo_policy import policy

from cyborg_lite.policies import base


def list_rules() -> list[policy.DocumentedRuleDefault]:
    return [
        base.documented(
            'cyborg:device_profile:get_all',
            base.READER_OR_ADMIN,
            'List device profiles.',
            'GET /v2/device_profiles',
        ),
        base.documented(
            'cyborg:device_profile:get_one',
            base.READER_OR_ADMIN,
            'Show a device profile.',
            'GET /v2/device_profiles/{device_profile}',
        ),
        base.documented(
            'cyborg:device_profile:create',
            base.ADMIN,
            'Create a device profile.',
            'POST /v2/device_profiles',
        ),
        base.documented(
            'cyborg:device_profile:update',
            base.ADMIN,
            'Change a device profile.',
            'PATCH /v2/device_profiles/{device_profile}',
        ),
        base.documented(
            'cyborg:device_profile:explain',
            base.ADMIN,
            'Learn on which hosts a device profile fits, and what others lack.',
            'POST /v2/device_profiles/{device_profile}/explain',
        ),
        base.documented(
            'cyborg:device_profile:access',
            base.ADMIN,
            'See and change which projects see a device profile that is not public.',
            'GET /v2/device_profiles/{device_profile}/access',
            'POST /v2/device_profiles/{device_profile}/access',
            'DELETE /v2/device_profiles/{device_profile}/access',
        ),
        base.documented(
            'cyborg:device_profile:delete',
            base.ADMIN,
            'Delete device profiles.',
            'DELETE /v2/device_profiles',
            'DELETE /v2/device_profiles/{device_profile}',
        ),
    ]
