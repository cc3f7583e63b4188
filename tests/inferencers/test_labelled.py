"""Options that exceed the context are found before the first one is scored."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from dare_eval.decoding.likelihood.options import ElboResult
from dare_eval.errors import DataError, IncompleteError
from dare_eval.inferencers.labelled import LabelledInferencer, LabelledRun
from dare_eval.inferencers.likelihood import ScoredOption, choose
from dare_eval.inferencers.ll import DiffusionLLInferencer
from dare_eval.models.likelihood import LikelihoodModel
from tests.decoding.toy import ToyConfig

pytestmark = pytest.mark.xdist_group("opencompass")


class Words(LikelihoodModel):
    """A model whose tokens are words; counts what it tokenizes."""

    def __init__(self, limit, **likelihood):
        config = ToyConfig(shift=False, block_length=None, context_length=limit, learned_positions=None)
        self.codec = SimpleNamespace(limit=limit, ids_of=self._ids, config=config)
        self.use_likelihood({"mc_num": 8, **likelihood})
        self.tokenized = []

    def _ids(self, text, templated):
        self.tokenized.append(text)
        return text.split()

    def parse_template(self, prompt, mode):
        assert mode == "ppl"
        return prompt


def check(*prompts, limit=8, look=None, **likelihood):
    model = Words(limit, **likelihood)
    bare = SimpleNamespace(bare=lambda index: [prompts[index]])
    run = LabelledRun(model, bare, split=None, rank_by="token", max_seq_len=None, look=look)
    for index in range(len(prompts)):
        run._check(index)
    return model.tokenized


def test_an_option_longer_than_the_context_is_refused():
    with pytest.raises(DataError, match=r"9 tokens(.|\n)*8 tokens(.|\n)*fewer examples"):
        check("a", "a b c d e f g h i")


def test_short_texts_need_no_tokenizer_and_long_words_are_counted_in_tokens():
    assert check("a b c", "wordwordword word") == ["wordwordword word"]


def test_the_eos_that_closes_an_option_takes_a_place_of_the_context():
    eight = "a b c d e f g h"
    assert check(eight) == [eight]
    with pytest.raises(DataError, match=r"8 tokens(.|\n)*7 tokens, in a context of 8"):
        check(eight, append_eos=True)
    check(eight.removesuffix(" h"), append_eos=True)


def fits(count, *, most=None, **likelihood):
    return LabelledRun(Words(8, **likelihood), None, None, "token", most)._fit(["w " * count])


def test_few_shot_examples_leave_room_for_the_closing_eos():
    assert fits(8) and not fits(9)
    assert fits(7, append_eos=True) and not fits(8, append_eos=True)
    assert fits(5, append_eos=True, most=6) and not fits(6, append_eos=True, most=6)


def scored(**loglik):
    result = {name: ElboResult(loglik=value, n_tokens=1, stderr=0.0, nfe=1) for name, value in loglik.items()}
    return [ScoredOption(name, one, 1) for name, one in result.items()]


@pytest.mark.parametrize("odd", ["nan", "inf", "-inf"])
def test_a_score_that_is_no_finite_number_is_no_answer(odd):
    with pytest.raises(IncompleteError, match=rf"option 'B' is no finite number(.|\n)*{odd}(.|\n)*cfg_scale"):
        choose(scored(A=-1.0, B=float(odd), C=-2.0), "sum")
    best, lead = choose(scored(A=-1.0, B=-3.0, C=-2.0), "sum")
    assert (best.label, lead["margin"]) == ("A", 1.0)


def test_options_with_nothing_to_score_are_named():
    prompts = SimpleNamespace(of=lambda index, fit: (["a b", "a"], 0), labels=["A", "B"])
    run = LabelledRun(Words(8), prompts, lambda index, parsed: [(["a"], ["b"]), (["a"], [])], "token", None)
    with pytest.raises(DataError, match=r"option 'B' has nothing to score(.|\n)*0 tokens after 1"):
        run._prepare(0, None)


@pytest.mark.parametrize("cont", ["", "  "])
def test_a_row_without_a_continuation_is_found_before_any_is_scored(cont):
    test = [{"cont": " was tired."}, {"cont": cont}]
    look = object.__new__(DiffusionLLInferencer).look
    look(test, 0)
    with pytest.raises(DataError, match="the continuation is empty"):
        check("a b", "a b", look=lambda index: look(test, index))
    assert LabelledInferencer.look(None, test, 1) is None


def test_a_text_that_is_no_unicode_is_found_before_any_is_scored():
    with pytest.raises(DataError, match=r"character 2(.|\n)*0xff"):
        check("a \udcff")
