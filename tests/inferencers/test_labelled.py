"""Options that exceed the context are found before the first one is scored."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from dare_eval.errors import DataError
from dare_eval.inferencers.labelled import LabelledRun
from dare_eval.models.likelihood import LikelihoodModel

pytestmark = pytest.mark.xdist_group("opencompass")


class Words(LikelihoodModel):
    """A model whose tokens are words; counts what it tokenizes."""

    def __init__(self, limit):
        self.codec = SimpleNamespace(limit=limit, ids_of=self._ids)
        self.use_likelihood({"mc_num": 8})
        self.tokenized = []

    def _ids(self, text, templated):
        self.tokenized.append(text)
        return text.split()

    def parse_template(self, prompt, mode):
        assert mode == "ppl"
        return prompt


def check(*prompts, limit=8):
    model = Words(limit)
    bare = SimpleNamespace(bare=lambda index: [prompts[index]])
    run = LabelledRun(model, bare, split=None, rank_by="token", max_seq_len=None)
    for index in range(len(prompts)):
        run._check(index)
    return model.tokenized


def test_an_option_longer_than_the_context_is_refused():
    with pytest.raises(DataError, match=r"9 tokens(.|\n)*8 tokens(.|\n)*fewer examples"):
        check("a", "a b c d e f g h i")


def test_short_texts_need_no_tokenizer_and_long_words_are_counted_in_tokens():
    assert check("a b c", "wordwordword word") == ["wordwordword word"]
