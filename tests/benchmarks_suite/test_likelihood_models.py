"""Native wrappers as scorers: arrays for upstream's inferencers, raw texts, open turns, settings of each data set."""

from __future__ import annotations

import numpy as np
import pytest
from opencompass.openicl.icl_prompt_template import PromptTemplate
from opencompass.utils.prompt import PromptList

from dare_eval.decoding.likelihood import elbo
from dare_eval.errors import DataError, UsageError
from dare_eval.inferencers.options import split_options
from dare_eval.models.dream import DreamBaseModel
from dare_eval.models.llada import LLaDABaseModel, LLaDAModel
from dare_eval.models.sdar import SDARModel
from dare_eval.runtime.binding import bound_model
from dare_eval.runtime.swapping import check_inferencer

pytestmark = pytest.mark.xdist_group("opencompass")
TURNS = {"round": [{"role": "HUMAN", "prompt": "Question: {q}\nAnswer: "}, {"role": "BOT", "prompt": "{a}"}]}


@pytest.fixture(scope="module")
def llada(checkpoints):
    return LLaDABaseModel(str(checkpoints["llada"]), likelihood={"mc_num": 8, "seed": 3})


@pytest.fixture(scope="module")
def llada_chat(checkpoints):
    return LLaDAModel(str(checkpoints["llada"]), likelihood={"mc_num": 8})


def test_get_ppl_is_an_array_of_mean_losses(llada):
    texts = ["The answer is four.", "The answer is a longer sentence."]
    found = llada.get_ppl(texts)
    assert isinstance(found, np.ndarray)
    assert found.shape == (2,)
    ids = [llada.open_ids(text) for text in texts]
    expected = elbo(llada.network, [(one[:1], one[1:]) for one in ids], llada.likelihood_task.options)
    np.testing.assert_allclose(found, [-one.loglik / one.n_tokens for one in expected], rtol=1e-6)
    masked = llada.get_ppl(texts, mask_length=[3, 4])
    again = elbo(llada.network, [(ids[0][:3], ids[0][3:]), (ids[1][:4], ids[1][4:])], llada.likelihood_task.options)
    np.testing.assert_allclose(masked, [-one.loglik / one.n_tokens for one in again], rtol=1e-6)


def test_get_loglikelihood_scores_the_end_of_each_text(llada):
    texts = ["Ann helped Bea because Ann was tired.", "Ann helped Bea because Bea was tired."]
    found = llada.get_loglikelihood(texts, [" was tired."] * 2)
    assert found.shape == (2,)
    assert (found < 0).all()
    context, rest = llada.pair_before(texts[0], " was tired.")
    assert llada.codec.decode(rest) == " was tired."
    assert context + rest == llada.open_ids(texts[0])
    with pytest.raises(DataError, match="does not stand"):
        llada.get_loglikelihood(texts[:1], ["nowhere"])


def test_spaces_before_a_continuation_belong_to_it(llada):
    _, rest = llada.pair_before("one two  three", "three")
    assert llada.codec.decode(rest) == "  three"


def test_a_text_is_scored_as_it_is_by_base_and_chat_wrappers(llada, llada_chat):
    text = "Question: 1 + 1?\nAnswer: 2"
    assert llada.open_ids(text) == llada_chat.open_ids(text)
    np.testing.assert_allclose(llada_chat.get_ppl([text]).shape, (1,))


def test_turns_are_rendered_with_the_last_one_open(llada, llada_chat):
    prompt = PromptTemplate(TURNS).generate_label_prompt_item({"q": "1 + 1?", "a": " 2 "}, PromptList(), None)
    chat = llada_chat.open_text(llada_chat.parse_template(prompt, mode="ppl"))
    assert chat.startswith(
        "<|startoftext|><|start_header_id|>user<|end_header_id|>\n\nQuestion: 1 + 1?\nAnswer:<|eot_id|>"
    )
    assert chat.endswith("<|start_header_id|>assistant<|end_header_id|>\n\n2")
    base = llada.open_text(llada.parse_template(prompt, mode="ppl"))
    assert base == "Question: 1 + 1?\nAnswer: \n 2 "


def test_options_share_their_random_numbers_whatever_else_is_scored(llada):
    ids = [llada.open_ids(f"Question: who?\nAnswer: {name}") for name in ("Ann Miller", "Ben Miller", "a third one")]
    pairs = split_options(ids)
    together = llada.log_likelihoods(pairs + pairs, ["x"] * 3 + ["y"] * 3)
    alone = [llada.log_likelihoods([pair], ["x"])[0] for pair in pairs]
    assert [one.loglik for one in together[:3]] == pytest.approx([one.loglik for one in alone], rel=1e-5)
    assert [one.loglik for one in together[3:]] != pytest.approx([one.loglik for one in alone], rel=1e-5)


def test_other_families_score_too(checkpoints):
    for wrapper, family in ((DreamBaseModel, "dream"), (SDARModel, "sdar")):
        model = wrapper(str(checkpoints[family]), likelihood={"mc_num": 4})
        found = model.get_ppl(["The answer is four."])
        assert np.isfinite(found).all()


def test_a_likelihood_task_needs_no_decode_settings(checkpoints):
    path = str(checkpoints["llada"])
    model = LLaDABaseModel(path)
    assert model.get_ppl(["one two"]).shape == (1,)
    with pytest.raises(UsageError, match="no decode settings"):
        _ = model.spec
    with pytest.raises(UsageError, match="needs decode settings"):
        LLaDABaseModel.facts({"path": path})
    described = LLaDABaseModel.facts({"path": path, "likelihood": {}}).decode_spec
    assert (described["task"], described["estimator"], described["strata"]) == ("likelihood", "counts", 8)
    with pytest.raises(UsageError, match="estimator"):
        LLaDABaseModel.facts({"path": path, "likelihood": {"estimator": "blocks"}})


def test_text_longer_than_the_context_is_refused(llada):
    with pytest.raises(DataError, match="longer than the context"):
        llada.get_ppl(["word " * 9000])


def data_cfg(inferencer: str, kind: str = "opencompass.datasets.ARCDataset") -> dict:
    return {"type": kind, "abbr": "arc", "infer_cfg": {"inferencer": {"type": f"opencompass.openicl.{inferencer}"}}}


def test_generation_only_settings_are_named_and_dropped_on_a_likelihood_task():
    settings = {"preset": "llada-8b-base", "gen_length": 256, "threshold": 0.2, "cfg_scale": 1.0, "dtype": "bfloat16"}
    model = {"type": "dare_eval.models.llada.LLaDABaseModel", "path": "x", "decoding": settings}
    with pytest.warns(UserWarning) as caught:
        bound = bound_model(model, data_cfg("PPLInferencer"))
    texts = " ".join(str(one.message) for one in caught)
    for name in ("gen_length", "threshold", "cfg_scale (of decoding)"):
        assert f"{name} has no effect on a likelihood task" in texts
    assert bound["decoding"] == {"dtype": "bfloat16"}
    assert (bound["likelihood"]["mc_num"], bound["likelihood"]["cfg_scale"]) == (128, 0.5)
    assert bound["likelihood"]["rank_by"] == "token"
    assert model["decoding"] is settings


def test_a_generation_task_is_bound_without_likelihood_settings():
    model = {
        "type": "dare_eval.models.llada.LLaDAModel",
        "path": "x",
        "decoding": {"preset": "llada-8b-instruct", "cache": "dual", "block_length": 32},
        "likelihood": {"mc_num": 4},
    }
    bound = bound_model(model, data_cfg("GenInferencer", "opencompass.datasets.GSM8KDataset"))
    assert "likelihood" not in bound
    assert bound["decoding"]["gen_length"] == 256
    assert bound["decoding"]["cache"] == "dual"
    plain = {"type": "dare_eval.models.llada.LLaDAModel", "path": "x", "decoding": {"gen_length": 4}}
    assert bound_model(plain, data_cfg("GenInferencer")) is plain


def test_next_token_distributions_are_refused_with_the_reason():
    with pytest.raises(UsageError, match="has none") as caught:
        check_inferencer(data_cfg("CLPInferencer"))
    assert "_ppl" in caught.value.remedy
    native = {"type": "dare_eval.models.llada.LLaDAModel", "path": "x"}
    with pytest.raises(UsageError, match="CLPInferencer"):
        bound_model(native, data_cfg("CLPInferencer"))
    other = {"type": "dare_eval.models.replay.ReplayModel", "path": "x"}
    assert bound_model(other, data_cfg("CLPInferencer")) is other


def test_layers_spread_over_what_there_is(checkpoints):
    spread = LLaDAModel(str(checkpoints["llada"]), decoding={"gen_length": 8}, device="spread")
    plain = LLaDAModel(str(checkpoints["llada"]), decoding={"gen_length": 8}, device="cpu")
    assert spread.generate(["one two"]) == plain.generate(["one two"])
