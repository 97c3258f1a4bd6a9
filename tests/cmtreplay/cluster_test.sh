# A small matrix runs over a real Slurm on the loopback interface. No cell is lost, and none is there twice.
status=0
"$SOURCE/bench/cluster" "$BUILD" 20 calm > lines 2>&1 || status=$?
cat lines
[ $status = 77 ] || grep -q '^20 cells in [0-9]* s: 20 there, 0 lost, 0 doubled$' lines
exit $status
