import random
import unittest

import app
import pytest


@pytest.mark.parametrize("line", ["a,b;c", "a::b", "[x:@y]"])
def test_parse(line):
    assert len(app.parse_line(line)) == len(set(line.replace(";", ",").split(",")))


def test_summary():
    assert "names" in app.summary(app.parse_line("a,b"))


def test_many():
    lines = [app.parse_line("a,b;c%d" % i) for i in range(50)]
    assert len(lines) == 50


def test_sets():
    words = {str(i) for i in range(100)}
    assert len({hash(each) for each in words}) == 100


def test_import():
    import fractions
    assert fractions.Fraction(1, 3) > 0


def test_file(tmp_path):
    (tmp_path / "file").write_text("text")
    assert (tmp_path / "file").read_text() == "text"


def test_raises():
    with pytest.raises(ZeroDivisionError):
        print(1 // 0)


def test_random():
    assert [[] for _ in range(random.randint(1, 100000))]  # another number of blocks in each run


class TestOld(unittest.TestCase):
    def test_it(self):
        self.assertEqual(1, 1)
