"""Native wrappers on the shipped models: what fits the context, odd prompts, records of the guess, scores."""

from __future__ import annotations

import json
import shutil

import numpy as np
import pytest

from dare_eval.errors import DataError, IncompleteError, UsageError
from dare_eval.models.dream import DreamBaseModel
from dare_eval.models.llada import LLaDABaseModel
from dare_eval.models.sdar import SDARModel
from dare_eval.networks.paths import ASSETS
from tests.benchmarks_suite.checkpoints import make_checkpoint

pytestmark = pytest.mark.xdist_group("opencompass")
SHAPE = {"gen_length": 5, "block_length": 5, "steps": 5}
CONTEXT = 64
BLOCKS = {"gen_length": 8, "block_length": 6}


@pytest.fixture(scope="module")
def countdown():
    return LLaDABaseModel("tiny-countdown", decoding=SHAPE, likelihood={"mc_num": 8})


@pytest.fixture(scope="module")
def sdar():
    return SDARModel("tiny-bd-countdown", decoding=BLOCKS, likelihood={"mc_num": 8})


@pytest.fixture(scope="module")
def dream(tmp_path_factory):
    folder = make_checkpoint("dream", tmp_path_factory.mktemp("native") / "dream")
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "max_position_embeddings": CONTEXT}))
    return DreamBaseModel(str(folder), likelihood={"mc_num": 2})


def prompt_of(model, tokens):
    """Return a prompt that is rendered to ``tokens`` tokens."""
    frame = len(model.codec.encode("", 1).ids)
    text = "5 " * (tokens - frame)
    assert len(model.codec.encode(text.strip(), 1).ids) == tokens
    return text.strip()


def test_planning_and_decoding_agree_on_whole_blocks_of_the_context(sdar):
    sdar.check_prompt(prompt_of(sdar, 52))
    sdar.generate([prompt_of(sdar, 52)])
    for one in (sdar.check_prompt, lambda prompt: sdar.generate([prompt])):
        with pytest.raises(DataError, match=r"53 prompt tokens \+ gen_length 8(.|\n)*60 tokens"):
            one(prompt_of(sdar, 53))


def test_settings_of_a_data_set_bring_their_own_blocks():
    model = SDARModel("tiny-bd-countdown")
    assert model.codec.limit == CONTEXT
    model.use_decoding({"gen_length": 8, "block_length": 4})
    model.check_prompt(prompt_of(model, 56))
    model.use_decoding(BLOCKS)
    with pytest.raises(DataError, match="60 tokens"):
        model.check_prompt(prompt_of(model, 56))


def test_the_greedy_check_needs_whole_blocks_too(sdar):
    pair = ([5] * 40, [7] * 24)
    sdar.use_likelihood({"mc_num": 2, "block_length": 6})
    assert np.isfinite(sdar.log_likelihoods([pair])[0].loglik)
    sdar.use_likelihood({"mc_num": 2, "block_length": 6, "check_greedy": True})
    with pytest.raises(DataError, match=r"64 tokens(.|\n)*60 tokens"):
        sdar.log_likelihoods([pair])
    assert sdar.log_likelihoods([(pair[0], pair[1][:20])])[0].greedy is not None


def test_the_eos_behind_a_dream_continuation_counts(dream):
    def text(tokens):  # BOS stands in front
        return " ".join(["a"] * (tokens - 1))

    assert len(dream.open_ids(text(CONTEXT))) == CONTEXT
    for call in (dream.get_ppl, lambda texts: dream.check_length(len(dream.open_ids(texts[0])))):
        with pytest.raises(DataError, match=r"64 tokens(.|\n)*63 tokens, in a context of 64"):
            call([text(CONTEXT)])
    assert np.isfinite(dream.get_ppl([text(CONTEXT - 1)])).all()
    dream.use_likelihood({"mc_num": 2, "append_eos": False})
    assert np.isfinite(dream.get_ppl([text(CONTEXT)])).all()
    dream.use_likelihood({"mc_num": 2})


def test_an_empty_prompt_may_come_first():
    model = LLaDABaseModel("tiny-countdown", decoding=SHAPE)
    assert model.generate([]) == []
    [first] = model.generate([""])
    assert list(model.generate(["3 5 = 8", ""]))[1] == first
    assert first.stats["nfe"] == 5


@pytest.mark.parametrize(("prompt", "said"), [("3 \udcff", "byte 0xff"), ("a\ud800b", r"'\\ud800' in 'a\\ud800b'")])
def test_a_prompt_that_is_no_unicode_text_is_refused_by_its_place(countdown, prompt, said):
    for one in (countdown.generate, countdown.get_ppl, lambda texts: countdown.check_prompt(texts[0])):
        with pytest.raises(DataError, match=rf"character \d of the prompt(.|\n)*{said}(.|\n)*UTF-8"):
            one([prompt])
    with pytest.raises(DataError, match="no Unicode text"):
        countdown.get_token_len(prompt)


def test_the_recorded_guess_ends_where_the_answer_ends(tmp_path):
    folder = shutil.copytree(ASSETS / "tiny-countdown", tmp_path / "model")
    plain = LLaDABaseModel(str(folder), decoding=SHAPE)
    [text] = plain.generate(["3 5 = 8"])
    end = text.stats["tokens"][2]
    (folder / "generation_config.json").write_text(json.dumps({"eos_token_id": [2, end]}))
    model = LLaDABaseModel(str(folder), decoding=SHAPE, record_x0=True)
    [text] = model.generate(["3 5 = 8"])
    guess = dict(pair for _, changed in text.stats["x0"] for pair in changed)
    length = len(text.stats["tokens"])
    assert length <= 2 and text.stats["stop"] == "stop_id"
    assert [guess[place] for place in range(length)] == text.stats["tokens"]
    assert {guess.get(place, -1) for place in range(length, 5)} == {-1}


def test_a_text_with_nothing_to_score_is_refused(countdown, dream):
    for model, texts in ((countdown, ["3 5 = 8", ""]), (dream, ["a a", ""])):
        with pytest.raises(DataError, match="text 1 has nothing to score"):
            model.get_ppl(texts)
    with pytest.raises(DataError, match="option 'A' has nothing to score"):
        dream.check_pair(([], [5]), "option 'A'")  # nothing predicts the first token of a shifted network
    countdown.check_pair(([], [5]), "option 'A'")
    for cont in ("", " "):
        with pytest.raises(DataError, match="the continuation is empty"):
            countdown.get_loglikelihood(["3 5 = 8 "], [cont])


def test_an_overflow_of_guidance_is_no_likelihood(countdown):
    countdown.use_likelihood({"mc_num": 8, "cfg_scale": 1e38})
    for score in (countdown.get_ppl, lambda texts: countdown.get_loglikelihood(texts, [" 8"])):
        with pytest.raises(IncompleteError, match=r"text 0 is no finite number(.|\n)*(nan|inf)(.|\n)*cfg_scale"):
            score(["3 5 = 8"])
    countdown.use_likelihood({"mc_num": 8, "cfg_scale": 1.0})
    assert np.isfinite(countdown.get_ppl(["3 5 = 8"])).all()


def test_an_estimator_that_does_not_fit_is_a_wrong_setting(countdown):
    countdown.use_likelihood({"estimator": "blocks"})
    with pytest.raises(UsageError, match="block-causal"):
        countdown.check_length(3)
    countdown.use_likelihood({"mc_num": 8})
