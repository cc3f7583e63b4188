import pytest

from dare_eval.records.comparable import LABEL, NOTE, REFUSE, compare_settings


@pytest.mark.parametrize(
    ("name", "word"),
    [
        ("task_template", "template"), ("prompt_hash", "prompt"), ("prompt_sha", "prompt"), ("extractor", "extractor"),
        ("scorer", "scorer"), ("gen_length", "length"), ("max_out_len", "length"), ("content_hash", "items"),
        ("metric", "metric"), ("never_heard_of_it", "never_heard_of_it"),
    ],
)  # fmt: skip
def test_what_changes_the_question_is_refused_and_named(name, word):
    found = compare_settings({name: "a"}, {name: "b"})
    assert not found.comparable and word in found.reasons[0]
    assert [d.name for d in found.refused()] == [name] and not found.refused({name})


@pytest.mark.parametrize("name", ["model", "weight_hash", "algorithm", "checkpoint", "parent", "run_id"])
def test_the_model_may_differ(name):
    assert compare_settings({name: "a"}, {name: "b"}).comparable


@pytest.mark.parametrize("name", ["device", "packages", "git", "seed", "attn_backend"])
def test_the_machine_is_noted(name):
    found = compare_settings({name: "a"}, {name: "b"})
    assert found.comparable and [d.severity for d in found.differences] == [NOTE] and name in found.notes[0]


def test_decode_spec_is_compared_field_by_field():
    a = {"family": "llada", "gen_length": 8, "steps": 4, "seed": 0}
    found = compare_settings({"decode_spec": a}, {"decode_spec": a | {"steps": 8, "seed": 1, "family": "dream"}})
    assert {d.name: d.severity for d in found.differences} == {"steps": LABEL, "seed": NOTE}
    longer = compare_settings({"decode_spec": a}, {"decode_spec": a | {"gen_length": 16}})
    assert [(d.name, d.severity) for d in longer.differences] == [("gen_length", REFUSE)]


def test_decoding_of_one_checkpoint_is_a_question_of_its_own():
    a = {"weight_hash": "w", "decode_spec": {"gen_length": 8, "steps": 4}}
    found = compare_settings(a, a | {"decode_spec": {"gen_length": 16, "steps": 4}})
    assert not found.comparable and not found.refused()


def test_what_one_side_did_not_record_is_a_label():
    found = compare_settings({"scorer": "gsm8k@1"}, {})
    assert not found.comparable and not found.refused() and "not recorded for the second run" in found.reasons[0]
    assert compare_settings({"decode_spec": {"steps": 1}}, {"decode_spec": None}).differences[0].severity == LABEL


def test_equal_settings_are_comparable():
    settings = {"prompt_hash": "p", "decode_spec": {"steps": 3}, "weight_hash": None}
    assert compare_settings(settings, dict(settings)).differences == ()
