# SPDX-License-Identifier: Apache-2.0
"""The directive ``arq-states``: the state diagram and the table of transitions."""

from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList
from state_diagram import svg, table

from cyborg_lite.model.arqs.arqs import TRANSITIONS


class ArqStates(Directive):
    """The state diagram of ARQs and its table."""

    def run(self) -> list[nodes.Node]:
        """Return the picture and the table."""
        drawing = f'<div class="picture">{svg(TRANSITIONS)}</div>'
        picture = nodes.raw('', drawing, format='html')
        lines = ['.. list-table::', '   :class: compact', '   :header-rows: 1']
        lines += ['   :stub-columns: 1', '']
        for row in table(TRANSITIONS):
            cells = [f'- {cell}'.rstrip() for cell in row]
            lines += [f'   * {cells[0]}', *(f'     {cell}' for cell in cells[1:])]
        container = nodes.container()
        self.state.nested_parse(StringList(lines), self.content_offset, container)
        return [picture, *container.children]


def setup(app: Any) -> dict[str, bool]:
    """Register the directive with Sphinx."""
    app.add_directive('arq-states', ArqStates)
    return {'parallel_read_safe': True, 'parallel_write_safe': True}
