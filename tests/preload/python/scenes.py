"""scenes.py LOG [--seed=N] [--repeat=N] SCENE...: allocates in the places where frames of Python are hard to find.

Each marked allocation has a size of its own, FIRST_SIZE + its number. LOG.PID gets a line for each: the size, and then
the frames of sys._getframe, innermost first, as function, file and line, between tabs. check.py compares them with the
trace. The scene `made` runs a program that was made at random; further ones are the known hard cases.
"""
import asyncio
import contextlib
import ctypes
import functools
import gc
import itertools
import json
import os
import random
import re
import signal
import sys
import threading
import time
import weakref
import zlib

FIRST_SIZE = 1 << 20
here = sys._getframe
numbers = itertools.count(FIRST_SIZE)
log_path = log = None


def open_log():
    """A forked child has a trace of its own."""
    global log, numbers
    numbers = itertools.count(FIRST_SIZE)
    log = os.open(f"{log_path}.{os.getpid()}", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)


def note(frame):
    """Logs the frames from this one outwards. Returns the size to allocate, on the line that calls."""
    size, words = next(numbers), []
    while frame:
        code = frame.f_code
        words += [getattr(code, "co_qualname", code.co_name), code.co_filename, str(frame.f_lineno or 0)]
        frame = frame.f_back
    os.write(log, ("\t".join([str(size), *words]) + "\n").encode(errors="surrogateescape"))
    return size


def functions_of(library):
    """malloc, and free, which a call of malloc is given to."""
    malloc, free = library.malloc, library.free
    malloc.argtypes, malloc.restype = [ctypes.c_size_t], ctypes.c_void_p
    free.argtypes, free.restype = [ctypes.c_void_p], None
    return malloc, free


malloc, free = functions_of(ctypes.CDLL(None))  # without the interpreter's lock
malloc_held, free_held = functions_of(ctypes.PyDLL(None))


def mark(value=0):
    free(malloc(note(here())))
    free_held(malloc_held(note(
        here())))
    return value


# Programs made at random. %(call)s calls a function further down.
CALLS = ["%(f)s(d - 1)", "%(f)s(\n        d\n        - 1,\n    )", "list(map(%(f)s, [d - 1]))", "sorted([d - 1, 0], key=%(f)s)",
         "[%(f)s(e) for e in (d - 1,)]", "{e: %(f)s(e) for e in (d - 1,)}", "sum(%(f)s(e) for e in (d - 1,))",
         "(lambda e: %(f)s(e))(d - 1)", "eval('%(f)s(d - 1)', globals(), {'d': d})", "functools.partial(%(f)s, d - 1)()",
         "functools.reduce(lambda a, b: %(f)s(b), [0, d - 1])", "f'{%(f)s(d - 1)!r:>3}'", "Equal(%(f)s, d - 1) == 1",
         "[1].index(Equal(%(f)s, d - 1))", "re.sub('a', lambda m: str(%(f)s(d - 1)), 'a')", "list(yields(%(f)s, d - 1))",
         "drive(awaits(%(f)s, d - 1))", "json.loads('[{}]', object_hook=lambda o: %(f)s(d - 1))", "max([1, 2], key=lambda e: %(f)s(d - 1))",
         "json.dumps({1: {2}}, default=lambda o: %(f)s(d - 1))", "json.dumps([{2}], indent=1, default=lambda o: %(f)s(d - 1))",
         "type('C', (), {'p': property(lambda self: %(f)s(d - 1))})().p", "by_qsort(%(f)s, d - 1)", "in_thread(%(f)s, d - 1)",
         "str.translate('a', Item(%(f)s, d - 1))", "Item(%(f)s, d - 1)['a']", "wrapped(%(f)s)(d - 1)", "next(iter(lambda: %(f)s(d - 1), None))"]
BODIES = ["    x = %(call)s\n", "    try:\n        x = %(call)s\n        raise KeyError\n    except KeyError:\n        %(mark)s\n",
          "    try:\n        x = %(call)s\n    finally:\n        %(mark)s\n", "    with Context():\n        x = %(call)s\n",
          "    class C%(n)s:\n        x = %(call)s\n        def m(self, y=%(mark)s): return %(mark)s\n    C%(n)s().m()\n",
          "    for e in gives(d):\n        x = %(call)s\n        %(mark)s\n", "    exec('''\n\n%(mark)s\n''')\n    x = %(call)s\n",
          "    def inner%(n)s():\n        yield %(mark)s\n        yield %(call)s\n    for x in inner%(n)s(): %(mark)s\n",
          "    if d > 1 and %(call)s: %(mark)s\n    else: %(mark)s\n", "    %(mark)s; x = %(call)s; %(mark)s\n"]
MARKS = ["free(malloc(note(here())))", "free_held(malloc_held(note(here())))", "mark()"]


class Equal:
    def __init__(self, function, argument):
        self.call = lambda: function(argument)

    def __eq__(self, other):
        self.call()
        return True


class Item(Equal):
    def __getitem__(self, key):
        self.call()
        return "b"


class Context:
    def __enter__(self):
        mark()

    def __exit__(self, *error):
        mark()


def yields(function, argument):
    yield (yield from (function(argument) for _ in (1,)))


def gives(count):
    for i in range(min(count, 2)):
        mark()
        yield i


async def awaits(function, argument):
    async def inner():
        return function(argument)
    return await inner()


def drive(coroutine):
    with contextlib.suppress(StopIteration):
        coroutine.send(None)


def in_thread(function, argument):
    thread = threading.Thread(target=function, args=(argument,))
    thread.start()
    thread.join()


def wrapped(function):
    @functools.wraps(function)
    def outer(*arguments):
        return function(*arguments)
    return outer


compares = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)


def by_qsort(function, argument):
    def compare(a, b):
        function(argument)
        return 0
    ctypes.CDLL(None).qsort((ctypes.c_int * 2)(2, 1), 2, 4, compares(compare))


def made_program(choose, functions=12):
    """A program whose function f0 calls others, in each way, and allocates."""
    text = ""
    for i in range(functions):
        text += "\n" * choose.randrange(40) + f"def f{i}(d):\n    if d <= 0: return mark(0)\n"
        for n in range(choose.randrange(1, 3)):
            call = choose.choice(CALLS) % {"f": f"f{choose.randrange(i + 1, functions + 1)}"}
            text += choose.choice(BODIES) % {"call": call, "mark": choose.choice(MARKS), "n": n}
        text += "    return 0\n"
    return text + f"\ndef f{functions}(d): return mark(0)\n"


def made():
    seed = next(seeds)
    choose = random.Random(seed)
    names = dict(globals())
    exec(compile(made_program(choose), f"<made {seed % 3} ünïcode>", "exec"), names)  # other code of the same name
    names["f0"](5)


def recursion():
    def down(depth):
        if depth % 50 == 0:
            mark()
        return down(depth - 1) + 1 if depth else 0

    def by_map(depth):
        return depth and list(map(by_map, [depth - 1])) or mark()

    def to_the_limit(depth):
        if depth > sys.getrecursionlimit() - 60:
            with contextlib.suppress(RecursionError, ctypes.ArgumentError):  # by ctypes; with some versions a limit in C comes first
                mark()
        return to_the_limit(depth + 1)
    down(600)
    by_map(90)
    with contextlib.suppress(RecursionError):
        to_the_limit(0)
    mark()


def churn(count=40):
    """Code objects that die: their addresses return with other code."""
    for i in range(count):
        names = {"mark": mark}
        exec(compile("\n" * (i % 17) + f"def dies{i}(d):\n    return dies{i}(d - 1) if d else mark()", f"<churn {i}>", "exec"), names)
        names[f"dies{i}"](3)
        del names
        eval(f"(lambda a: [mark() for _ in (a, {i})])(1)", {"mark": mark})
        if i % 10 == 0:
            gc.collect()


def generators():
    def numbered(name, count):
        try:
            for i in range(count):
                yield mark(i)
        finally:
            mark()
    choose = random.Random(next(seeds))
    live = [numbered(i, 5) for i in range(9)]
    for _ in range(60):
        each = choose.choice(live)
        with contextlib.suppress(StopIteration, KeyError):
            choose.choice([lambda: next(each), lambda: each.send(None), lambda: each.throw(KeyError()), each.close])()
        if each.gi_frame is None:
            live.remove(each)
            live.append(numbered(0, choose.randrange(7)))
    list(zip(numbered(1, 3), (mark() for _ in range(3)), map(mark, range(3))))


def coroutines():
    class Asynchronous:
        async def __aenter__(self): mark(); await asyncio.sleep(0); mark()
        async def __aexit__(self, *error): await asyncio.sleep(0); mark()
        async def __aiter__(self):
            for i in range(3):
                await asyncio.sleep(0)
                yield mark(i)

    async def tree(depth):
        mark()
        async with Asynchronous() as nothing:
            if depth:
                await asyncio.gather(tree(depth - 1), tree(depth - 2) if depth > 1 else asyncio.sleep(0))
        return [i async for i in Asynchronous()] + [await asyncio.get_running_loop().run_in_executor(None, mark)]

    async def cancelled():
        try:
            await asyncio.sleep(9)
        except asyncio.CancelledError:
            mark()
            raise

    async def waits():  # its frame has no loop while the exception is thrown into the inner one; before 3.11 not placed
        await cancelled()

    async def main():
        task = asyncio.ensure_future((waits if sys.version_info >= (3, 11) else cancelled)())
        await tree(4)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    asyncio.run(main())


def callbacks():
    """The interpreter's C code calls Python. Further callbacks are in CALLS."""
    class Meta(type):
        def __new__(cls, name, bases, names):
            mark()
            return super().__new__(cls, name, bases, names)
        def __call__(cls, *arguments):
            mark()
            return super().__call__(*arguments)

    class Many(metaclass=Meta):
        def __init_subclass__(cls): mark()
        def __hash__(self): return mark()
        def __lt__(self, other): return bool(mark(1))
        def __getattr__(self, name):
            if name.startswith("__"): raise AttributeError(mark(name))
            return mark(mark)
        def __del__(self): mark()
        def __iter__(self): return iter([mark(), 1])
        def __len__(self): return mark(2)
        def __bool__(self): return bool(mark(1))
        def __index__(self): return mark(1)
        def __set_name__(self, owner, name): mark()
        def __reduce__(self): mark(); return (int, ())
        def __call__(self, *arguments): return mark(0)
        def __add__(self, other): return mark(self)

    class Derived(Many):
        part = Many()
        for word in (1, 2):
            mark()
    import copy
    import pickle
    one, two = Many(), Derived()
    {one: 1}, min(one, two), one.other(), list(one), len(one), not one, [1, 2][one], one + two, sum([two], one)
    copy.deepcopy(one), pickle.dumps(one), sorted([one, two]), dict.fromkeys([one]), functools.lru_cache(one)(2)
    weakref.finalize(one, mark)
    reference = weakref.ref(two, lambda dead: mark())
    one.self = one
    gc.callbacks.append(lambda phase, info: mark())
    del one, two
    gc.collect()
    gc.callbacks.clear()
    with contextlib.suppress(ImportError):
        import sqlite3
        database = sqlite3.connect(":memory:")
        database.create_function("f", 1, mark)
        database.execute("select f(1), f(2)").fetchall()
    import xml.etree.ElementTree as tree
    tree.fromstring("<a><b/></a>", tree.XMLParser(target=type("T", (), {"start": lambda *a: mark(), "end": lambda *a: mark(),
                                                                        "close": lambda *a: mark()})()))
    import dataclasses
    dataclasses.make_dataclass("D", [("x", int, dataclasses.field(default_factory=mark))])()
    folder = os.path.dirname(os.path.abspath(log_path))
    with open(f"{folder}/imported_{os.getpid()}.py", "w", encoding="utf-8") as file:
        file.write("import builtins\n\nbuiltins.mark()\n\nclass A:\n    builtins.mark()\n")
    import builtins
    builtins.mark, sys.path[:0] = mark, [folder]
    __import__(f"imported_{os.getpid()}")


def mixed():
    """Only these have native frames between two Python frames, or none: check.py knows them by name."""
    def from_c(value): return mark(value)
    def from_python(value): return from_c(value) if value > 5 else mark(value)
    def calls(value): return from_python(value)
    for i in range(8):
        calls(i), sorted([i, i], key=from_c), list(map(from_c, [i])), functools.partial(from_c, i)()


def threads():
    group = [threading.Thread(target=scene) for scene in (made, churn, generators, coroutines, compresses, made)]
    for thread in group: thread.start()
    made()
    for thread in group: thread.join()


def compresses(count=60):
    data = os.urandom(3000) * 4
    for _ in range(count):
        zlib.decompress(zlib.compress(data))
        mark()


def exceptions():
    def down(depth):
        try:
            return down(depth - 1) if depth else 1 // 0
        except ZeroDivisionError as error:
            if depth % 40 == 0: mark(error.__traceback__)
            raise
        finally:
            if depth % 50 == 0: mark()
    for depth in (1, 7, 200):
        with contextlib.suppress(ZeroDivisionError):
            down(depth)
        mark()


def signals():
    inside = []  # a recorder that checks itself takes longer than a millisecond
    signal.signal(signal.SIGALRM, lambda number, frame: inside or [inside.append(1), mark(), inside.pop()])
    signal.setitimer(signal.ITIMER_REAL, .001, .001)
    made(), churn(20), generators(), exceptions(), coroutines(), compresses(20)
    signal.setitimer(signal.ITIMER_REAL, 0)


def traced():
    for set_hook in (sys.settrace, sys.setprofile):
        set_hook(hook)
        plain(3), exceptions()
        set_hook(None)


def hook(frame, event, argument):
    if frame.f_code.co_name == "plain":
        mark()
    return hook


def plain(depth):
    mark()
    if depth:
        plain(depth - 1)
    return [mark() for _ in range(2)]


def forks():
    def down(depth):
        if depth: return down(depth - 1)
        mark()
        child = os.fork()
        if child == 0:
            mark(), made(), churn(5), threads()
        else:
            os.waitpid(child, 0)
        mark()
        return child
    if down(20) == 0:
        mark()
        sys.exit(0)


def interpreters():
    """Their own chains of frames. The lock is held: up to 3.11, a thread without it has the main interpreter's chain."""
    if sys.version_info < (3, 10):
        return print("skipped: loops of two interpreters cannot be counted apart")
    try:
        import _xxsubinterpreters as module
        create, run = functools.partial(module.create, isolated=False), module.run_string
    except ImportError:
        import _interpreters as module
        create, run = functools.partial(module.create, "legacy"), module.exec
    text = f"import sys, os, itertools, ctypes\nlog, here, numbers = {log}, sys._getframe, itertools.count(%d)\n"
    for name in (note, functions_of):
        import inspect
        text += inspect.getsource(name)
    text += ("malloc, free = functions_of(ctypes.PyDLL(None))\ndef g(d):\n    free(malloc(note(here())))\n"
             "    return g(d - 1) if d else sorted([2, 1], key=lambda e: [e, free(malloc(note(here())))][0])\nfor _ in range(3): g(5)\n")
    for i in range(3):
        mark()
        interpreter = create()
        run(interpreter, text % (FIRST_SIZE + (i + 1) * 100000))
        mark()
        module.destroy(interpreter)


def daemons():
    """Threads that allocate while the interpreter ends. Each may have logged an allocation that it was kept from, or that it
    makes without the interpreter's lock when its frames have been ended."""
    def forever():
        while True: compresses(1), churn(1)
    for _ in range(3): threading.Thread(target=forever, daemon=True).start()
    time.sleep(.05)
    made()


def exits():
    import atexit
    atexit.register(mark)
    atexit.register(plain, 3)
    threading.Thread(target=lambda: (time.sleep(.02), plain(3))).start()


SCENES = [made, recursion, churn, generators, coroutines, callbacks, mixed, threads, compresses, exceptions, signals, traced, forks,
          interpreters, daemons, exits]

if __name__ == "__main__":
    words = [word for word in sys.argv[2:] if not word.startswith("--")]
    options = dict(word[2:].split("=") for word in sys.argv[2:] if word.startswith("--"))
    seeds = itertools.count(int(options.get("seed", 1)))
    log_path = sys.argv[1]
    open_log()
    threading.excepthook = lambda failure: [sys.excepthook(*failure[:3]), os._exit(3)]
    os.register_at_fork(after_in_child=open_log)
    for _ in range(int(options.get("repeat", 1))):
        for scene in SCENES:
            if scene.__name__ in words:
                scene()
