"""The decoding configuration and the registries it is checked against; standard library only."""

from dare_eval.spec.checks import check_token_ids
from dare_eval.spec.record import DecodeSpec
from dare_eval.spec.tables import (
    FAMILIES,
    PARITY_SWITCHES,
    POLICIES,
    POLICY_FIELDS,
    FamilyTraits,
    family_traits,
    policy_fields,
)

__all__ = [
    "FAMILIES",
    "PARITY_SWITCHES",
    "POLICIES",
    "POLICY_FIELDS",
    "DecodeSpec",
    "FamilyTraits",
    "check_token_ids",
    "family_traits",
    "policy_fields",
]
