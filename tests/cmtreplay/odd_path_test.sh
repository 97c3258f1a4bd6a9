# LD_PRELOAD splits at blanks and colons and expands $. Libraries with such paths work, and no link is left afterwards.
mkdir -p 'a b:c $ORIGIN' temporary
cp "$BUILD/cmtreplay/libexample_bump.so" 'a b:c $ORIGIN/my bump.so'
echo 'malloc(8) = 1000<1>' > t.trace
TMPDIR=$PWD/temporary cmtreplay '--alloc=./a b:c $ORIGIN/my bump.so' --runs=1 --json t.trace > odd.json
/usr/bin/python3 -c '
import json, os
result = json.load(open("odd.json"))["allocators"][0]
assert result["name"] == "./a b:c $ORIGIN/my bump.so" and result["death"] is None
assert result["library"] == os.getcwd() + "/./a b:c $ORIGIN/my bump.so", result["library"]'
cmtreplay '--alloc=./a b:c $ORIGIN/my bump.so' --runs=1 --csv t.trace | grep -q '/\./a b:c $ORIGIN/my bump\.so'
test -z "$(ls -A temporary)"

# A name without a slash is a file of this folder before it is a soname.
cp "$BUILD/cmtreplay/libexample_bump.so" my.so
cmtreplay --alloc=my.so --runs=1 t.trace | grep -q '^my.so '
