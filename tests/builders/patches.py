# SPDX-License-Identifier: Apache-2.0
"""Bodies of PATCH requests."""

from typing import Any

IMAGE = '47840318-1387-4d41-8b72-61a23362641d'


def build_program_patch(image: Any = IMAGE, **operation: Any) -> list[dict[str, Any]]:
    """Return the patch that programs a deployable; it may be invalid."""
    value = [{'image_uuid': image}]
    return [{'path': '/program', 'op': 'replace', 'value': value, **operation}]


def build_replace_patch(**values: Any) -> list[dict[str, Any]]:
    """Return a JSON patch that replaces fields; the values may be invalid."""
    return [
        {'op': 'replace', 'path': f'/{field}', 'value': value}
        for field, value in values.items()
    ]
