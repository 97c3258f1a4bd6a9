"""stack_chains_check.py TRACE KNOWN LEAST: whether the stacks of a text trace are those that stack_chains has written to KNOWN.
At least LEAST allocations have one."""
import re
import sys

TOO_MUCH = (2**64 - 1) // 4
FUNCTION_BYTES = 2000


def attributes(line):
    return dict(word.split('=', 1) for word in line.split(' ')[2:])


def read_trace(path):
    """(address of each frame, (parent, frame) of each node, [(size, node)])"""
    frames, nodes, events = [None], [None], []
    with open(path, encoding='utf-8') as file:
        for line in file:
            if line.startswith('#frame '):
                frames.append(int(attributes(line)['address'], 16))
            elif line.startswith('#node '):
                node = attributes(line)
                nodes.append((int(node['parent']), int(node['frame'])))
            elif ' = ' in line and (found := re.search(r'stack=([0-9]+)', line)):
                inside = line.split(')', 1)[0]
                # Not the decimal digits within an address.
                sizes = [int(number) for number in re.findall(r'(?:\(|, )([0-9]{5,})(?=,|$)', inside)]
                events += [(size, int(found[1])) for size in sizes]
    return frames, nodes, events


def addresses(node, frames, nodes, most):
    """The innermost frames of a stack."""
    found = []
    while node and len(found) < most:
        node, frame = nodes[node]
        found.append(frames[frame])
    return found


frames, nodes, events = read_trace(sys.argv[1])
with open(sys.argv[2], encoding='ascii') as file:
    leaves = [int(word, 16) for word in file.readline().split()]
    known = {}
    for line in file:
        words = line.split()
        known[int(words[0])] = [int(word, 16) for word in words[1:]]
seen = 0
for size, node in events:
    leaf = leaves[size >= TOO_MUCH]
    name = size - TOO_MUCH + 100000 if size >= TOO_MUCH else size
    if name not in known:
        continue
    seen += 1
    stack = addresses(node, frames, nodes, len(known[name]) + 1)
    assert stack and stack[0] is not None and 0 <= stack[0] - leaf < FUNCTION_BYTES and stack[1:] == known[name], \
        f'{size}: {[hex(each or 0) for each in stack]}, not {leaf:x} {[hex(each) for each in known[name]]}'
assert seen >= int(sys.argv[3]), f'only {seen} allocations'
print(f'{seen} allocations')
