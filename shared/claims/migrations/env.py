"""Runs the migrations on the connection that `shared.claims.schema.migrate` hands over."""

from alembic import context

context.configure(
    connection=context.config.attributes["connection"],
    version_table=context.config.attributes["version_table"],
    transaction_per_migration=True,
)
with context.begin_transaction():
    context.run_migrations()
