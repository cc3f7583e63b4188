"""A model that answers anything at once, so that every stock data set can be run and scored in seconds."""

from __future__ import annotations

from opencompass.models.base import BaseModel
from opencompass.models.base_api import APITemplateParser

from dare_eval.models.texts import HUMAN_BOT_ROUND, GenText

REPLY = (
    "Let me see. The answer is A.\n<answer>(1+2)*3</answer>\n```python\ndef solve():\n    return 1\n```\n"
    "So the answer is \\boxed{1}.\n#### 1"
)


class TalkModel(BaseModel):
    """Gives the same reply to every prompt."""

    def __init__(self, path: str = "none", max_seq_len: int = 1 << 20) -> None:
        super().__init__(path, max_seq_len)
        self.template_parser = APITemplateParser(HUMAN_BOT_ROUND)

    def generate(self, inputs, max_out_len=None):
        stats = {"nfe": 4, "generated_tokens": 8, "wall_s": 0.001, "stop": "eos"}
        return [GenText(REPLY, stats) for _ in inputs]

    def get_token_len(self, prompt: str) -> int:
        return len(prompt.split())
