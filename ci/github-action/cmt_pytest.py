"""A plugin of pytest: puts a mark into the trace of cmttrace for each test.

The blocks of a test depend on what earlier tests left in the interpreter's free lists, and on the moment of a garbage
collection. So all garbage is collected before each test, which empties the lists, and none during it. Only the call of the
test is marked, not its fixtures. Without cmttrace the plugin does nothing.
"""

import ctypes
import gc

import pytest

try:
    _mark = ctypes.CDLL(None).cmttrace_mark
    _mark.restype = None
except AttributeError:
    _mark = None

_after = b"[between tests]"


@pytest.hookimpl(hookwrapper=True, trylast=True)
def pytest_runtest_call(item):
    if _mark is None:
        yield
        return
    label = item.nodeid.encode("utf-8", "backslashreplace")
    was_enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    _mark(label)
    yield
    _mark(_after)
    if was_enabled:
        gc.enable()
