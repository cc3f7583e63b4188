from dare_eval.runtime.summarizer import ReportSummarizer

summarizer = dict(type=ReportSummarizer)
