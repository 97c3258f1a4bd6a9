"""broken_rings.py COLLECTOR RINGS: recovers copies of RINGS in which bytes were changed, by fixed seeds. Each is read, or
refused with one line, and what is refused leaves no file."""

import os
import random
import subprocess
import sys

COPIES, BYTES, CONTROL = 150, 3 << 20, 54000

with open(sys.argv[2], 'rb') as file:
    whole = file.read(BYTES)
statuses = {0: 0, 1: 0}
for seed in range(COPIES):
    dice = random.Random(seed)
    rings = bytearray(whole)
    for _ in range(dice.choice((1, 2, 8))):
        at = dice.choice((dice.randrange(200), dice.randrange(CONTROL), CONTROL + dice.randrange(400), dice.randrange(len(rings))))
        length = dice.choice((1, 4, 8, 5000))
        rings[at:at + length] = bytes([dice.choice((0, 0xff, dice.randrange(256)))]) * length
    with open('broken', 'wb') as file:
        file.write(rings)
    ended = subprocess.run([sys.argv[1], '--recover', 'broken', 'broken.trace'], capture_output=True, timeout=60, check=False)
    said = ended.stderr.decode(errors='replace')
    assert ended.returncode in statuses, f'seed {seed}: exit {ended.returncode}: {said}'
    assert said.count('\n') == ended.returncode, f'seed {seed}: {said}'
    statuses[ended.returncode] += 1
    if os.path.exists('broken.trace'):
        os.remove('broken.trace')
    else:
        assert ended.returncode == 1, f'seed {seed}: no trace'
assert min(statuses.values()) > 5, statuses
print(statuses)
