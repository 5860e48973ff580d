# SPDX-License-Identifier: Apache-2.0
"""Who may do what: the rules of ``policies`` and of the operator's file, enforced."""

import argparse

from oslo_config import cfg
from oslo_policy import policy

from cyborg_lite import policies
from cyborg_lite.exceptions import Forbidden, PolicyForbids
from cyborg_lite.rpc.context import RequestContext


class Policy:
    """The operator's file is read again when it changes."""

    def __init__(self, enforcer: policy.Enforcer) -> None:
        self._enforcer = enforcer

    def check(self, rule: str, caller: RequestContext) -> None:
        """Return if the caller may do what the rule guards.

        :raises Forbidden: the token has no project. Such a token anyone can have, and
            an empty project would match the rows that have none.
        :raises PolicyForbids: the rule says no
        """
        project = (caller.project_id or '').strip()
        if not project or caller.domain_id or caller.system_scope:
            raise Forbidden(reason=f'{rule} requires a token with project scope.')
        target = {'project_id': caller.project_id, 'user_id': caller.user_id}
        if not self._enforcer.authorize(rule, target, caller):
            raise PolicyForbids(rule=rule)


def load(conf: cfg.ConfigOpts) -> Policy:
    """With the rules of this release; the file is read at the first check."""
    return Policy(_enforcer(conf))


def generator_enforcer() -> policy.Enforcer:
    """For the commands of oslo.policy that compare a file with the defaults."""
    # They have options of their own, which must not reach the configuration.
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument('--config-file', action='append', default=[])
    given, _ = parser.parse_known_args()
    files = [f'--config-file={path}' for path in given.config_file]
    cfg.CONF(files, project='cyborg-lite')
    return _enforcer(cfg.CONF)


def _enforcer(conf: cfg.ConfigOpts) -> policy.Enforcer:
    enforcer = policy.Enforcer(conf)
    enforcer.register_defaults(policies.list_rules())
    return enforcer
