"""First schema: checkpoints, evaluations, results."""

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Make the three tables."""
    op.create_table(
        "checkpoints",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("folder", sa.Text, nullable=False),
        sa.Column("weight_hash", sa.Text, nullable=False),
        sa.Column("family", sa.Text, nullable=False),
        sa.Column("algorithm", sa.Text),
        sa.Column("parent", sa.Text),
        sa.Column("parent_hash", sa.Text),
        sa.Column("manifest", sa.JSON),
        sa.Column("labels", sa.JSON, nullable=False),
        sa.Column("registered", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_checkpoints"),
        sa.UniqueConstraint("folder", "weight_hash", name="uq_checkpoints_folder_weight_hash"),
    )
    op.create_index("ix_checkpoints_name", "checkpoints", ["name"])
    op.create_index("ix_checkpoints_weight_hash", "checkpoints", ["weight_hash"])
    op.create_table(
        "evaluations",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("run_id", sa.Text, nullable=False),
        sa.Column("folder", sa.Text, nullable=False),
        sa.Column("digest", sa.Text, nullable=False),
        sa.Column("origin", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("started", sa.Text),
        sa.Column("finished", sa.Text),
        sa.Column("manifest", sa.JSON),
        sa.Column("labels", sa.JSON, nullable=False),
        sa.Column("registered", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_evaluations"),
        sa.UniqueConstraint("folder", "digest", name="uq_evaluations_folder_digest"),
    )
    op.create_index("ix_evaluations_run_id", "evaluations", ["run_id"])
    numbers = [sa.Column(name, sa.Double) for name in ("value", "low", "high", "nfe", "tpf", "tps")]
    op.create_table(
        "results",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("evaluation_id", sa.Integer, nullable=False),
        sa.Column("model", sa.Text, nullable=False),
        sa.Column("dataset", sa.Text, nullable=False),
        sa.Column("metric", sa.Text, nullable=False),
        *numbers,
        sa.Column("n", sa.Integer, nullable=False),
        sa.Column("expected", sa.Integer),
        sa.Column("weight_hash", sa.Text),
        sa.Column("spec_digest", sa.Text),
        sa.Column("row", sa.JSON, nullable=False),
        sa.Column("settings", sa.JSON, nullable=False),
        sa.Column("labels", sa.JSON, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_results"),
        sa.ForeignKeyConstraint(["evaluation_id"], ["evaluations.id"], name="fk_results_evaluation_id_evaluations"),
    )
    op.create_index("ix_results_evaluation_id", "results", ["evaluation_id"])
    op.create_index("ix_results_weight_hash", "results", ["weight_hash"])
