# SPDX-License-Identifier: Apache-2.0
"""What makes a device profile of no use, or of another than meant, on every host."""

from collections.abc import Iterator

from cyborg_lite.model.device_profiles import DeviceProfile, attach_target
from cyborg_lite.model.explanations import Reason, Why


def doubts(profile: DeviceProfile) -> Iterator[Reason]:
    """What an operator should know of it, wherever it fits."""
    if not profile.enabled:
        text = 'The profile is disabled: no new server can be made of it.'
        yield Reason(Why.DISABLED, text)
    targets = {attach_target(group) for group in profile.groups}
    if len(targets) > 1:
        text = (
            f'The groups have different attach targets, {", ".join(sorted(targets))}. '
            f'Nova attaches the accelerators of a server only where all of them are '
            f'for the guest: this server gets none. Make all groups alike.'
        )
        yield Reason(Why.MIXED_TARGETS, text)
