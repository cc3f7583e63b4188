"""Third schema: noise floors, measured under other batch sizes, attention back ends and dtypes."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add the table of floors."""
    op.create_table(
        "noise_floors",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("evaluation_id", sa.Integer, nullable=False),
        sa.Column("model", sa.Text, nullable=False),
        sa.Column("dataset", sa.Text, nullable=False),
        sa.Column("weight_hash", sa.Text),
        sa.Column("n", sa.Integer, nullable=False),
        *[sa.Column(name, sa.Double, nullable=False) for name in ("flip_rate", "low", "high")],
        sa.Column("variations", sa.JSON, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_noise_floors"),
        sa.UniqueConstraint("evaluation_id", "model", "dataset", name="uq_noise_floors_evaluation_id_model_dataset"),
        sa.ForeignKeyConstraint(
            ["evaluation_id"], ["evaluations.id"], name="fk_noise_floors_evaluation_id_evaluations"
        ),
    )
