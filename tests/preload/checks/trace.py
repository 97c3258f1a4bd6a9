"""Reads a text trace by the grammar of format-spec/text.md, on its own, and checks what every trace promises."""

import re
import sys

BLOCK = r'(0|[1-9a-f][0-9a-f]*<[1-9][0-9]*>)'
NUMBER = r'(0|[1-9][0-9]*)'
OPTIONS = r'(?:, [1-9][0-9]*)?(?:, align=[1-9][0-9]*)?(?:, nothrow)?'
# kind: the arguments between the parentheses: b the block given, n a number, o what operators may have
ARGUMENTS = {
    'malloc': 'n', 'free': 'b', 'calloc': 'nn', 'realloc': 'bn', 'reallocarray': 'bnn', 'aligned_alloc': 'nn',
    'posix_memalign': 'nn', 'memalign': 'nn', 'valloc': 'n', 'pvalloc': 'n', 'free_sized': 'bn',
    'free_aligned_sized': 'bnn', 'thread_start': '', 'thread_exit': '', 'sample': 'n', 'malloc_trim': 'n',
    'touch': 'bnnn', 'resident': 'bnnn',
    'operator new': 'no', 'operator new[]': 'no', 'operator delete': 'bo', 'operator delete[]': 'bo'}
ENDS_ONLY = ('free', 'free_sized', 'free_aligned_sized', 'thread_start', 'thread_exit', 'sample', 'malloc_trim', 'touch',
             'resident', 'operator delete', 'operator delete[]')


def pattern(kind, arguments):
    inside = ', '.join(BLOCK if a == 'b' else NUMBER for a in arguments if a != 'o')
    inside += OPTIONS if 'o' in arguments else ''
    result = '' if kind in ENDS_ONLY else ' = ' + BLOCK
    return re.compile(rf'{re.escape(kind)}\({inside}\){result}(?: thread=([1-9][0-9]*))?(?: time={NUMBER})?(?: usable=[0-9]+)?(?: stack=[1-9][0-9]*)?$')


LABELLED = ('thread_name', 'mark', 'mallopt', 'mallctl')
PAGES = ('touch', 'resident')
PATTERNS = {kind: pattern(kind, arguments) for kind, arguments in ARGUMENTS.items()}
DEFINITIONS = ('#module ', '#frame ', '#name ', '#node ', '#unloaded ', '#stretch ')
NAME = re.compile(r'(?:thread_name|mark|mallopt|mallctl)\("((?:[^"\\]|\\.)*)"\)(?: thread=([1-9][0-9]*))?(?: time=[0-9]+)?$')


class Event:
    """kind, numbers, given and result as (address, tag) or None, thread, time."""

    def __init__(self, line):
        self.kind = line.split('(')[0]
        match = NAME.match(line) if self.kind in LABELLED else PATTERNS[self.kind].match(line)
        assert match, f'not a canonical line: {line!r}'
        self.numbers, self.given, self.result, self.time = [], None, None, None
        fields = list(match.groups())
        if self.kind in LABELLED:
            self.name, self.thread = fields[0], int(fields[1] or 0)
            return
        if fields[-1]:
            self.time = int(fields[-1])
        self.thread = int(fields[-2] or 0)
        for argument in ARGUMENTS[self.kind].replace('o', ''):
            value = fields.pop(0)
            if argument == 'n':
                self.numbers.append(int(value))
            elif argument == 'b':
                self.given = block(value)
        if self.kind not in ENDS_ONLY:
            self.result = block(fields.pop(0))

    def bytes(self):
        if self.kind in ('calloc', 'reallocarray'):
            return self.numbers[0] * self.numbers[1]
        return self.numbers[-1] if self.numbers else 0

    def allocates(self):
        return self.kind not in ENDS_ONLY + LABELLED

    def ends(self):
        return self.given and (self.kind in ENDS_ONLY or self.result or self.bytes() == 0)


def block(text):
    if text == '0':
        return None
    address, tag = text[:-1].split('<')
    return int(address, 16), int(tag)


class Trace:
    """All events of a file, checked. `whole`: whether its end has to be the program's own, or has to be that of one that was killed."""

    def __init__(self, path, whole=None):
        text = open(path, encoding='utf-8').read()
        assert text.endswith('\n'), f'{path}: the last line is cut off'
        lines = text[:-1].split('\n')
        assert lines[0] == '#cmt text=1', f'{path}: {lines[0]!r}'
        self.header = {}
        while lines and lines[0].startswith('#cmt '):
            if lines[0].startswith('#cmt end='):
                break
            key, value = lines.pop(0)[5:].split('=', 1)
            self.header[key] = value
        self.end = lines.pop() if lines and lines[-1].startswith('#cmt end=') else None
        assert self.end is not None, f'{path}: no end line'
        assert whole is None or whole == (self.end == '#cmt end=complete'), f'{path}: end line {self.end!r}'
        while self.end is not None and lines and lines[-1].startswith('#cmt repairs_'):
            lines.pop()
        has_repairs = self.end is not None and lines and lines[-1].startswith('#cmt repairs=')
        self.repairs = int(lines.pop()[len('#cmt repairs='):]) if has_repairs else 0
        self.events = [Event(line) for line in lines if not line.startswith(DEFINITIONS)]
        self.unseen = 0
        self.check(path)

    def check(self, path):
        live, last, first = {}, 0, None
        for number, event in enumerate(self.events):
            where = f'{path}: event {number}'
            if event.kind in PAGES:
                address, tag = event.given
                assert live.get(address, (0, 0))[0] == tag, f'{where}: a page of block {tag}, which is dead'
                continue
            if event.ends():
                address, tag = event.given
                if address in live:
                    assert live.pop(address)[0] == tag, f'{where}: another block lives there'
                else:
                    assert first is None or tag < first, f'{where}: block {tag} is dead'
                    self.unseen += 1
            if event.result:
                address, tag = event.result
                assert tag > last, f'{where}: tag {tag} after {last}'
                assert address not in live, f'{where}: {address:x} is live'
                live[address] = (tag, event.bytes())
                last = tag
                first = first or tag
        self.live = live

    def count(self, kind):
        return sum(event.kind == kind for event in self.events)


if __name__ == '__main__':
    truncated = sys.argv[1] == '--truncated'
    for name in sys.argv[1 + truncated:]:
        trace = Trace(name, whole=not truncated)
        print(name, len(trace.events), 'events,', trace.unseen, 'unseen,', trace.end)
