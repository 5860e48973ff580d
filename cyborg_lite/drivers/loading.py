# SPDX-License-Identifier: Apache-2.0
"""Finds the drivers that the operator enabled, and makes them.

Any package may bring drivers: entry points of the namespace ``cyborg_lite.drivers``.
"""

from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import EntryPoint
from typing import Any, Final

from oslo_config import cfg
from stevedore.extension import ExtensionManager
from stevedore.named import NamedExtensionManager

from cyborg_lite.drivers.base import Driver, Inheriting
from cyborg_lite.drivers.sysfs import Host
from cyborg_lite.exceptions import ConfigurationError

NAMESPACE: Final = 'cyborg_lite.drivers'


def load(
    enabled: Sequence[str], host: Host, conf: cfg.ConfigOpts
) -> Mapping[str, Driver]:
    """The drivers by name, in the order given; each reads its own section.

    :raises ConfigurationError: one is not installed, cannot be imported, or has an
        option of a value that it cannot have
    """
    kinds = _classes(enabled)
    return {
        name: kind(host, _options(conf, name, kind)) for name, kind in kinds.items()
    }


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """Options of all drivers that are installed, for oslo-config-generator."""
    kinds = _classes(_installed())
    return [(name, list(kind.OPTIONS)) for name, kind in kinds.items() if kind.OPTIONS]


# Any: options are of many types.
def _options(conf: cfg.ConfigOpts, name: str, kind: type[Driver]) -> dict[str, Any]:
    def section(group: str, options: Sequence[cfg.Opt]) -> dict[str, Any]:
        conf.register_opts(options, group=group)
        # Read now: a mistake in the file must be known before the work begins.
        return {option.dest: conf[group][option.dest] for option in options}

    try:
        values = section(name, kind.OPTIONS)
        if issubclass(kind, Inheriting):
            values |= kind.inherited(section)
    except cfg.Error as error:
        raise ConfigurationError(reason=str(error)) from None
    return values


def _installed() -> tuple[str, ...]:
    manager = NamedExtensionManager[Driver](NAMESPACE, [])
    return tuple(sorted(point.name for point in manager.list_entry_points()))


def _classes(names: Sequence[str]) -> dict[str, type[Driver]]:
    manager = NamedExtensionManager[Driver](
        NAMESPACE,
        list(names),
        on_missing_entrypoints_callback=_refuse_unknown,
        on_load_failure_callback=_refuse_broken,
        name_order=True,
    )
    return {extension.name: extension.plugin for extension in manager}


def _refuse_unknown(missing: Iterable[str]) -> None:
    unknown, known = ', '.join(sorted(missing)), ', '.join(_installed())
    raise ConfigurationError(
        reason=f'Unknown driver {unknown} in [agent] enabled_drivers: choose of {known}'
    )


def _refuse_broken(
    _manager: ExtensionManager[Driver],
    entry_point: EntryPoint,
    error: BaseException,
) -> None:
    raise ConfigurationError(
        reason=f'Driver {entry_point.name} cannot be loaded: {error}'
    ) from error
