# SPDX-License-Identifier: Apache-2.0
"""Standard traits that mark the owner of a resource provider."""

from typing import Final

OWNER_CYBORG: Final = 'OWNER_CYBORG'
"""Trait of every provider that this service manages."""

OWNER_NOVA: Final = 'OWNER_NOVA'
"""Trait of providers that Nova manages."""

EMPTIED: Final = 'CUSTOM_CYBORG_EMPTIED'
"""Trait of a provider without inventory that is kept for a removed device."""
