"""The statistics of this project under one name: intervals, paired tests, power, repeated answers."""

from dare_eval.records.intervals import Interval, bootstrap, bootstrap_means, clustered, wilson
from dare_eval.records.power import detectable_effect, minimum_detectable_effect
from dare_eval.records.repeats import (
    Average,
    majority_at_k,
    pass_at_k,
    weighted_mean,
    whole_average,
)
from dare_eval.records.significance import PairedTest, holm, mcnemar, paired_binary, paired_bootstrap, tango_interval

__all__ = [
    "Average",
    "Interval",
    "PairedTest",
    "bootstrap",
    "bootstrap_means",
    "clustered",
    "detectable_effect",
    "holm",
    "majority_at_k",
    "mcnemar",
    "minimum_detectable_effect",
    "paired_binary",
    "paired_bootstrap",
    "pass_at_k",
    "tango_interval",
    "weighted_mean",
    "whole_average",
    "wilson",
]
