# SPDX-License-Identifier: Apache-2.0
"""What every test needs."""

# First, as in every entry point: libraries look at once at what runs this process.
from cyborg_lite import runtime  # isort: skip

from hypothesis import settings

__all__ = ['runtime']

# How long an example takes says more of the machine than of the code.
settings.register_profile('untimed', deadline=None)
settings.load_profile('untimed')
