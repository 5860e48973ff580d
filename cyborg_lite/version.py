# SPDX-License-Identifier: Apache-2.0
"""The version of the installed package."""

from importlib import metadata


def version() -> str:
    """Return the package version, or ``unknown`` if the package is not installed."""
    try:
        return metadata.version('cyborg-lite')
    except metadata.PackageNotFoundError:
        return 'unknown'
