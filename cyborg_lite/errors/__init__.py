# SPDX-License-Identifier: Apache-2.0
"""Error classes of the service by subject, with HTTP code, text and advice.

``message`` and ``advice`` are templates, filled with the arguments of the constructor.
Clients may read ``text``: it never contains SQL, paths or secrets.
"""

import pkgutil
from typing import Final

MODULES: Final = tuple(
    f'{__name__}.{module.name}' for module in pkgutil.iter_modules(__path__)
)
"""Modules whose classes RPC rebuilds from an answer."""
