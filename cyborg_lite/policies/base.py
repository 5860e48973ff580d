# SPDX-License-Identifier: Apache-2.0
"""Base rules that other rules refer to; operators may override them by name."""

from typing import Final

ADMIN: Final = 'rule:admin_api'
MANAGER_OR_ADMIN: Final = 'rule:project_manager_or_admin'
READER_OR_ADMIN: Final = 'rule:project_reader_or_admin'
MEMBER_OR_SERVICE: Final = 'rule:project_member_or_service'

_PERSONAS: Final = {
    'admin_api': ('role:admin', 'Administrators, in any project.'),
    'service_api': ('role:service', 'Services that call on their own behalf.'),
    'project_admin_api': (
        'role:admin and project_id:%(project_id)s',
        'Administrators of the project.',
    ),
    'project_manager_api': (
        'role:manager and project_id:%(project_id)s',
        'Managers of the project.',
    ),
    'project_member_api': (
        'role:member and project_id:%(project_id)s',
        'Members of the project, who may make changes.',
    ),
    'project_reader_api': (
        'role:reader and project_id:%(project_id)s',
        'Readers of the project, who may not make changes.',
    ),
    'project_manager_or_admin': (
        'rule:project_manager_api or rule:admin_api',
        'Managers of the project, and administrators.',
    ),
    'project_member_or_admin': (
        'rule:project_member_api or rule:admin_api',
        'Members of the project, and administrators.',
    ),
    'project_reader_or_admin': (
        'rule:project_reader_api or rule:admin_api',
        'Readers of the project, and administrators.',
    ),
    'project_member_or_service': (
        'rule:project_member_api or rule:service_api',
        'Members of the project, and services.',
    ),
}

# No default rule uses these rules, but policy files of deployed clouds do.
_LEGACY: Final = {
    'public_api': ('is_public_api:True', 'Legacy: the version documents.'),
    'allow': ('@', 'Legacy: every user with a token.'),
    'deny': ('!', 'Legacy: no user.'),
    'default': (
        'rule:admin_or_owner',
        'Legacy: rule for operations without a rule of their own.',
    ),
    'is_admin': ('rule:admin_api', 'Legacy: administrators.'),
    'admin_or_owner': (
        'rule:admin_api or project_id:%(project_id)s',
        'Legacy: administrators, and all users of the project.',
    ),
    'admin_or_user': (
        'rule:admin_api or user_id:%(user_id)s',
        'Legacy: administrators, and the user.',
    ),
}

BASE_RULES: Final = {**_PERSONAS, **_LEGACY}
"""Check and description by name."""
