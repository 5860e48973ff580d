# SPDX-License-Identifier: Apache-2.0
"""The directives ``component-diagram`` and ``sequence-diagram``: SVG from text.

They need no program besides Python. A component diagram places boxes on a grid. The
first lines name the boxes with column and row, the others are arrows. A bar starts the
second line of a box, and an arrow may have no text::

    api (0, 1): cyborg-lite-api
    conductor (1, 1): cyborg-lite-conductor | on each controller
    api -> conductor: RPC

A sequence diagram has one column per participant, in the order of their first message.
An arrow ``-->`` is dashed, for a response::

    Nova -> API: PATCH /v2/accelerator_requests
    API --> Nova: 202
"""

from typing import Any

from component_svg import draw_components
from docutils import nodes
from docutils.parsers.rst import Directive
from sequence_svg import draw_sequence


class _Diagram(Directive):
    has_content = True
    optional_arguments = 1
    final_argument_whitespace = True

    def draw(self, lines: list[str], title: str) -> str:
        """Return the picture as SVG.

        :raises ValueError: a line cannot be parsed
        """
        raise NotImplementedError

    def run(self) -> list[nodes.Node]:
        """Return the picture; the argument is its text for screen readers."""
        try:
            picture = self.draw(list(self.content), ' '.join(self.arguments))
        except ValueError as error:
            raise self.error(str(error)) from error
        return [nodes.raw('', f'<div class="picture">{picture}</div>', format='html')]


class ComponentDiagram(_Diagram):
    """A diagram of components and their connections."""

    def draw(self, lines: list[str], title: str) -> str:
        """Return the picture as SVG."""
        return draw_components(lines, title)


class SequenceDiagram(_Diagram):
    """A diagram of messages between participants."""

    def draw(self, lines: list[str], title: str) -> str:
        """Return the picture as SVG."""
        return draw_sequence(lines, title)


def setup(app: Any) -> dict[str, bool]:
    """Register the directives with Sphinx."""
    app.add_directive('component-diagram', ComponentDiagram)
    app.add_directive('sequence-diagram', SequenceDiagram)
    return {'parallel_read_safe': True, 'parallel_write_safe': True}
