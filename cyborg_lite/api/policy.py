# SPDX-License-Identifier: Apache-2.0
"""Enforcement of the policy rules in ``policies`` and in the operator's policy file."""

import argparse
import functools
import threading
import time
from importlib.metadata import entry_points
from typing import Final

from oslo_config import cfg
from oslo_policy import policy

from cyborg_lite import policies
from cyborg_lite.errors.base import Forbidden
from cyborg_lite.errors.requests import PolicyForbids
from cyborg_lite.rpc.context import RequestContext

_ADMIN_RULE: Final = 'admin_api'

# Seconds between two searches for changed policy files. A search costs as much as the
# check of a rule.
_RELOAD_INTERVAL: Final = 5.0

_MAX_RESULTS: Final = 4096

# Entry points of checks that ask a server, or that an operator added. Their results may
# change while the rules and the caller stay the same.
_CHECK_KINDS: Final = 'oslo.policy.rule_checks'

# Result by the name of the rule and all values of the caller.
_Results = dict[tuple[object, ...], bool]


class Policy:
    """Policy rules; a changed policy file is loaded without a restart."""

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        # Reads the policy files, at the first check.
        self._source = _build_enforcer(conf)
        # Checks the rules, and reads no files.
        self._enforcer = _build_enforcer(conf)
        self._reload_at = float('-inf')
        self._lock = threading.Lock()
        # None: the results depend on more than the rules and the caller.
        self._results: _Results | None = None

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
        self._reload_rules()
        # A thread that checks former rules stores the result with the former results.
        results = self._results
        if results is None:
            return self._enforce(rule, caller)
        key = _build_key(rule, caller)
        result = results.get(key)
        if result is None:
            if len(results) >= _MAX_RESULTS:
                results.clear()
            result = results[key] = self._enforce(rule, caller)
        return result

    def _enforce(self, rule: str, caller: RequestContext) -> bool:
        target = {'project_id': caller.project_id, 'user_id': caller.user_id}
        return bool(self._enforcer.authorize(rule, target, caller))

    def _reload_rules(self) -> None:
        """Load changed policy files, at most once per interval.

        The library builds the rules in several steps. The enforcer gets all of them at
        once, so no other thread checks a part of the rules.
        """
        if time.monotonic() < self._reload_at:
            return
        with self._lock:
            if time.monotonic() < self._reload_at:
                return
            self._source.load_rules()
            rules = self._source.rules
            self._enforcer.set_rules(rules)
            texts = [str(check) for check in rules.values()]
            kinds = _list_check_kinds()
            varies = any(kind in text for kind in kinds for text in texts)
            self._results = None if varies else {}
            self._reload_at = time.monotonic() + _RELOAD_INTERVAL


@functools.cache
def _list_check_kinds() -> tuple[str, ...]:
    """Return the kinds of ``_CHECK_KINDS``. The search reads the whole environment."""
    return tuple(f'{point.name}:' for point in entry_points(group=_CHECK_KINDS))


def _build_key(rule: str, caller: RequestContext) -> tuple[object, ...]:
    """Return all that a rule can depend on; the target contains no more."""
    values = caller.to_policy_values().values()
    return (
        rule,
        *(tuple(value) if isinstance(value, list) else value for value in values),
    )


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
