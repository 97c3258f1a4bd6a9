# A free that stated the right size is replayed as a sized free, if the allocator has one. With a wrong size it is a plain
# free.
sized=$BUILD/tests/cmtreplay/libsized.so
cat > t.trace << 'END'
malloc(24) = 1000<1>
free_sized(1000<1>, 24)
operator new(24) = 1000<2>
operator delete(1000<2>, 24)
aligned_alloc(64, 256) = 2000<3>
free_aligned_sized(2000<3>, 64, 256)
END
for how in --prepared --stream; do
  cmtreplay $how --runs=1 --alloc=$sized --alloc=libc --json t.trace > report.json 2> words
  grep -q '"sized_frees": 3' report.json
  sed 's/$/ thread=0/; 2s/=0/=1/' t.trace > threads.trace
  cmtreplay $how --runs=1 --alloc=$sized threads.trace > table 2> words
  status=0
  cmtreplay $how --runs=1 --alloc=$sized <(sed '4s/24/8/' t.trace) > table 2> words || status=$?
  test $status = 1
  grep -q ': died at event 4 of 6: ' words
done
