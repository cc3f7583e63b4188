"""Second schema: a stamp that lets an index run skip unchanged folders, and stored pairwise tests."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the stamp (empty for rows that exist: they are read again once) and the table of tests."""
    op.add_column("evaluations", sa.Column("stamp", sa.Text, nullable=False, server_default=""))
    op.create_table(
        "pair_tests",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("result_a", sa.Integer, nullable=False),
        sa.Column("result_b", sa.Integer, nullable=False),
        sa.Column("n", sa.Integer, nullable=False),
        *[sa.Column(name, sa.Double, nullable=False) for name in ("delta", "low", "high", "p")],
        sa.Column("wins", sa.Integer, nullable=False),
        sa.Column("losses", sa.Integer, nullable=False),
        sa.Column("method", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_pair_tests"),
        sa.UniqueConstraint("result_a", "result_b", name="uq_pair_tests_result_a_result_b"),
        sa.ForeignKeyConstraint(["result_a"], ["results.id"], name="fk_pair_tests_result_a_results"),
        sa.ForeignKeyConstraint(["result_b"], ["results.id"], name="fk_pair_tests_result_b_results"),
    )
