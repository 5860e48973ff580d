# SPDX-License-Identifier: Apache-2.0
"""Wire names of message classes: the names under which their formats were recorded.

Class names do not occur in messages. The wire name identifies the recorded format of a
class that has been renamed since.
"""

from collections.abc import Mapping
from typing import Final

WIRE_NAMES: Final[Mapping[str, str]] = {
    'AllocatedHandle': 'HeldHandle',
    'AttachHandle': 'Unit',
    'FitResult': 'Verdict',
    'GroupFit': 'GroupVerdict',
    'HeartbeatDetails': 'Vitals',
    'HostFit': 'HostVerdict',
    'ReasonCode': 'Why',
}
