# SPDX-License-Identifier: Apache-2.0
"""The version of the installed product."""

from importlib import metadata


def version() -> str:
    """As packaged; ``unknown`` when run from a tree that was never installed."""
    try:
        return metadata.version('cyborg-lite')
    except metadata.PackageNotFoundError:
        return 'unknown'
