"""Runs migrations on the connection that ``records.database`` hands over; there is no other way in."""

from alembic import context

from dare_eval.records.tables import Base

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=Base.metadata,
    render_as_batch=True,  # SQLite cannot alter a column in place
)
with context.begin_transaction():
    context.run_migrations()
