from __future__ import annotations

import os

import pytest

from tests.cases.case_lines import HERE, ids, lines
from tests.cases.owners import OWNERS, PENDING, keys, owner

ROOT = HERE.parents[1]
LINES = lines()


@pytest.mark.parametrize("line", LINES, ids=ids(LINES))
def test_every_line_has_an_owner(line):
    assert owner(line), f"{line['id']} of category '{line['category']}' is run by no test and listed as pending nowhere"


def test_no_key_is_owned_and_pending():
    assert not set(OWNERS) & set(PENDING)


@pytest.mark.parametrize("key", sorted(OWNERS))
def test_an_owner_runs_its_lines(key):
    module = ROOT / OWNERS[key]
    assert module.is_file(), f"{key}: {module} does not exist"
    assert key in module.read_text(), f"{module} never mentions {key}"


@pytest.mark.skipif(bool(os.environ.get("DARE_CASES")), reason="DARE_CASES names other lines than the project's own")
def test_pending_keys_still_have_lines():
    assert set(PENDING) <= {key for line in LINES for key in keys(line)}


def test_an_unknown_category_is_nobodys():
    assert owner({"id": "X001", "category": "divination", "input": {}}) is None
