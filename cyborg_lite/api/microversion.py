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
"""Representation: ``fields``, JSON values, typed attributes, pages, generations."""

V2_6: Final = Microversion(2, 6)
"""Language of device profiles: selectors, sets, alternatives and known keys only."""

V2_7: Final = Microversion(2, 7)
"""Operations, hosts and usage: jobs, modes, cleaning, topologies, capacity, usages."""

VERSIONS: Final = tuple(Microversion(2, minor) for minor in range(8))
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
