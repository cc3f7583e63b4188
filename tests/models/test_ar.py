"""The autoregressive baseline: batches, seeds, costs, refusals, on a random tiny Llama."""

from __future__ import annotations

import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from dare_eval.errors import DataError, UsageError
from dare_eval.models.ar import ArBaseModel, ArModel, GumbelNoise

WORDS = ["<pad>", "</s>", "<unk>", *[f"w{number}" for number in range(45)]]
CHAT = (
    "{% for m in messages %}{{ m.role }} {{ m.content }} {% endfor %}"
    "{% if add_generation_prompt %}assistant {% endif %}"
)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    folder = tmp_path_factory.mktemp("llama")
    config = LlamaConfig(
        vocab_size=len(WORDS), hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
        max_position_embeddings=64, pad_token_id=0, eos_token_id=1, bos_token_id=1, initializer_range=0.6,
    )  # fmt: skip
    with torch.random.fork_rng():
        torch.manual_seed(0)
        LlamaForCausalLM(config).save_pretrained(folder)
    words = Tokenizer(models.WordLevel({word: n for n, word in enumerate(WORDS)}, unk_token="<unk>"))
    words.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    PreTrainedTokenizerFast(
        tokenizer_object=words, eos_token="</s>", pad_token="<pad>", unk_token="<unk>", chat_template=CHAT
    ).save_pretrained(folder)
    return str(folder)


PROMPTS = ["w1 w2 w3", "w4", "w5 w6 w7 w8 w9"]


@pytest.mark.parametrize("settings", [{}, {"temperature": 0.8}, {"temperature": 1.0, "top_k": 5, "top_p": 0.9}])
def test_a_batch_equals_its_rows_alone(checkpoint, settings):
    model = ArBaseModel(checkpoint, {"gen_length": 12, **settings})
    together = model.generate(PROMPTS)
    assert [str(one) for one in together] == [str(model.generate([prompt])[0]) for prompt in PROMPTS]
    for answer in together:
        assert answer.stats["nfe"] == answer.stats["generated_tokens"] + (answer.stats["stop"] == "eos")


def test_no_prompt_and_a_prompt_that_is_no_text(checkpoint):
    model = ArBaseModel(checkpoint, {"gen_length": 4})
    assert model.generate([]) == []
    with pytest.raises(DataError, match=r"character 3 of the prompt(.|\n)*0xff"):
        model.generate(["w1", "w1 \udcff"])


def test_the_global_random_state_is_left_alone(checkpoint):
    model = ArBaseModel(checkpoint, {"gen_length": 4, "temperature": 1.0})
    before = torch.random.get_rng_state()
    first = model.generate(PROMPTS)
    assert torch.equal(before, torch.random.get_rng_state())
    other = ArBaseModel(checkpoint, {"gen_length": 4, "temperature": 1.0, "seed": 1})
    assert list(map(str, first)) != list(map(str, other.generate(PROMPTS)))


def test_gumbel_noise_draws_from_the_softmax():
    logits = torch.tensor([[0.0, 1.0, 2.0]]).repeat(4000, 1)
    drawn = GumbelNoise(range(4000))(None, logits).argmax(-1)
    share = torch.bincount(drawn, minlength=3) / 4000
    assert torch.allclose(share, logits[0].softmax(-1), atol=0.03)


def test_chat_turns_go_through_the_template(checkpoint):
    model = ArModel(checkpoint, {"gen_length": 2})
    answer = model.generate([[{"role": "HUMAN", "prompt": "w1"}]])[0]
    assert answer.stats["prompt"] == "user w1 assistant "


def test_facts_and_refusals(checkpoint, tmp_path):
    facts = ArModel.facts({"path": checkpoint, "generation": {"gen_length": 4}})
    assert facts.family == "llama" and facts.weight_hash and facts.decode_spec["policy"] == "autoregressive"
    for generation, said in (({"gen_length": 0}, "count"), ({"gen_length": 4, "top_q": 1}, "top_p")):
        with pytest.raises(UsageError, match=said):
            ArModel.facts({"path": checkpoint, "generation": generation})
    (tmp_path / "config.json").write_text('{"model_type": "nothing-known"}')
    with pytest.raises(DataError, match="cannot read"):
        ArModel.facts({"path": str(tmp_path), "generation": {"gen_length": 4}})
    with pytest.raises(DataError, match="longer than the context"):
        ArBaseModel(checkpoint, {"gen_length": 62}).generate(PROMPTS)
