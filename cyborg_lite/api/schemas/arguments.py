# SPDX-License-Identifier: Apache-2.0
"""Descriptions of the path and query arguments, from ``arguments.yaml``."""

from collections.abc import Mapping
from importlib import resources
from typing import Any, Final

import yaml

from cyborg_lite.api.microversion import VERSIONS

Parameter = Mapping[str, Any]  # JSON

_TEXT: Final = resources.files(__package__).joinpath('arguments.yaml').read_text()
_ARGUMENTS: Final = yaml.safe_load(_TEXT)

IN_PATH: Final[Mapping[str, Parameter]] = _ARGUMENTS['path']
IN_QUERY: Final[Mapping[str, Parameter]] = _ARGUMENTS['query']

LONGEST_PREFIX: Final[int] = IN_QUERY['name_prefix']['schema']['maxLength']

IN_QUERY['microversion']['schema']['enum'] = [str(version) for version in VERSIONS]
