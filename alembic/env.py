# SPDX-License-Identifier: Apache-2.0
"""Run by alembic for each command; ``cyborg_lite/db/migration.py`` has connected."""

from alembic import context

from cyborg_lite.db.tables import Base

connection = context.config.attributes['connection']

context.configure(
    connection=connection,
    target_metadata=Base.metadata,
    # A revision that fails leaves nothing behind, except where the server cannot.
    transactional_ddl=connection.dialect.name != 'mysql',
    # SQLite can alter a table only by copying it.
    render_as_batch=connection.dialect.name == 'sqlite',
)
with context.begin_transaction():
    context.run_migrations()
