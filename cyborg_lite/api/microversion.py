# SPDX-License-Identifier: Apache-2.0
"""The microversions of the API, and how a client asks for one."""

import re
from dataclasses import dataclass
from typing import Final

import webob
from oslo_log import log

from cyborg_lite.exceptions import NotAcceptable
from cyborg_lite.model.text import shown

LOG = log.getLogger(__name__)

SERVICE_TYPE: Final = 'accelerator'
HEADER: Final = 'OpenStack-API-Version'
MINIMUM_HEADER: Final = 'OpenStack-API-Minimum-Version'
MAXIMUM_HEADER: Final = 'OpenStack-API-Maximum-Version'


@dataclass(frozen=True, slots=True, order=True)
class Microversion:
    major: int
    minor: int

    def __str__(self) -> str:
        return f'{self.major}.{self.minor}'


V2_0: Final = Microversion(2, 0)
"""What every client speaks, and who sends no header gets."""

V2_1: Final = Microversion(2, 1)
"""A patch of accelerator requests may name ``/project_id``."""

V2_2: Final = Microversion(2, 2)
"""``GET /v2/device_profiles/{name}``, not only by uuid."""

V2_3: Final = Microversion(2, 3)
"""Devices show their ``status``."""

V2_4: Final = Microversion(2, 4)
"""What operators asked for: all states, reasons and histories, services, next pages."""

VERSIONS: Final = (V2_0, V2_1, V2_2, V2_3, V2_4)
MINIMUM: Final = VERSIONS[0]
MAXIMUM: Final = VERSIONS[-1]

_NUMBERS: Final = re.compile(r'(0|[1-9][0-9]{0,4})\.(0|[1-9][0-9]{0,4})')


def negotiate(header: str | None) -> Microversion:
    """The version that the value of the header asks for; None: there is no header.

    The value may name several services, parted by commas, as the API working group
    has it. A bare version is an old client's, and means ours.

    :raises NotAcceptable: it is no version, or none that is served
    """
    asked = None if header is None else _asked_of_us(header)
    if asked is None:
        return MINIMUM
    if asked == 'latest':
        return MAXIMUM
    numbers = _NUMBERS.fullmatch(asked)
    if numbers:
        version = Microversion(int(numbers[1]), int(numbers[2]))
        if version in VERSIONS:
            return version
    raise NotAcceptable(
        reason=f'Version {shown(header)} of the API is not served; '
        f'versions {MINIMUM} to {MAXIMUM} are.'
    )


def announce(response: webob.Response) -> None:
    """Say on an answer which versions there are, and that answers differ by them."""
    response.headers[MINIMUM_HEADER] = str(MINIMUM)
    response.headers[MAXIMUM_HEADER] = str(MAXIMUM)
    response.headers.add('Vary', HEADER)


def _asked_of_us(header: str) -> str | None:
    """The last version that is meant for us; None: all are for other services."""
    found = None
    parts = [part.split() for part in header.lower().split(',')]
    for words in parts:
        if not words:
            continue
        if words[0] == SERVICE_TYPE:
            found = ' '.join(words[1:])
        elif len(words) == 1:
            LOG.warning('A client asked for a version of no service: %s.', words)
            found = words[0]
    # A header with nothing in it asks for something all the same.
    return found if any(parts) else ''
