# SPDX-License-Identifier: Apache-2.0
"""Options of oslo.limit: the endpoint with the limits, and access to Keystone."""

from typing import Final

from oslo_config import cfg

from cyborg_lite.conf import service_auth

GROUP: Final = 'oslo_limit'

_ENDPOINT: Final[list[cfg.Opt]] = [
    cfg.StrOpt(
        'endpoint_id',
        help="""
Id in Keystone of the endpoint of this service. The limits belong to its service and
region. Set it, or endpoint_service_type, if [limits] enabled is true.
""",
    ),
    cfg.StrOpt(
        'endpoint_service_name',
        help='Name of this service in Keystone. Set it if several have the same type.',
    ),
    cfg.StrOpt(
        'endpoint_service_type',
        default='accelerator',
        help='Type of this service in Keystone. It is not used with endpoint_id.',
    ),
    cfg.StrOpt(
        'endpoint_region_name',
        help='Region of the endpoint of this service. Set it if there are several.',
    ),
    cfg.StrOpt(
        'endpoint_interface',
        default='public',
        choices=('public', 'internal', 'admin'),
        help='Interface of the endpoint of this service. Set it if none is public.',
    ),
]

OPTIONS: Final[list[cfg.Opt]] = [
    *_ENDPOINT,
    *service_auth.options('identity', 'with the version, e.g. http://controller/v3'),
]

SAMPLE_OPTIONS: Final[list[cfg.Opt]] = [*OPTIONS, *service_auth.PLUGIN_OPTIONS]
