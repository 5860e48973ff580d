# SPDX-License-Identifier: Apache-2.0
"""Answers of daemons of an earlier release, during an upgrade."""

from cyborg_lite.exceptions import ServiceUnavailable


def is_unsupported(error: ServiceUnavailable) -> bool:
    """Check whether a call failed because the server does not know the method yet."""
    cause = error.__cause__
    remote_type = getattr(cause, 'exc_type', None) or type(cause).__name__
    return bool(remote_type.startswith(('UnsupportedVersion', 'NoSuchMethod')))
