# SPDX-License-Identifier: Apache-2.0
"""Loads the drivers that ``[agent] enabled_drivers`` names.

Any installed package can provide drivers through entry points of the namespace
``cyborg_lite.drivers``.
"""

from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import EntryPoint
from typing import Any, Final

from oslo_config import cfg
from oslo_log import log
from stevedore.extension import ExtensionManager
from stevedore.named import NamedExtensionManager

from cyborg_lite.drivers.base import Driver, ReadsLegacyConfig
from cyborg_lite.drivers.host.sysfs import Host
from cyborg_lite.errors.daemons import ConfigurationError

LOG = log.getLogger(__name__)

NAMESPACE: Final = 'cyborg_lite.drivers'


def load_drivers(
    enabled: Sequence[str], host: Host, conf: cfg.ConfigOpts
) -> Mapping[str, Driver]:
    """Create the enabled drivers; each gets the options of its own section.

    :returns: the drivers by entry point name, in the order of ``enabled``
    :raises ConfigurationError: a driver is not installed or cannot be imported, or one
        of its options has an invalid value
    """
    classes = _load_classes(enabled)
    return {
        name: driver_class(host, _read_options(conf, name, driver_class))
        for name, driver_class in classes.items()
    }


def load_disabled_drivers(
    enabled: Sequence[str], host: Host, conf: cfg.ConfigOpts
) -> Mapping[str, Driver]:
    """Create the installed drivers that are not enabled, for suggestions.

    A driver that cannot be loaded, or whose options are invalid, is left out.
    """
    drivers: dict[str, Driver] = {}
    for name in _list_installed():
        if name in enabled:
            continue
        try:
            drivers |= load_drivers([name], host, conf)
        except ConfigurationError as error:
            LOG.debug('Driver %s is not suggested: %s', name, error.text)
    return drivers


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """Return the options of all installed drivers, for oslo-config-generator."""
    classes = _load_classes(_list_installed())
    return [
        (name, list(driver_class.OPTIONS))
        for name, driver_class in classes.items()
        if driver_class.OPTIONS
    ]


# Any: options are of many types.
def _read_options(
    conf: cfg.ConfigOpts, name: str, driver_class: type[Driver]
) -> dict[str, Any]:
    def _read_section(group: str, options: Sequence[cfg.Opt]) -> dict[str, Any]:
        conf.register_opts(options, group=group)
        # Read each value now, so that an invalid one stops the start of the agent.
        return {option.dest: conf[group][option.dest] for option in options}

    try:
        values = _read_section(name, driver_class.OPTIONS)
        if issubclass(driver_class, ReadsLegacyConfig):
            values |= driver_class.read_legacy_config(_read_section)
    except cfg.Error as error:
        raise ConfigurationError(reason=str(error)) from None
    return values


def _list_installed() -> tuple[str, ...]:
    manager = NamedExtensionManager[Driver](NAMESPACE, [])
    return tuple(sorted(point.name for point in manager.list_entry_points()))


def _load_classes(names: Sequence[str]) -> dict[str, type[Driver]]:
    manager = NamedExtensionManager[Driver](
        NAMESPACE,
        list(names),
        on_missing_entrypoints_callback=_refuse_unknown,
        on_load_failure_callback=_refuse_broken,
        name_order=True,
    )
    return {extension.name: extension.plugin for extension in manager}


def _refuse_unknown(missing: Iterable[str]) -> None:
    unknown = ', '.join(sorted(missing))
    installed = ', '.join(_list_installed())
    raise ConfigurationError(
        reason=f'Unknown driver {unknown} in [agent] enabled_drivers. '
        f'Installed drivers: {installed}'
    )


def _refuse_broken(
    _manager: ExtensionManager[Driver], entry_point: EntryPoint, error: BaseException
) -> None:
    raise ConfigurationError(
        reason=f'Driver {entry_point.name} cannot be loaded: {error}'
    ) from error
