"""Responses for the property and fuzz tests: plausible ones per kind, and random damage done to them."""

from __future__ import annotations

import random

GRID = {"puzzle": "1030041020030021", "solution": "1234341221434321"}
CALLS = {
    "gsm8k": (
        "18",
        [
            "She has 3 + 15 = 18 eggs. #### 18",
            "The answer is \\boxed{18}.",
            "<answer>$18.00</answer><|endoftext|>",
            "so 20 - 2 = **18**",
        ],
    ),
    "choice": ("B", ["The answer is (B).", "B. the second", "\\boxed{\\text{B}}", "I pick option B"]),
    "countdown": (
        {"numbers": [3, 4, 5], "target": 35},
        ["<answer>(3+4)*5 = 35</answer>", "\\boxed{(3+4)\\times5}", "(3 + 4) * 5", "<answer>\\frac{3}{4}*5</answer>"],
    ),
    "sudoku": (
        GRID,
        [
            "<answer>1234341221434321</answer>",
            "<answer>1 2 | 3 4\n3 4 | 1 2\n-----\n2 1 | 4 3\n4 3 | 2 1</answer>",
            "\\boxed{1234341221434321}",
        ],
    ),
    "math": (
        r"\frac{1}{2}",
        [
            r"so \boxed{\frac{1}{2}}",
            r"the answer is $\sin^2 x + 2^{10}$.",
            r"\boxed{\left(-\infty, \frac{3}{4}\right] \cup \{5, 7\}}",
            r"\boxed{\begin{pmatrix} 1 \\ \sqrt{2} \end{pmatrix}}",
            r"\boxed{x = 3 \text{ or } x = -2}",
            r"\boxed{\frac{n!}{k!(n-k)!}}",
        ],
    ),
    "list_ops": (
        {"operation": "reverse", "items": ["Ada", "Ben", "Cleo"]},
        ["<answer>Cleo, Ben, Ada</answer>", "Cleo Ben Ada", "[Cleo; Ben; Ada]"],
    ),
    "instruction": (
        {
            "instruction_id_list": [
                "punctuation:no_comma",
                "detectable_format:title",
                "length_constraints:number_words",
            ],
            "kwargs": [{}, {}, {"relation": "at least", "num_words": 3}],
        },
        ["<<Rain>>\nIt rained all day.", "* one\n* two, three"],
    ),
}
"""Kind to (reference, responses)."""

FRAGMENTS = (
    *"0123456789+-*/^=(){}[]<>\\$#%.,:;!?&_|~'\"` \n\t",
    *("\\boxed{", "\\frac{", "}{", "\\sqrt", "</answer>", "<answer>", "####", "answer is", "\\text{", "**", "\\pm"),
    *("\\cup", "\\infty", "9^{9^{9}}", "10000!", "\u2212", "\u00d7", "\u7b54\u6848", "<|mdm_mask|>", "<|endoftext|>"),
    *("\ud800", "\x00", "\u202e", "\u0660", "\ufeff", "```", "Question:", "\\begin{pmatrix}", "&", "\\\\", "or", "A"),
)


def damaged(response: str, rng: random.Random) -> str:
    """Return ``response`` after one to six random edits: insert, delete, repeat, swap, cut."""
    text = response
    for _ in range(rng.randint(1, 6)):
        at, length = rng.randint(0, len(text)), rng.randint(1, 12)
        edit = rng.randrange(6)
        if edit == 0:
            text = text[:at] + rng.choice(FRAGMENTS) * rng.choice((1, 1, 1, 2, 40)) + text[at:]
        elif edit == 1:
            text = text[:at] + text[at + length :]
        elif edit == 2:
            text = text[:at] + text[at : at + length] * rng.randint(2, 5) + text[at + length :]
        elif edit == 3:
            text = text[:at] + "".join(rng.choices(FRAGMENTS, k=length)) + text[at + length :]
        elif edit == 4:
            text = text[at:] + text[:at]
        else:
            text = text[: rng.randint(0, len(text))]
    return text


def mutations(kind: str, count: int, seed: int) -> list[str]:
    rng = random.Random(f"{kind}:{seed}")
    return [damaged(rng.choice(CALLS[kind][1]), rng) for _ in range(count)]
