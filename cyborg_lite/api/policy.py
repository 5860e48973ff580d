# SPDX-License-Identifier: Apache-2.0
"""Enforcement of the policy rules in ``policies`` and in the operator's policy file."""

import argparse
from typing import Final

from oslo_config import cfg
from oslo_policy import policy

from cyborg_lite import policies
from cyborg_lite.exceptions import Forbidden, PolicyForbids
from cyborg_lite.rpc.context import RequestContext

_ADMIN_RULE: Final = 'admin_api'


class Policy:
    """Policy rules; a changed policy file is loaded without a restart."""

    def __init__(self, enforcer: policy.Enforcer) -> None:
        self._enforcer = enforcer

    def check(self, rule: str, caller: RequestContext) -> None:
        """Return if the rule allows the caller.

        :raises Forbidden: the token has no project scope. Any user can get such a
            token, and an empty project would match the rows without a project.
        :raises PolicyForbids: the rule rejects the caller
        """
        project = (caller.project_id or '').strip()
        if not project or caller.domain_id or caller.system_scope:
            raise Forbidden(reason=f'{rule} requires a token with project scope.')
        if not self._is_allowed(rule, caller):
            raise PolicyForbids(rule=rule)

    def is_admin(self, caller: RequestContext) -> bool:
        """Check whether the caller may see and change the objects of all projects.

        This is the only place that decides it. All daemons read
        ``RequestContext.is_admin``.
        """
        return self._is_allowed(_ADMIN_RULE, caller)

    def _is_allowed(self, rule: str, caller: RequestContext) -> bool:
        target = {'project_id': caller.project_id, 'user_id': caller.user_id}
        return bool(self._enforcer.authorize(rule, target, caller))


def load_policy(conf: cfg.ConfigOpts) -> Policy:
    """Return the policy with the default rules; the file is read at the first check."""
    return Policy(_build_enforcer(conf))


def load_generator_enforcer() -> policy.Enforcer:
    """Return an enforcer for the command line tools of oslo.policy."""
    # The tools have options of their own, which must not reach the configuration.
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument('--config-file', action='append', default=[])
    options, _ = parser.parse_known_args()
    files = [f'--config-file={path}' for path in options.config_file]
    cfg.CONF(files, project='cyborg-lite')
    return _build_enforcer(cfg.CONF)


def _build_enforcer(conf: cfg.ConfigOpts) -> policy.Enforcer:
    enforcer = policy.Enforcer(conf)
    enforcer.register_defaults(policies.list_rules())
    return enforcer
