# SPDX-License-Identifier: Apache-2.0
"""Options and sections that this service, its drivers and the libraries have."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from importlib.metadata import entry_points
from typing import Final

from keystoneauth1 import exceptions as keystoneauth
from keystoneauth1 import loading
from oslo_config import cfg

_DEFAULT: Final = 'DEFAULT'
_ENTRY_POINTS: Final = 'oslo.config.opts'
_NAMESPACES: Final = (
    'oslo.concurrency',
    'oslo.messaging',
    'oslo.policy',
    'oslo.middleware.cors',
    'oslo.middleware.healthcheck',
    'oslo.middleware.http_proxy_to_wsgi',
    'oslo.middleware.sizelimit',
    'keystonemiddleware.auth_token',
    'oslo.log',
    'oslo.service.service',
    'cyborg_lite.drivers',
    'cyborg_lite',
)

_AUTH_SECTIONS: Final = ('keystone_authtoken',)  # registered after the start
_GLOBAL_GROUPS: Final = ('oslo_messaging_metrics', 'oslo_messaging_tracing')

Names = Mapping[str, set[str]]  # option names by section
Sections = Mapping[str, Mapping[str, Sequence[str]]]  # values by section and option


def read_sections(path: str) -> Sections:
    """Return the values in a file.

    :raises ParseError: its syntax is invalid
    """
    sections: dict[str, dict[str, list[str]]] = {}
    cfg.ConfigParser(path, sections).parse()
    return sections


def list_known_names(conf: cfg.ConfigOpts, sections: Sections) -> Names:
    """Return the registered names, and those of libraries and plugins."""
    valid_names = _list_registered_names(conf)
    _add_plugin_options(valid_names, sections)
    points = {point.name: point for point in entry_points(group=_ENTRY_POINTS)}
    for namespace in _NAMESPACES:
        if namespace in points:
            for group, options in points[namespace].load()():
                section = getattr(group, 'name', group) or _DEFAULT
                _add_options(valid_names, section, options)
    return valid_names


def _list_registered_names(conf: cfg.ConfigOpts) -> defaultdict[str, set[str]]:
    names: defaultdict[str, set[str]] = defaultdict(set)
    for name in conf:
        if isinstance(conf[name], cfg.ConfigOpts.GroupAttr):
            names[name] |= set(conf[name])
        else:
            names[_DEFAULT].add(name)
    # The library has these groups in its global options only.
    for group in _GLOBAL_GROUPS:
        if group in cfg.CONF:
            names[group] |= set(cfg.CONF[group])
    return names


def _add_options(
    valid_names: defaultdict[str, set[str]], section: str, options: Sequence[cfg.Opt]
) -> None:
    for option in options:
        valid_names[section].add(option.dest)
        for deprecated in option.deprecated_opts:
            group = deprecated.group or section
            valid_names[group].add((deprecated.name or option.dest).replace('-', '_'))


def _add_plugin_options(
    valid_names: defaultdict[str, set[str]], sections: Sections
) -> None:
    """Add the options of the authentication plugins that the sections name."""
    plugins = {'auth_type', 'auth_section'}
    for section, values in sections.items():
        for name in values.get('auth_section', ()):
            valid_names[name] |= plugins
        for name in values.get('auth_type', ()):
            try:
                options = loading.get_auth_plugin_conf_options(name)
            except keystoneauth.NoMatchingPlugin:
                continue
            if section in (*valid_names, *_AUTH_SECTIONS):
                valid_names[section] |= plugins
                _add_options(valid_names, section, options)
