# SPDX-License-Identifier: Apache-2.0
"""Generations: numbers by which a client detects that another client was faster.

A change compares the generation in an UPDATE, which locks the row until the end of the
transaction. Of two concurrent changes with the same expected generation one is refused.
"""

from typing import Any

from sqlalchemy import update
from sqlalchemy.orm import Session

from cyborg_lite.db.core.change import change
from cyborg_lite.errors.requests import GenerationConflict


# Any: a class of `tables` that has the columns `uuid` and `generation`.
def check_generation(
    session: Session, table: Any, uuid: str, expected: int | None
) -> None:
    """Lock a row whose generation is the expected one, until the transaction ends.

    Call it after the check that the row exists, and before the change.

    :param expected: None: any generation
    :raises GenerationConflict: the row has another generation
    """
    if expected is None:
        return
    is_expected = table.uuid == uuid, table.generation == expected
    unchanged = {name: getattr(table, name) for name in ('generation', 'updated_at')}
    if not change(session, update(table).where(*is_expected).values(**unchanged)):
        raise GenerationConflict(uuid=uuid, generation=expected)


def raise_generation(session: Session, table: Any, uuid: str) -> None:
    """Increase the generation of a row whose change is stored in other rows."""
    unchanged = {'updated_at': table.updated_at}
    change(session, update(table).where(table.uuid == uuid).values(**unchanged))
