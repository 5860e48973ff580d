# SPDX-License-Identifier: Apache-2.0
"""Runs the revisions on the connection of ``cyborg_lite/db/core/migration.py``."""

from alembic import context

from cyborg_lite.db.core.tables import Base

connection = context.config.attributes['connection']

context.configure(
    connection=connection,
    target_metadata=Base.metadata,
    # A revision that fails is rolled back, except on MySQL and MariaDB, which commit
    # each statement that changes the schema.
    transactional_ddl=connection.dialect.name != 'mysql',
    # For new revisions: SQLite changes most parts of a table only by copying it.
    render_as_batch=connection.dialect.name == 'sqlite',
)
with context.begin_transaction():
    context.run_migrations()
