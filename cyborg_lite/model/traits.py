# SPDX-License-Identifier: Apache-2.0
"""Traits that this service or Nova sets on resource providers."""

from typing import Final

OWNER_CYBORG: Final = 'OWNER_CYBORG'
"""Trait of every provider that this service manages."""

OWNER_NOVA: Final = 'OWNER_NOVA'
"""Trait of providers that Nova manages."""

DEGRADED: Final = 'CUSTOM_CYBORG_DEGRADED'
"""Trait of the providers of a degraded device. A device profile may refuse it."""

EMPTIED: Final = 'CUSTOM_CYBORG_EMPTIED'
"""Trait of a provider without inventory that is kept for a removed device."""
