"""check.py [--may-miss=N] [--version=3.N] TRACE LOG: whether the Python frames of a text trace are those in a log of scenes.py.

A frame of Python is one of the module [python]. All of a stack are compared, with function, file and line. A stack that
is cut has the innermost ones. In the scene `mixed`, the native frames between two frames of Python are counted, too.
--may-miss: so many allocations were logged, and then prevented, or made when the interpreter had ended the thread's frames.
"""
import argparse
import re
import sys

FIRST_SIZE = 1 << 20
ATTRIBUTE = re.compile(r'([a-z_]+)=("(?:[^"\\]|\\.)*"|\S+)')
ESCAPE = re.compile(rb'\\(x[0-9a-f]{2}|.)')
EVENT = re.compile(r'malloc\(([0-9]+)\) = .* stack=([0-9]+)')


def unescape(text):
    if text[0] != '"':
        return text
    plain = ESCAPE.sub(lambda found: bytes([int(found[1][1:], 16)]) if found[1][:1] == b'x' and len(found[1]) == 3 else
                       {b'n': b'\n', b't': b'\t', b'r': b'\r'}.get(found[1], found[1]), text[1:-1].encode())
    return plain.decode(errors='surrogateescape')


def read_trace(path):
    """(module of each frame, its name, (parent, frame) of each node, {size: node})"""
    paths, modules, names, nodes, events = {'0': ''}, {}, {}, {}, {}
    with open(path, encoding='utf-8') as file:
        for line in file:
            if line.startswith(('#module ', '#frame ', '#name ', '#node ')):
                word, number, _ = line.split(' ', 2)
                having = {key: unescape(value) for key, value in ATTRIBUTE.findall(line)}
                if word == '#module':
                    paths[number] = having['path']
                elif word == '#frame':
                    modules[number] = paths[having['module']]
                elif word == '#node':
                    nodes[number] = having['parent'], having['frame']
                else:
                    names.setdefault(number, (having['function'], having.get('file', ''), having.get('line', '0')))
            elif (found := EVENT.match(line)) and int(found[1]) >= FIRST_SIZE:
                events.setdefault(int(found[1]), found[2])
    return modules, names, nodes, events


def stack_of(node, modules, names, nodes):
    """(frames of Python, innermost first; how many native ones are inside of each; whether the stack is cut)"""
    found, native, inside = [], [], 0
    while node != '0':
        node, frame = nodes[node]
        if frame == '0':
            return found, native, True
        if names.get(frame) == ('__init__', '__init__', '0'):  # from a call of a class to its __init__
            continue
        if modules[frame] == '[python]':
            found.append(names.get(frame, ('?', '?', '?')))
            native.append(inside)
            inside = 0
        else:
            inside += 1
    return found, native, False


def misplaced(found, native, has_plain_calls):
    """The frame of the scene `mixed` that has a wrong number of native frames around it, or None."""
    for i in range(1, len(found)):
        inner, function = found[i - 1][0].rsplit('.', 1)[-1], found[i][0].rsplit('.', 1)[-1]
        by_python = inner == 'from_python' or (inner, function) == ('from_c', 'from_python') or inner == 'mark'
        if inner in ('from_python', 'from_c', 'mark') and function in ('mixed', 'calls', 'from_python', 'from_c'):
            if (native[i] == 0) != (by_python and has_plain_calls):
                return f'{native[i]} native frames between {inner} and {function}'
    return None


parser = argparse.ArgumentParser()
parser.add_argument('--may-miss', type=int, default=0)
parser.add_argument('--version', default='3.11')
parser.add_argument('trace')
parser.add_argument('log')
options = parser.parse_args()
modules, names, nodes, events = read_trace(options.trace)
has_plain_calls = int(options.version.split('.')[1]) >= 11  # a call from Python to Python has no frame on the C stack
compared = cut = missing = faults = frames = 0
with open(options.log, encoding='utf-8', errors='surrogateescape') as file:
    for line in file:
        size, *words = line.rstrip('\n').split('\t')
        wanted = list(zip(words[::3], words[1::3], words[2::3]))
        if int(size) not in events:
            missing += 1
            continue
        found, native, is_cut = stack_of(events[int(size)], modules, names, nodes)
        if not found and options.may_miss:
            missing += 1
            continue
        compared, frames, cut = compared + 1, frames + len(found), cut + is_cut
        fault = None
        if is_cut and len(found) < len(wanted):
            wanted = wanted[:len(found)]
        if found != wanted:
            at = next((i for i, pair in enumerate(zip(found, wanted)) if pair[0] != pair[1]), min(len(found), len(wanted)))
            fault = f'frame {at} of {len(wanted)}: {found[at:at + 3]}, not {wanted[at:at + 3]}'
        elif any(function.endswith('mixed') for function, _, _ in wanted):
            fault = misplaced(found, native, has_plain_calls)
        faults += fault is not None
        if fault and faults <= 3:
            print(f'{options.log}: {size}: {fault}')
left = sum(name[0] == '_PyEval_EvalFrameDefault' for name in names.values())
print(f'{compared} stacks, {frames / max(compared, 1):.0f} frames each, {faults} differ, {cut} cut, {missing} without an event, or without frames'
      + (f', {left} loops left' if left else ''))
sys.exit(faults != 0 or missing > options.may_miss or compared == 0)
