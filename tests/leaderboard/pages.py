"""Drives the real app through Streamlit's test harness."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from streamlit.testing.v1 import AppTest

APP = Path(__file__).resolve().parents[2] / "leaderboard" / "app.py"
TITLES = {
    "": "Results",
    "pareto": "Quality and cost",
    "algorithms": "Algorithms",
    "items": "Items",
    "denoising": "Denoising",
    "stability": "Answer stability",
    "reproducibility": "Reproducibility",
    "problems": "Problems",
    "run": "Run",
}


def opened() -> AppTest:
    """Return the app after its first run."""
    return AppTest.from_file(str(APP), default_timeout=120).run()


def go(app: AppTest, address: str, **parameters: str) -> AppTest:
    """Return the app on the page at ``address`` with ``parameters`` in the address."""
    known = {info["url_pathname"]: key for key, info in app._registered_pages.items()}  # functions have no file to name
    app._page_hash = known[address]
    for name, value in parameters.items():
        app.query_params[name] = value
    return app.run()


def markup(app: AppTest) -> str:
    """Return all HTML that the page shows, one element after the other."""
    return "\n".join(element.proto.body for element in app.get("html") if "<style>" not in element.proto.body)


def texts(app: AppTest) -> list[str]:
    """Return what the page shows as plain text, code, captions and notes."""
    found: list[Any] = [*app.text, *app.code, *app.caption, *app.info, *app.warning, *app.success, *app.error]
    return [str(element.value) for element in found]
