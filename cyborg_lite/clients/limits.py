# SPDX-License-Identifier: Apache-2.0
"""Limits of projects, which operators keep in Keystone as unified limits.

oslo.limit reads its options from the global object of oslo.config. The client copies
them there. The library is optional, and imported only if limits are enabled.
"""

import threading
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any, Final, Self

from keystoneauth1 import exceptions as keystoneauth
from keystoneauth1 import loading
from oslo_config import cfg
from oslo_log import log

from cyborg_lite.errors.daemons import ConfigurationError, ServiceUnavailable

LOG = log.getLogger(__name__)

_GROUP: Final = 'oslo_limit'
_REFRESH: Final = 60.0  # seconds for which limits are cached

Reader = Callable[[str, Collection[str]], list[tuple[str, int]]]
"""Returns name and limit of each resource of a project."""


class KeystoneLimits:
    """Reads limits of projects. Thread-safe."""

    def __init__(
        self, connect: Callable[[], Reader], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._connect = connect  # returns a reader that caches what it has read
        self._clock = clock
        self._lock = threading.Lock()
        self._reader: Reader | None = None  # None: not connected
        self._connected_at = 0.0
        self._failures = 0  # number of failed reads

    @classmethod
    def from_config_if_enabled(cls, conf: cfg.ConfigOpts) -> Self | None:
        """Return a client for the section ``[oslo_limit]``; None: no limits.

        :raises ConfigurationError: oslo.limit is not installed, or an option is wrong
        """
        if not conf.limits.enabled:
            return None
        try:
            from oslo_limit import limit  # optional
        except ImportError:
            reason = (
                '[limits] enabled requires oslo.limit: install cyborg-lite[limits].'
            )
            raise ConfigurationError(reason=reason) from None
        _copy_options(conf)
        return cls(lambda: limit.Enforcer(_count_nothing).get_project_limits)

    def read_limits(self, project_id: str, names: Collection[str]) -> Mapping[str, int]:
        """Return the limits of resources; -1: unlimited.

        A resource without a registered limit has the limit 0. A change in Keystone is
        seen after a minute.

        If a read fails, the reads that wait for it fail as well. Otherwise each of them
        would wait for the timeout in turn, and no thread would be left for heartbeats.

        :raises ServiceUnavailable: Keystone does not answer, or refuses the request
        """
        failures = self._failures
        with self._lock:  # the cache of the library is not made for threads
            if failures != self._failures:
                raise ServiceUnavailable(what='Keystone')
            try:
                return dict(self._find_reader()(project_id, sorted(names)))
            except Exception as error:
                # The library lets errors of keystoneauth and the SDK pass, and reports
                # a wrong endpoint as ValueError.
                LOG.error('Limits of project %s not read: %s', project_id, error)
                self._reader = None
                self._failures += 1
                raise ServiceUnavailable(what='Keystone') from error

    def _find_reader(self) -> Reader:
        now = self._clock()
        if self._reader is None or now - self._connected_at >= _REFRESH:
            self._reader = self._connect()
            self._connected_at = now
        return self._reader


def _count_nothing(_project: str | None, names: Collection[str]) -> dict[str, int]:
    """Return no use: the database counts it in the transaction of the creation."""
    return dict.fromkeys(names, 0)


def _copy_options(conf: cfg.ConfigOpts) -> None:
    """Copy the section to the global object, from which the library reads it.

    :raises ConfigurationError: there is no auth_type, or its plugin is unknown
    """
    auth_type = conf[_GROUP].auth_type
    if not auth_type:
        raise ConfigurationError(reason='[oslo_limit] auth_type is not set.')
    try:
        plugin: Any = loading.get_plugin_loader(auth_type)
    except keystoneauth.NoMatchingPlugin as error:
        raise ConfigurationError(reason=f'[oslo_limit] auth_type: {error}') from None
    options: list[Any] = loading.get_auth_plugin_conf_options(plugin)
    for target in (conf, cfg.CONF):
        target.register_opts(options, group=_GROUP)
    for name, value in conf[_GROUP].items():
        if name in cfg.CONF[_GROUP]:
            cfg.CONF.set_override(name, value, _GROUP)
