# SPDX-License-Identifier: Apache-2.0
"""The way of a request through the layers is short enough to follow."""

import sys
from pathlib import Path
from typing import Any, Final

from sqlalchemy import event

from tests.support.api.conversation import NOVA, Client
from tests.support.api.patches import build_bind
from tests.support.sources import PACKAGE

MAX_FRAMES: Final = 20
_WRITES: Final = ('INSERT', 'UPDATE', 'DELETE')


def list_frames() -> list[str]:
    """Return the functions of the package that are being called, innermost first."""
    frame, names = sys._getframe(), []
    while frame.f_back is not None:
        frame = frame.f_back
        path = Path(frame.f_code.co_filename)
        if path.is_relative_to(PACKAGE):
            name = f'{path.relative_to(PACKAGE)}:{frame.f_code.co_qualname}'
            names.append(name)
    return names


def test_bind_reaches_first_write_in_few_frames(client: Client) -> None:
    client.create_profile('dp1', {'resources:FPGA': '1'})
    nova = client.as_(NOVA)
    patch = {arq['uuid']: build_bind() for arq in nova.create_arqs()}
    stacks: list[list[str]] = []

    # Any: what SQLAlchemy passes to its listeners.
    def record(_connection: Any, _cursor: Any, statement: str, *_: Any) -> None:
        if statement.lstrip().upper().startswith(_WRITES):
            stacks.append(list_frames())

    for engine in nova.conductor.database.engines:
        event.listen(engine, 'before_cursor_execute', record)
    try:
        assert nova.patch('/accelerator_requests', patch).status == 202
    finally:
        for engine in nova.conductor.database.engines:
            event.remove(engine, 'before_cursor_execute', record)
    assert len(stacks[0]) <= MAX_FRAMES, '\n'.join(stacks[0])
