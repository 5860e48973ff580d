# SPDX-License-Identifier: Apache-2.0
"""The directive ``host-topology``: the picture of an example host.

``cyborg-lite-manage topology HOST --format svg`` draws the same picture of a real host.
"""

from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive
from example_host import build_example

from cyborg_lite.rendering.svg import format_svg


class HostTopologyPicture(Directive):
    """The picture of an example host."""

    def run(self) -> list[nodes.Node]:
        """Return the picture."""
        drawing = f'<div class="picture">{format_svg(build_example())}</div>'
        return [nodes.raw('', drawing, format='html')]


def setup(app: Any) -> dict[str, bool]:
    """Register the directive with Sphinx."""
    app.add_directive('host-topology', HostTopologyPicture)
    return {'parallel_read_safe': True, 'parallel_write_safe': True}
