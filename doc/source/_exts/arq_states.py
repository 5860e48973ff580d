# SPDX-License-Identifier: Apache-2.0
"""The directive ``arq-states``: the diagram, and the table that it is drawn from."""

from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList
from state_diagram import svg, table

from cyborg_lite.model.arqs import TRANSITIONS


class ArqStates(Directive):
    def run(self) -> list[nodes.Node]:
        picture = nodes.raw('', svg(TRANSITIONS), format='html')
        lines = ['.. list-table::', '   :header-rows: 1', '   :stub-columns: 1', '']
        for row in table(TRANSITIONS):
            cells = [f'- {cell}'.rstrip() for cell in row]
            lines += [f'   * {cells[0]}', *(f'     {cell}' for cell in cells[1:])]
        holder = nodes.container()
        self.state.nested_parse(StringList(lines), self.content_offset, holder)
        return [picture, *holder.children]


def setup(app: Any) -> dict[str, bool]:
    app.add_directive('arq-states', ArqStates)
    return {'parallel_read_safe': True, 'parallel_write_safe': True}
