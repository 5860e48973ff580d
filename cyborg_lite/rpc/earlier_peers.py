# SPDX-License-Identifier: Apache-2.0
"""Answers of daemons of an earlier release, during an upgrade."""

from typing import Final

from cyborg_lite.exceptions import ServiceUnavailable

UPGRADE_TIME: Final = 600.0
"""Seconds until a conductor of an earlier release may have been upgraded."""


def is_unsupported(error: ServiceUnavailable) -> bool:
    """Check whether a call failed because the server does not know the method yet."""
    cause = error.__cause__
    remote_type = getattr(cause, 'exc_type', None) or type(cause).__name__
    return bool(remote_type.startswith(('UnsupportedVersion', 'NoSuchMethod')))
