"""Configuration cases C170, C172, C173, C175: refused before anything is loaded, with key, value and remedy."""

from __future__ import annotations

import pytest

from dare_eval.errors import UsageError
from dare_eval.spec import DecodeSpec, check_token_ids
from tests.cases.case_lines import ids, lines

CASES = [line for line in lines("config") if line["id"] in ("C170", "C172", "C173", "C175")]


@pytest.mark.parametrize("case", CASES, ids=ids(CASES))
def test_config(case):
    given = case["input"]
    with pytest.raises(UsageError) as caught:
        if "pad_token_id" in given:
            check_token_ids(mask_id=given["mask_token_id"], pad_id=given["pad_token_id"])
        else:
            DecodeSpec.build("llada", **{"gen_length": 128, "block_length": 32, "steps": 64} | given)
    for part in case["expected"]["error_contains"]:
        assert part in str(caught.value)
