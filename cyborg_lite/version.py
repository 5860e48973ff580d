# SPDX-License-Identifier: Apache-2.0
"""The version of the package; ``setup.cfg`` reads it from here."""

from typing import Final

VERSION: Final = '1.0.0.dev0'
"""The release; with ``.devN``, a development version of the next one."""
