# SPDX-License-Identifier: Apache-2.0
"""Microversions of the API, and their negotiation."""

import re
from typing import Final, NamedTuple

import webob
from oslo_log import log

from cyborg_lite.errors.requests import NotAcceptable
from cyborg_lite.model.text import format_value

LOG = log.getLogger(__name__)

SERVICE_TYPE: Final = 'accelerator'
HEADER: Final = 'OpenStack-API-Version'
MINIMUM_HEADER: Final = 'OpenStack-API-Minimum-Version'
MAXIMUM_HEADER: Final = 'OpenStack-API-Maximum-Version'


class Microversion(NamedTuple):
    """A version of the API, ordered by its numbers."""

    major: int
    minor: int

    def __str__(self) -> str:
        return f'{self.major}.{self.minor}'


V2_0: Final = Microversion(2, 0)
"""The default for requests without a version header."""

V2_1: Final = Microversion(2, 1)
"""A patch of ARQs may set ``/project_id``."""

V2_2: Final = Microversion(2, 2)
"""``GET /v2/device_profiles/{name}`` accepts a name, not only a uuid."""

V2_3: Final = Microversion(2, 3)
"""Devices have the field ``status``."""

V2_4: Final = Microversion(2, 4)
"""ARQ states and histories, services, device health, jobs, explanations and pages."""

V2_5: Final = Microversion(2, 5)
"""``DELETE /v2/services/{uuid}`` removes a daemon that is gone, with its host."""

V2_6: Final = Microversion(2, 6)
"""``/v2/devices/{uuid}/cleanings`` shows the cleans of a device."""

V2_7: Final = Microversion(2, 7)
"""Modes of devices: ``/v2/devices/{uuid}/modes`` and the patch path ``/mode``."""

V2_8: Final = Microversion(2, 8)
"""Deployables have the field ``typed_attributes``."""

V2_9: Final = Microversion(2, 9)
"""``/v2/hosts/{name}/topology`` shows the devices of a host and who uses them."""

V2_10: Final = Microversion(2, 10)
"""``/v2/jobs`` lists, requests, retries and cancels jobs of all types."""

V2_11: Final = Microversion(2, 11)
"""``/v2/devices/{uuid}/events``; devices have ``health_since`` and ``usage_age``."""

V2_12: Final = Microversion(2, 12)
"""``/v2/usages`` shows the use of units by projects."""

V2_13: Final = Microversion(2, 13)
"""``accel:selector`` and quantities of device profiles are compiled to a trait."""

V2_14: Final = Microversion(2, 14)
"""``/v2/devices/{uuid}/configuration`` and the patch path ``/configuration``."""

V2_15: Final = Microversion(2, 15)
"""Collections have pages of at most ``[api] max_limit`` elements."""

V2_16: Final = Microversion(2, 16)
"""Lists of changes may have the media type ``application/json-patch+json``."""

V2_17: Final = Microversion(2, 17)
"""Responses to reads have ``Cache-Control``."""

V2_18: Final = Microversion(2, 18)
"""Unknown ``accel:`` keys of device profiles are refused."""

V2_19: Final = Microversion(2, 19)
"""``accel:same`` of device profiles makes one group of several."""

V2_20: Final = Microversion(2, 20)
"""Groups of device profiles have ``alternatives``; ARQs have ``alternative``."""

V2_21: Final = Microversion(2, 21)
"""Device profiles, devices and attributes have ``generation``, for ``If-Match``."""

V2_22: Final = Microversion(2, 22)
"""``/v2/device_profiles/{id}/capacity`` counts the further servers that fit."""

V2_23: Final = Microversion(2, 23)
"""The argument ``fields`` selects the fields of objects in responses."""

V2_24: Final = Microversion(2, 24)
"""``name_prefix`` selects device profiles and deployables by the start of the name."""

V2_25: Final = Microversion(2, 25)
"""The same as 2.24."""

V2_26: Final = Microversion(2, 26)
"""The same as 2.24."""

V2_27: Final = Microversion(2, 27)
"""``std_board_info`` and ``attributes_list`` are JSON in place of JSON text."""

V2_28: Final = Microversion(2, 28)
"""Explanations warn of mdevs that Nova drops and of many allocation candidates."""

V2_29: Final = Microversion(2, 29)
"""``settings`` of hardware sets and their changes are JSON in place of JSON text."""

V2_30: Final = Microversion(2, 30)
"""``/v2/hosts/{name}/topology`` shows the PCIe bridges above each device."""

V2_31: Final = Microversion(2, 31)
"""Next links of lists have cursors, which outlive the last element of a page."""

V2_32: Final = Microversion(2, 32)
"""``fields`` for services, bitstreams, device events and the topology of a host."""

VERSIONS: Final = tuple(Microversion(2, minor) for minor in range(33))
MINIMUM: Final = VERSIONS[0]
MAXIMUM: Final = VERSIONS[-1]

_NUMBERS: Final = re.compile(r'(0|[1-9][0-9]{0,4})\.(0|[1-9][0-9]{0,4})')


def negotiate(header: str | None) -> Microversion:
    """Return the microversion that a header requests.

    The header may name several services, separated by commas, as the API working group
    specifies. A bare version comes from an old client and applies to this service.

    :param header: None: the request has no header
    :raises NotAcceptable: the version is malformed or not supported
    """
    requested = None if header is None else _select_version(header)
    if requested is None:
        return MINIMUM
    if requested == 'latest':
        return MAXIMUM
    numbers = _NUMBERS.fullmatch(requested)
    if numbers:
        version = Microversion(int(numbers[1]), int(numbers[2]))
        if version in VERSIONS:
            return version
    raise NotAcceptable(
        reason=f'API version {format_value(header)} is not supported; '
        f'supported versions are {MINIMUM} to {MAXIMUM}.'
    )


def add_version_headers(response: webob.Response) -> None:
    """Add the range of versions to a response, and ``Vary`` for caches."""
    response.headers[MINIMUM_HEADER] = str(MINIMUM)
    response.headers[MAXIMUM_HEADER] = str(MAXIMUM)
    response.headers.add('Vary', HEADER)


def _select_version(header: str) -> str | None:
    """Return the last version for this service; None: all are for other services."""
    version = None
    services = [item.split() for item in header.lower().split(',')]
    for words in services:
        if not words:
            continue
        if words[0] == SERVICE_TYPE:
            version = ' '.join(words[1:])
        elif len(words) == 1:
            LOG.warning('Microversion header without a service type: %s', words)
            version = words[0]
    # An empty header is malformed, not absent.
    return version if any(services) else ''
