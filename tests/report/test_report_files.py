"""The report as files: the same bytes twice, escaped everywhere, and exit codes of the command line."""

import json
import shutil
from xml.etree import ElementTree

from dare_eval.records.runs import load_run
from dare_eval.report.document import to_html, to_markdown
from dare_eval.report.junit import to_junit
from dare_eval.report.recorded import baseline_of
from dare_eval.report.reproducibility import report_run, to_document

RIGHT = [k % 3 != 0 for k in range(30)]
HOSTILE = '<script>alert(1)</script> | `x` \x1b[31m \x00 "quoted" & =1+1'


def test_two_identical_runs_match_with_exit_code_0_and_the_same_bytes_twice(dare, make_run, tmp_path):
    first, second = (make_run(n, RIGHT, weight_hash="w") for n in ("a", "b"))
    for name in ("one", "two"):
        code, out = dare("report", second, "--against", first, "--out", tmp_path / name)
        assert code == 0 and out.startswith("match: ")
    for file in ("report.md", "report.html", "report.xml"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()
    assert dare("report", first, second)[0] == 0, "without --against further runs are judged against the first"
    assert dare("report", second, "--against", first / "manifest.json")[0] == 4


def test_a_damaged_report_named_as_baseline_is_refused_although_the_items_beside_it_read(dare, make_run):
    first, second = (make_run(n, RIGHT, weight_hash="w") for n in ("a", "b"))
    for text in ("{", '{"rows": 1}', "[3]"):
        (first / "report.json").write_text(text)
        code, out = dare("report", second, "--against", first / "report.json")
        assert code == 4 and "report.json" in out and "Verdict" not in out, text
    assert dare("report", second, "--against", first)[0] == 0, "the folder's items read"
    (first / "report.json").write_text("[]")
    code, out = dare("report", second, "--against", first / "report.json")
    assert code == 0 and "Verdict: match" in out, "a readable report stands for its run, whose items are judged"


def test_a_mistyped_card_is_answered_with_the_nearest(dare, make_run):
    run = make_run("a", RIGHT, weight_hash="w")
    code, out = dare("report", run, "--against", "tiny-sudokku/sudoku4")
    assert code == 4 and "did you mean the card 'tiny-sudoku/sudoku4'?" in out and "dare-eval cards" in out
    code, out = dare("report", run, "--against", "zzzzqqqq")
    assert code == 4 and "the card" not in out


def test_numbers_of_a_model_with_another_name_are_judged_and_said(dare, make_run, tmp_path):
    first, second = (make_run(n, RIGHT, weight_hash="w", model=n) for n in ("old-model", "new-model"))
    said = "'new-model' is judged against numbers recorded for 'old-model'"
    code, out = dare("report", second, "--against", first, "--out", tmp_path / "report")
    assert code == 0 and out.startswith("match: ") and said in out
    for file in ("report.md", "report.xml"):
        text = (tmp_path / "report" / file).read_text()
        assert "recorded for model 'old-model'" in text, file
    assert said in (tmp_path / "report" / "report.md").read_text()
    code, out = dare("report", second, "--against", second)
    assert code == 0 and "recorded for" not in out
    out = dare("report", second, "--against", "llada-8b-instruct/gsm8k", "--out", tmp_path / "card")[1]
    assert "'new-model' is judged against numbers recorded for 'llada-8b-instruct'" in out


def test_one_decode_parameter_is_off_by_name_and_exits_with_3(dare, make_run, tmp_path):
    first = make_run("a", RIGHT, weight_hash="w")
    second = make_run("b", RIGHT, weight_hash="w", spec={"steps": 4})
    for arguments in ([second, "--against", first], [first, second]):
        code, out = dare("report", *arguments)
        assert code == 3 and "steps 8 -> 4" in out
    code, out = dare("report", second, "--against", first, "--out", tmp_path / "report")
    assert code == 3 and "steps 8 -> 4" in (tmp_path / "report" / "report.html").read_text().replace("&gt;", ">")
    suite = ElementTree.parse(tmp_path / "report" / "report.xml").getroot()[0]
    assert (suite.get("tests"), suite.get("failures")) == ("1", "1")
    assert "steps 8 -> 4" in suite[0].find("failure").get("message")


def test_numbers_are_kept_and_compared_in_ci(dare, make_run, tmp_path):
    first, second = (make_run(n, RIGHT, weight_hash="w") for n in ("a", "b"))
    assert dare("report", first, "--save", "kept.json")[0] == 0
    shutil.rmtree(first)
    assert dare("report", second, "--against", "kept.json")[0] == 0
    record = json.loads((tmp_path / "kept.json").read_text())
    record["numbers"][0]["value"] = 1.0
    (tmp_path / "kept.json").write_text(json.dumps(record))
    assert dare("report", second, "--against", "kept.json")[0] == 3


def test_a_report_alone_says_what_ran_and_compares_nothing(dare, make_run):
    code, out = dare("report", make_run("a", RIGHT, weight_hash="some-weights"))
    assert code == 0 and "nothing to compare with" in out
    for part in ("some-weights", "ph", "ch", "toy@1", "block\\_length", "66.67", "verdict hash"):
        assert part in out


def test_texts_of_strangers_stay_text_in_every_format(make_run, change_manifest):
    folder = make_run("a", RIGHT, weight_hash=HOSTILE, algorithm=HOSTILE)
    change_manifest(folder, run_id=HOSTILE, environment={"device": HOSTILE})
    run = load_run(folder)
    reports = [report_run(run, baseline_of(run))]
    page, text, xml = to_html(to_document(reports)), to_markdown(to_document(reports)), to_junit(reports)
    assert "<script" not in page and "\x1b" not in page + text + xml and "\x00" not in page + text + xml
    assert "src=" not in page and "href=" not in page, "the page needs nothing else"
    assert "\\<script\\>" in text and ElementTree.fromstring(xml) is not None
    for table in text.split("\n\n"):
        if table.startswith("| "):
            assert len({line.replace("\\|", "").count("|") for line in table.splitlines()}) == 1, "no cell breaks a row"


def test_an_outcome_changes_the_hash_in_the_report(make_run):
    folders = [make_run("a", RIGHT, weight_hash="w"), make_run("b", RIGHT[::-1], weight_hash="w")]
    texts = [to_markdown(to_document([report_run(load_run(folder), None)])) for folder in folders]
    hashes = [text.split("| toy | toy |")[1] for text in texts]
    assert hashes[0] != hashes[1]


def test_cards_are_listed_with_their_noise(dare):
    code, out = dare("cards", "dare-llada")
    assert code == 0 and "outside the noise on humaneval: none" in out
    assert "below row fill (46.7 %) on sudoku: bgpo 42.6" in out and out.count("below row fill (46.7 %)") == 7
    code, out = dare("cards", "dare-llada", "--json")
    assert code == 0 and not any(
        one["outside_noise"] for one in json.loads(out)["differences"] if one["benchmark"] == "humaneval"
    )
    code, out = dare("cards", "dare-llada", "--base", "coupled_grpo", "--json")
    close = next(d for d in json.loads(out)["differences"] if (d["benchmark"], d["column"]) == ("gsm8k", "cj_grpo"))
    assert code == 0 and close["base"] == 85.3 and close["p"] > 0.8 and not close["outside_noise"]
    assert dare("cards", "dare-llada", "--base", "coupled")[0] == 2
    code, out = dare("cards", "llada-8b-instruct")
    assert code == 0 and "tables with the noise of their differences: dare-llada, dare-dream" in out
    code, out = dare("cards", "llada-8b-instruct", "--json")
    assert code == 0 and {one["name"] for one in json.loads(out)} >= {"llada-8b-instruct/gsm8k@dare"}
    assert dare("cards", "llada-8b-instrct")[0] == 2


def test_cards_without_settings_cannot_be_run(dare):
    code, out = dare("reproduce", "dare-llada/gsm8k@d1")
    assert code == 2 and "states no settings" in out
    code, out = dare("reproduce", "llada-8b-base/piqa@likelihood")
    assert code == 2 and "no benchmark or model of that name" in out


def test_two_runs_with_one_id_are_told_apart(dare, make_run, change_manifest, tmp_path):
    folders = [make_run(name, RIGHT, weight_hash="w") for name in ("a", "b", "c")]
    for folder in folders[1:]:
        change_manifest(folder, run_id="same")
    code, out = dare("report", *folders, "--out", tmp_path / "report")
    assert code == 0 and out.startswith("match: ")
    text = (tmp_path / "report" / "report.md").read_text()
    assert "## Run same (no. 1 of 2 runs with this id)" in text and "no. 2 of 2" in text
    names = [suite.get("name") for suite in ElementTree.parse(tmp_path / "report" / "report.xml").getroot()]
    assert len(set(names)) == 2
