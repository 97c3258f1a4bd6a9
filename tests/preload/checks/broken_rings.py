"""broken_rings.py COLLECTOR RINGS [stacks]: recovers copies of RINGS in which bytes were changed, by fixed seeds. Each is read, or
refused with one line, and what is refused leaves no file. With "stacks", half of the changes are to the frames and modules of
call stacks, which stand at the file's end."""

import os
import random
import subprocess
import sys

COPIES, BYTES, CONTROL = 30 if sys.argv[3:] else 150, 3 << 20, 54000

SHARE = 2 << 20  # preload/stack_share.h; its rules begin behind 4 + (4 << 17) bytes
RULES = 4 + (4 << 17)

size = os.path.getsize(sys.argv[2])
share_at = size - SHARE
with open(sys.argv[2], 'rb') as file:
    whole = file.read(BYTES)
    file.seek(share_at)
    share_whole = file.read() if sys.argv[3:] else b''
statuses = {0: 0, 125: 0}
for seed in range(COPIES):
    dice = random.Random(seed)
    rings, share = bytearray(whole), bytearray(share_whole)
    for _ in range(dice.choice((1, 2, 8))):
        at = dice.choice((dice.randrange(200), dice.randrange(CONTROL), CONTROL + dice.randrange(400), dice.randrange(len(rings))))
        length = dice.choice((1, 4, 8, 5000))
        fill = bytes([dice.choice((0, 0xff, dice.randrange(256)))]) * length
        if share and dice.randrange(2):
            at = dice.choice((RULES + dice.randrange(4000), dice.randrange(RULES, SHARE)))
            share[at:at + length] = fill[:SHARE - at]
        else:
            rings[at:at + length] = fill
    with open('broken', 'wb') as file:
        file.write(rings)
        if share:
            file.seek(share_at)
            file.write(share)
    ended = subprocess.run([sys.argv[1], '--recover', 'broken', 'broken.trace'], capture_output=True, timeout=60, check=False)
    said = ended.stderr.decode(errors='replace')
    assert ended.returncode in statuses, f'seed {seed}: exit {ended.returncode}: {said}'
    assert said.count('\n') == (ended.returncode != 0), f'seed {seed}: {said}'
    statuses[ended.returncode] += 1
    if os.path.exists('broken.trace'):
        os.remove('broken.trace')
    else:
        assert ended.returncode == 125, f'seed {seed}: no trace'
assert min(statuses.values()) >= COPIES // 30, statuses
print(statuses)
