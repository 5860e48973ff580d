# SPDX-License-Identifier: Apache-2.0
"""Options of ``cyborg.conf`` as options of this service."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

Option = tuple[str, str]
"""Section and name."""

_RENAMED: Final[Mapping[Option, Option]] = {
    ('DEFAULT', 'auth_strategy'): ('api', 'auth_strategy'),
    ('DEFAULT', 'periodic_interval'): ('agent', 'discovery_interval'),
    ('api', 'host_ip'): ('api', 'host'),
    ('api', 'api_workers'): ('api', 'workers'),
}
_DRIVERS_OPTION: Final = ('agent', 'enabled_drivers')
_RENAMED_DRIVERS: Final = {
    'huawei_ascend_driver': 'ascend_driver',
    'inspur_nvme_ssd_driver': 'nvme_driver',
    'intel_nic_driver': 'sriov_nic_driver',
}
# Sections that drivers of this service read under the names of Cyborg.
_DRIVER_SECTIONS: Final = re.compile(r'gpu_devices|vgpu_.+|nic_devices|.+_nic|pci')
_BY_PROXY: Final = 'a proxy terminates TLS, see share/cyborg-lite/proxy'
_REASONS: Final[Mapping[Option, str]] = {
    ('database', 'connection'): 'this service needs a database of its own; use the '
    'value in cyborg-lite-manage import --from',
    ('api', 'enable_ssl_api'): _BY_PROXY,
    ('ssl', 'cert_file'): _BY_PROXY,
    ('ssl', 'key_file'): _BY_PROXY,
}
_NO_COUNTERPART: Final = 'it has no counterpart'


@dataclass(frozen=True, slots=True)
class ConvertedOption:
    """An option of the source, and what becomes of it."""

    source: Option
    values: tuple[str, ...]  # several if the option stands several times
    target: Option | None  # None: it is not converted
    reason: str = ''  # why it is not converted; empty: it is


def convert_options(
    sections: Mapping[str, Mapping[str, Sequence[str]]],
    known_names: Mapping[str, Collection[str]],
) -> tuple[ConvertedOption, ...]:
    """Return all options of a file, in its order.

    :param sections: values by section and name
    :param known_names: names of the options of this service, by section
    """
    return tuple(
        _convert((section, name.replace('-', '_')), tuple(values), known_names)
        for section, options in sections.items()
        for name, values in options.items()
    )


def _convert(
    source: Option,
    values: tuple[str, ...],
    known_names: Mapping[str, Collection[str]],
) -> ConvertedOption:
    if source in _REASONS:
        return ConvertedOption(source, values, None, _REASONS[source])
    target = _RENAMED.get(source, source)
    section, name = target
    if source == _DRIVERS_OPTION:
        values = tuple(map(_convert_drivers, values))
    is_known = name in known_names.get(section, ())
    if is_known or _DRIVER_SECTIONS.fullmatch(section):
        return ConvertedOption(source, values, target)
    return ConvertedOption(source, values, None, _NO_COUNTERPART)


def _convert_drivers(text: str) -> str:
    """Return a list of drivers with the names of this service."""
    names = [name.strip() for name in text.split(',')]
    return ','.join(_RENAMED_DRIVERS.get(name, name) for name in names if name)
