"""The word-level tokenizers of the puzzles: one token per number, operator and tag, or per name of a list.

Sudoku grids are written with spaces ("3 1 0 2 ..."), so each cell is one token; ``decode`` puts one space between
tokens, and encoding a decoded text gives the same ids. Answer tags are ordinary vocabulary, so that decoding with
special tokens left out keeps them. Anything else becomes ``<unk>``, so any prompt can be tokenised.

Leaves out every other tokenizer: real checkpoints bring their own.
"""

from __future__ import annotations

from typing import Any

PAD, MASK, EOS, BOS, UNK, USER, ASSISTANT = "<pad>", "<mask>", "<eos>", "<bos>", "<unk>", "<user>", "<assistant>"
SPECIAL = (PAD, MASK, EOS, BOS, UNK, USER, ASSISTANT)
LARGEST_NUMBER = 100
WORDS = ("<answer>", "</answer>", "+", "-", "*", "/", "(", ")", "=", ",", ":", ".", "|", "[", "]", "?")
PATTERN = r"</?answer>|\d+|[A-Za-z]+|[^\sA-Za-z\d]"

# One turn of each role; the answer of the assistant ends with EOS. A system turn is joined to the user's side.
CHAT_TEMPLATE = (
    "{{ bos_token }}"
    "{% for message in messages %}"
    "{% if message['role'] == 'assistant' %}<assistant> {{ message['content'] | trim }} {{ eos_token }}"
    "{% else %}<user> {{ message['content'] | trim }} {% endif %}"
    "{% endfor %}"
    "{% if add_generation_prompt %}<assistant> {% endif %}"
)


def vocabulary() -> dict[str, int]:
    """Return token -> id: special tokens, numbers 0..100, then signs and tags."""
    words = [*SPECIAL, *(str(number) for number in range(LARGEST_NUMBER + 1)), *WORDS]
    return {word: place for place, word in enumerate(words)}


def list_vocabulary() -> dict[str, int]:
    """Return token -> id of the list operations: special tokens, the names, then the words that tell what to do."""
    from dare_eval.puzzles.list_ops import ALL_OPERATIONS, NAMES, SERVED

    told = sorted({part for operation in ALL_OPERATIONS for part in operation.split("_")})
    return {word: place for place, word in enumerate([*SPECIAL, *NAMES, *told, SERVED, "_", ":"])}


VOCABULARIES = {"puzzles": vocabulary, "list_ops": list_vocabulary}
"""Tokenizers that a config may name."""


def build_puzzle_tokenizer(name: str = "puzzles") -> Any:
    """Return the tokenizer called ``name`` as a ``PreTrainedTokenizerFast`` with its chat template."""
    from tokenizers import AddedToken, Regex, Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    core = Tokenizer(models.WordLevel(VOCABULARIES[name](), unk_token=UNK))
    core.pre_tokenizer = pre_tokenizers.Split(Regex(PATTERN), behavior="removed", invert=True)
    core.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in SPECIAL])
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core,
        pad_token=PAD,
        mask_token=MASK,
        eos_token=EOS,
        bos_token=BOS,
        unk_token=UNK,
        extra_special_tokens=[USER, ASSISTANT],
        clean_up_tokenization_spaces=False,
        padding_side="left",
    )
    tokenizer.chat_template = CHAT_TEMPLATE
    return tokenizer
