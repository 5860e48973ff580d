# SPDX-License-Identifier: Apache-2.0
"""The formats in which the topology of a host can be shown."""

import dataclasses
import json
from collections.abc import Callable, Mapping
from typing import Final

from cyborg_lite.model.host_topology import HostTopology
from cyborg_lite.rendering.dot import format_dot
from cyborg_lite.rendering.page import format_page
from cyborg_lite.rendering.svg import format_svg
from cyborg_lite.rendering.tree import format_tree


def format_json(topology: HostTopology) -> str:
    """Return the topology as a JSON object with the fields of the API."""
    return json.dumps(dataclasses.asdict(topology), indent=2)


FORMATS: Final[Mapping[str, Callable[[HostTopology], str]]] = {
    'tree': format_tree,
    'svg': format_svg,
    'dot': format_dot,
    'html': format_page,
    'json': format_json,
}
