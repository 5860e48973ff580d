# SPDX-License-Identifier: Apache-2.0
"""Rules of bind jobs, as the default configuration has them."""

from typing import Final

from cyborg_lite.conductor.arqs.binding import BindRules

RULES: Final = BindRules(deadline=240, event_deadline=300, require_allocation=True)
