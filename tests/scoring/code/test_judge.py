"""What tests can do with a program across the wire, and which status each way to end gives."""

from __future__ import annotations

import pytest

from dare_eval.scoring.code import Limits, Program, SandboxPool, run_code

pytestmark = pytest.mark.xdist_group("sandbox")


@pytest.fixture(scope="module")
def pool(private_sandbox):
    with SandboxPool(workers=1) as made:
        yield made


def status(pool, code: str, *tests: str, **fields) -> str:
    return pool.run(Program(code=code, tests=tests, **fields), Limits(wall_s=20)).status


CLASSES = """
class Node:
    def __init__(self, value):
        self.value, self.left = value, None
    def __len__(self):
        return 1 + (len(self.left) if self.left else 0)
    def __getitem__(self, key):
        return self.__dict__[key]
    def __setitem__(self, key, value):
        self.__dict__[key] = value
    def __contains__(self, key):
        return key in self.__dict__
    def __iter__(self):
        return iter([self.value])
    def __bool__(self):
        return self.value != 0
    def __str__(self):
        return f'<{self.value}>'
def depth(node):
    return len(node)
def numbers():
    yield from range(3)
def apply(function, values):
    return [function(value) for value in values]
def fail(kind):
    raise kind('told so')
class Own(Exception):
    pass
def own():
    raise Own('mine')
LIMIT = 5
def same(x):
    return x
def pairs(*args, **named):
    return args, named
"""


@pytest.mark.parametrize(
    "test",
    [
        "root = Node(1)\nroot.left = Node(2)\nassert depth(root) == 2 and root.left.value == 2",
        "n = Node(3)\nn['k'] = 4\nassert n['k'] == 4 and 'k' in n and 'z' not in n and list(n) == [3] and len(n) == 1",
        "assert str(Node(3)) == '<3>' and bool(Node(1)) and not Node(0)",
        "a = Node(1)\nassert a == a and a != Node(1) and hash(a) == hash(a)",
        "assert list(numbers()) == [0, 1, 2] and sum(numbers()) == 3",
        "it = iter(numbers())\nassert next(it) == 0 and next(it) == 1",
        "assert apply(lambda v: v + 1, [1, 2]) == [2, 3]",
        "assert apply(str, [1, 2]) == ['1', '2'] and apply(len, ['ab']) == [2]",
        "import math\nassert apply(math.floor, [1.5]) == [1]",
        "seen = []\napply(seen.append, [1, 2])\nassert seen == [1, 2]",
        "try:\n    fail(ValueError)\nexcept ValueError as e:\n    assert str(e) == 'told so'\nelse:\n    assert False",
        "try:\n    own()\nexcept Exception as e:\n    assert 'mine' in str(e)\nelse:\n    assert False",
        "try:\n    apply(lambda v: 1 / 0, [1])\nexcept ZeroDivisionError:\n    pass\nelse:\n    assert False",
        "assert LIMIT == 5",
        "assert pairs(1, 2, self=3, target=4, operation=5) == ((1, 2), {'self': 3, 'target': 4, 'operation': 5})",
        "assert same(float('nan')) != same(float('nan')) and same(True) is True and same(None) is None",
        "assert type(same((1, [2, {3}]))) is tuple and same(2 ** 200) == 2 ** 200 and same('\\ud800') == '\\ud800'",
        "assert same.__name__ == 'same'\nimport copy\nassert copy.deepcopy(same)(1) == 1",
        "import threading\nr = []\nt = threading.Thread(target=lambda: r.append(same(1)))\n"
        "t.start()\nt.join()\nassert r == [1]",
        "assert same(Node)(4).value == 4 and isinstance(same(int), type)",
        "class Mine:\n    pass\ndef check(f):\n    assert f(3) == 3\ncheck(same)",
    ],
)
def test_tests_work_as_in_one_process(pool, test):
    assert status(pool, CLASSES, test) == "passed"


@pytest.mark.parametrize(
    ("code", "test", "wanted"),
    [
        ("def f(x): return x", "assert f(1) == 2", "failed"),
        ("def f(x): raise AssertionError('mine')", "f(1)", "failed"),
        ("assert False, 'written by the model'\ndef f(x): return x", "assert f(1) == 1", "failed"),
        ("def f(x): return 1 / 0", "f(1)", "error:ZeroDivisionError"),
        ("class E(Exception): pass\ndef f(x): raise E", "f(1)", "error:E"),
        ("def f(x) return x", "f(1)", "error:SyntaxError"),
        ("import not_there", "f(1)", "error:ModuleNotFoundError"),
        ("def g(x): return x", "assert f(1) == 1", "missing_entry_point"),
        ("def f(x): return g(x)", "f(1)", "error:NameError"),
        ("def f(x): return x", "assert f(1) == unknown", "error:NameError"),
        ("def f(x): return x()", "class Mine: pass\nf(Mine())", "error:UnsupportedValue"),
        ("def f(x): return input()", "f(1)", "error:EOFError"),
        ("def f(x): return ''.join(['a'] * x)", "assert f(10 ** 10) == ''", "memory"),
        ("import sys\ndef f(x): sys.exit('bye')", "f(1)", "exited"),
        ("def f(x): return x", "assert True", "failed"),
        ("import os\ndef f(x): os._exit(3)", "try:\n    f(1)\nexcept BaseException:\n    pass", "exited"),
        ("def f(x): return x", "this is no test", "bad_test"),
        ("if __name__ == '__main__':\n    raise SystemExit\ndef f(x): return x", "assert f(1) == 1", "passed"),
        (
            "from dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\ndef f(x): return P(x).x",
            "assert f(1) == 1",
            "passed",
        ),
        ("import typing\ndef f(x: 'int'): return typing.get_type_hints(f)['x']", "assert f(1) is int", "passed"),
        ("import random\ndef f(x): return random.random()", "assert f(1) == f.__call__(1) or True", "passed"),
    ],
)  # fmt: skip
def test_status(pool, code, test, wanted):
    assert status(pool, code, test, entry_points=("f",)) == wanted


def test_names_of_the_prompt_beat_those_of_the_program(pool):
    cheat = "def encode(s):\n    return s\ndef decode(s):\n    return s"
    honest = "def encode(s):\n    return s[::-1]\ndef decode(s):\n    return s[::-1]"
    setup = ("def encode(s):\n    return s[::-1]",)
    test = "assert decode(encode('abc')) == 'abc'"
    assert status(pool, cheat, test, setup=setup, entry_points=("decode",)) == "failed"
    assert status(pool, honest, test, setup=setup, entry_points=("decode",)) == "passed"


def test_a_program_cannot_replace_a_built_in_of_the_tests(pool):
    cheat = "def abs(x):\n    return 0\ndef len(x):\n    return 3\ndef f(x):\n    return 99.0"
    assert status(pool, cheat, "assert abs(f(1) - 2) < 0.1", entry_points=("f",)) == "failed"
    named_so = "def sum(a, b):\n    return a + b"
    assert status(pool, named_so, "assert sum(1, 2) == 3", entry_points=("sum",)) == "passed"


def test_arguments_are_copies_so_a_program_cannot_change_what_it_is_compared_with(pool):
    cheat = "def f(x):\n    x.clear()\n    return []"
    assert status(pool, cheat, "x = [3, 1]\nassert f(x) == sorted(x)", entry_points=("f",)) == "failed"


def test_verdicts_do_not_change_between_runs(pool):
    code = "import random\ndef f(x):\n    return random.random(), str({str(n) for n in range(50)}), hash('a')"
    seen = {pool.run(Program(code=code, tests=("raise ValueError(f(1))",)), Limits()).reason for _ in range(3)}
    with SandboxPool(workers=1) as other:
        seen.add(other.run(Program(code=code, tests=("raise ValueError(f(1))",)), Limits()).reason)
    assert len(seen) == 1


def test_counts_output_and_trace(pool):
    code = (
        "import sys\nprint('loading')\ndef f(x):\n    print('called', x)\n    sys.stderr.write('warned')\n    return x"
    )
    verdict = run_code(code, ["assert f(1) == 1", "assert f(2) == 2", "assert f(3) == 4"], sandbox=pool)
    assert (verdict.status, verdict.tests_passed) == ("failed", 2)
    assert "loading" in verdict.output
    assert "called 3" in verdict.output
    assert "warned" in verdict.output
    assert "<test 3>" in verdict.trace
    crashed = run_code("def f(x):\n    y = x\n    return y.nothing", "f(1)", sandbox=pool)
    assert "return y.nothing" in crashed.trace


def test_output_is_cut_and_counted(pool):
    limits = Limits(output_bytes=1000)
    verdict = run_code("print('y' * 3_000_000)\ndef f(x): return x", "assert f(1) == 1", limits=limits, sandbox=pool)
    assert verdict.passed
    assert verdict.output == "y" * 1000
    assert verdict.output_bytes == 3_000_001


FORKING = "import os\nif os.fork() == 0:\n    print('child')\nelse:\n    os.wait()\n    print('parent')"


@pytest.mark.parametrize(
    ("code", "stdin", "wanted", "output"),
    [
        ("print(int(input()) + 1)", "4\n", "passed", "5\n"),
        ("import sys\nprint(sum(map(int, sys.stdin.read().split())))", "1 2\n3\n", "passed", "6\n"),
        ("import os\nprint(len(os.read(0, 100)))", "abc", "passed", "3\n"),
        ("if __name__ == '__main__':\n    print('main')", "", "passed", "main\n"),
        ("import sys\nprint('x')\nsys.exit()", "", "passed", "x\n"),
        ("print('x')\nexit(0)", "", "passed", "x\n"),
        ("import atexit\natexit.register(lambda: print('late'))", "", "passed", "late\n"),
        ("import threading\nthreading.Thread(target=lambda: print('t')).start()", "", "passed", "t\n"),
        ("import os\nos.write(1, b'z')\nos._exit(0)", "", "passed", "z"),
        ("raise SystemExit(3)", "", "exited", ""),
        ("print(1 / 0)", "", "error:ZeroDivisionError", ""),
        ("print(input())", "", "error:EOFError", ""),
        (FORKING, "", "passed", "child\nparent\n"),
    ],
)  # fmt: skip
def test_scripts(pool, code, stdin, wanted, output):
    verdict = pool.run(Program(code=code, stdin=stdin), Limits(wall_s=20))
    assert (verdict.status, verdict.output) == (wanted, output), verdict
