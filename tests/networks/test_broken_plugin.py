"""A broken or careless outside package is named to whoever asks for its part, and to nobody else an obstacle."""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
from importlib.metadata import EntryPoint

import pytest

from dare_eval import registry
from dare_eval.errors import DataError, SetupError, UsageError
from dare_eval.networks import config as config_module
from dare_eval.networks import make_config
from dare_eval.networks.families.base import Family, qwen_fields
from dare_eval.registry import Registry
from dare_eval.spec import FAMILIES
from tests.networks.shapes import DREAM, LLADA, QWEN, SDAR_MOE

FAMILY_KIND = "dare_eval.networks.families.base:Family"
POLICY_KIND = "dare_eval.decoding.policies.base:Policy"
HERE = __name__
OTHER = QWEN | {"model_type": "other_dllm"}


def family(name="other", types=("other_dllm",), architectures=(), parse=qwen_fields):
    return Family(name=name, model_types=types, architectures=architectures, parse=parse)


A_DICT = {"name": "brk"}
RIGHT = family()
GREEDY = family("greedy", ("llada", "greedy"), ("DreamModel",))
LIAR = family("llada", ("liar",))


class NoPolicy:
    pass


@pytest.fixture
def families(monkeypatch):
    """Make the registry of families anew with entry points of an outside package."""

    def install(**targets):
        points = [EntryPoint(name, target, "dare.families") for name, target in targets.items()]
        monkeypatch.setattr(registry, "entry_points", lambda group: points)
        builtin = {name: target for name, target in FAMILIES._targets.items() if isinstance(target, str)}
        made = Registry("model family", "dare.families", builtin, instance_of=FAMILY_KIND)
        monkeypatch.setattr(config_module, "FAMILIES", made)
        return made

    return install


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("brk_missing:FAMILY", "ModuleNotFoundError"),
        (f"{HERE}:ABSENT", "AttributeError"),
        (f"{HERE}:A_DICT", "a dict"),
        (f"{HERE}:NoPolicy", "the class NoPolicy"),
        (HERE, "a module"),
    ],
)
def test_a_broken_family_stops_only_those_who_ask_for_it(families, caplog, target, words):
    known = families(brk=target, other=f"{HERE}:RIGHT")
    with caplog.at_level(logging.WARNING):
        for raw, name in ((LLADA, "llada"), (DREAM, "dream"), (OTHER, "other"), (LLADA, "llada")):
            assert make_config(raw).family == name
    [record] = caplog.records
    assert "brk" in record.getMessage() and target in record.getMessage() and words in record.getMessage()
    brk = LLADA | {"model_type": "brk"}  # its architecture would do, but its model_type asks for another
    for ask in (lambda: known.get("brk"), lambda: make_config(brk)):
        with pytest.raises(SetupError) as caught:
            ask()
        for word in (f"brk = {target}", "dare.families", words, "uninstall"):
            assert word in str(caught.value)
    with pytest.raises(UsageError, match="unknown model_type 'nobody'"):
        make_config(OTHER | {"model_type": "nobody"})


def test_what_a_policy_must_be_is_checked_when_it_is_asked_for(monkeypatch):
    point = EntryPoint("mine", f"{HERE}:NoPolicy", "dare.decoders")
    monkeypatch.setattr(registry, "entry_points", lambda group: [point])
    known = Registry("decoding policy", "dare.decoders", {"quota": "no.such:Thing"}, subclass_of=POLICY_KIND)
    with pytest.raises(SetupError, match=f"is no subclass of {re.escape(POLICY_KIND)}"):
        known.get("mine")
    assert known.names() == ["mine", "quota"]


def test_a_model_type_or_architecture_of_another_family_is_refused_with_both_names(families):
    families(greedy=f"{HERE}:GREEDY")
    with pytest.raises(UsageError) as caught:
        make_config(LLADA)
    for word in ("model_type 'llada'", "llada, greedy", "llada: built in", f"greedy = {HERE}:GREEDY", "uninstall"):
        assert word in str(caught.value)
    with pytest.raises(UsageError, match=r"DreamModel.*dream, greedy"):
        make_config(DREAM | {"model_type": None})
    assert make_config(DREAM).family == "dream"
    assert make_config(SDAR_MOE).family == "sdar_moe"
    assert make_config(OTHER | {"model_type": "greedy"}).family == "greedy"


def test_two_packages_with_one_name_are_both_named_each_time(monkeypatch):
    points = [EntryPoint("twin", target, "dare.families") for target in ("one:FAMILY", "two:FAMILY")]
    monkeypatch.setattr(registry, "entry_points", lambda group: [EntryPoint("a", "a:A", group), *points])
    known = Registry("model family", "dare.families", {})
    for _ in range(2):  # a second look-up used to complain of 'a', which no one has twice
        with pytest.raises(UsageError, match=r"'twin'(.|\n)*two:FAMILY(.|\n)*one:FAMILY"):
            known.names()


def test_a_family_under_another_name_than_its_own_is_refused(families):
    families(liar=f"{HERE}:LIAR")
    with pytest.raises(SetupError, match="family 'liar' calls itself 'llada'"):
        make_config(OTHER | {"model_type": "liar"})
    assert make_config(LLADA).family == "llada"


def no_key(raw):
    return {"width": raw["no_such_key"]}


def no_item(raw):
    return {"width": [][3]}


PARSES = [
    (no_key, DataError, "KeyError: 'no_such_key'"),
    (no_item, DataError, "IndexError"),
    (lambda raw: None, SetupError, "NoneType"),
    (lambda raw: [("width", 8)], SetupError, "list"),
    (lambda raw: qwen_fields(raw) | {"colour": 1}, SetupError, "'colour'"),
    (lambda raw: qwen_fields(raw) | {"mask_id": 1}, SetupError, "'mask_id'"),
    (lambda raw: {k: v for k, v in qwen_fields(raw).items() if k != "width"}, SetupError, "no 'width'"),
    (lambda raw: qwen_fields(raw) | {"moe": {"experts": 4}}, SetupError, "moe as dict"),
    (lambda raw: qwen_fields(raw) | {"names": "qwen"}, SetupError, "names as str"),
    (lambda raw: qwen_fields(raw) | {"rotary_dim": 99}, DataError, "99"),
    (lambda raw: qwen_fields(raw) | {"rope_theta": float("nan")}, DataError, "nan"),
    (lambda raw: qwen_fields(raw) | {"norm_eps": "x"}, DataError, "'x'"),
]


@pytest.mark.parametrize(("parse", "error", "words"), PARSES, ids=[words for *_, words in PARSES])
def test_what_parse_may_not_do_is_an_error_that_names_the_family_or_the_value(
    families, monkeypatch, parse, error, words
):
    monkeypatch.setattr(sys.modules[HERE], "RIGHT", family(parse=parse))
    families(other=f"{HERE}:RIGHT")
    with pytest.raises(error) as caught:
        make_config(OTHER)
    assert words in str(caught.value) and ("'other'" in str(caught.value) or "config.json" in str(caught.value))


USE = """
import json
from dare_eval.networks import load_network
from dare_eval.networks.auto import register
from dare_eval.errors import SetupError
from dare_eval.spec import FAMILIES
register()
found = [load_network("tiny-sudoku").config.family]
try:
    FAMILIES.get("brk")
except SetupError as error:
    found.append(str(error))
print(json.dumps(found))
"""


def test_an_installed_package_that_cannot_be_imported_leaves_the_others_alone(tmp_path, root):
    info = tmp_path / "brk_dllm-0.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: brk-dllm\nVersion: 0.1\n")
    (info / "entry_points.txt").write_text("[dare.families]\nbrk = brk_missing:FAMILY\n")
    env = os.environ | {"PYTHONPATH": f"{tmp_path}{os.pathsep}{root}"}
    done = subprocess.run([sys.executable, "-c", USE], env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("brk_missing:FAMILY") == 1 and "brk-dllm" in done.stderr
    assert '["llada", ' in done.stdout and "repair, upgrade or uninstall brk-dllm" in done.stdout
