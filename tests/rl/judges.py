"""Judges of an imaginary user, named by dotted path in the tests of rewards."""

from __future__ import annotations

import os
import time


def raises_on(**options):
    """Fail on the response that says so."""

    def judge(answer):
        if answer.response == "boom":
            raise ValueError("cannot read this answer")
        if answer.response == "sleep":
            time.sleep(30)
        if answer.response == "die":
            os._exit(3)
        if answer.response == "nan":
            return float("nan")
        return float(options.get("value", 0.25))

    return judge


class Many:
    """Judge of whole batches in the training process."""

    in_process = True

    def __call__(self, answer):
        return self.many([answer])[0]

    def many(self, answers):
        return [float(len(answer.response)) for answer in answers]


def broken_factory(**options):
    raise ValueError("no such model")


def needs_address(*, url):
    return lambda answer: 1.0


def makes_nothing():
    return 5


def says(*, what):
    """Answer every time with the same thing, whatever it is; raise it when it is an exception."""

    def judge(answer):
        if isinstance(what, BaseException):
            raise what
        return what

    return judge


def never_the_same():
    """Fail in another way each time."""
    seen = []

    def judge(answer):
        seen.append(answer)
        raise ValueError(f"answer {len(seen)} cannot be read")

    return judge


class TooFew:
    """Judge of whole batches that loses some."""

    in_process = True

    def __call__(self, answer):
        return 0.5

    def many(self, answers):
        return [1.0]


def own_group():
    return lambda answer: float(os.getpgid(0))
