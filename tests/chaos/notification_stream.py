# SPDX-License-Identifier: Apache-2.0
"""A log of the notifications that were committed.

It is a table that a trigger of the database fills. A row of it exists if and only
if the transaction of the change was committed.
"""

import json
from collections import defaultdict
from collections.abc import Iterable
from typing import Any, Final

from sqlalchemy import create_engine, text

from tests.servers.notification_consumer import Message

_COLUMNS: Final = 'id, uuid, event_type, payload'
_TABLE: Final = f'CREATE TABLE notification_log AS SELECT {_COLUMNS} FROM notifications'
_COPY: Final = (
    f'INSERT INTO notification_log ({_COLUMNS}) '
    'VALUES (NEW.id, NEW.uuid, NEW.event_type, NEW.payload)'
)
_TRIGGERS: Final = {
    'mysql': (
        'CREATE TRIGGER log_notifications AFTER INSERT ON notifications '
        f'FOR EACH ROW {_COPY}',
    ),
    'postgresql': (
        'CREATE FUNCTION log_notification() RETURNS trigger LANGUAGE plpgsql AS '
        f"'BEGIN {_COPY}; RETURN NULL; END'",
        'CREATE TRIGGER log_notifications AFTER INSERT ON notifications '
        'FOR EACH ROW EXECUTE FUNCTION log_notification()',
    ),
}


class CommitLog:
    """The notifications that were committed."""

    def __init__(self, connection: str) -> None:
        """Store the argument."""
        self._engine = create_engine(connection)

    def start(self) -> None:
        """Create the table and its trigger."""
        with self._engine.begin() as connection:
            for statement in (_TABLE, *_TRIGGERS[self._engine.dialect.name]):
                connection.execute(text(statement))

    def read(self) -> list[Message]:
        """Return the notifications in the order in which they were written."""
        query = f'SELECT {_COLUMNS} FROM notification_log ORDER BY id'
        with self._engine.connect() as connection:
            rows = connection.execute(text(query)).all()
        return [Message(row.uuid, row.event_type, _parse(row.payload)) for row in rows]

    def count_waiting(self) -> int:
        """Return the number of notifications that are not sent."""
        with self._engine.connect() as connection:
            query = text('SELECT COUNT(*) FROM notifications')
            return int(connection.execute(query).scalar_one())

    def find_sender(self) -> int | None:
        """Return the pid of the process that sends notifications."""
        query = text("SELECT owner FROM leases WHERE name = 'notifications'")
        with self._engine.connect() as connection:
            owner = connection.execute(query).scalar()
        return int(owner.split(':')[1]) if owner else None

    def expire_lease(self) -> None:
        """End the lease of a killed sender, as the time does after 30 seconds."""
        query = "UPDATE leases SET lease_until = 0 WHERE name = 'notifications'"
        with self._engine.begin() as connection:
            connection.execute(text(query))

    def close(self) -> None:
        """Close the connections."""
        self._engine.dispose()


# Any: JSON, which one database returns as text.
def _parse(payload: Any) -> Any:
    return json.loads(payload) if isinstance(payload, str) else payload


def group_by_object(messages: Iterable[Message]) -> dict[str, list[str]]:
    """Return the message ids of each ARQ, device and device profile in their order."""
    groups: dict[str, list[str]] = defaultdict(list)
    for message in messages:
        groups[message.payload['uuid']].append(message.message_id)
    return dict(groups)
