# SPDX-License-Identifier: Apache-2.0
"""Limits that several packages share."""

from typing import Final

REASON_MAX_LENGTH: Final = 255
"""Characters of a stored reason; longer reasons are cut."""
