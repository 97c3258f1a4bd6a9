# script/scoreboard measures a small corpus, and writes the board into a page between its marks; the same command goes on.
mkdir corpus
for i in $(seq 200); do printf 'malloc(%d) = %d000<%d>\nfree(%d000<%d>)\n' "$((i * 9))" "$i" "$i" "$i" "$i"; done > corpus/a.trace
{ printf 'file\tevents\tquick\tsha256\n'
  printf 'a.trace\t400\tyes\t%s\n' "$(sha256sum < corpus/a.trace | cut -d' ' -f1)"; } > corpus/MANIFEST
export CMT_CORPUS=$PWD/corpus CMTREPLAY=$BUILD/cmtreplay/cmtreplay ALLOCATORS=libc
cp "$SOURCE/doc/scoreboard.md" page.md
cp "$BUILD/cmtreplay/libexample_bump.so" mine.so
board() { "$SOURCE/script/scoreboard" --quick --alloc=./mine.so --doc=page.md "$PWD/out"; }
board > table 2> words || { cat table words; exit 1; }
grep -q '^peak memory, to libc  *libc .*mine.so$' table
grep -q '^!\[Time against memory\](page.svg)$' page.md
grep -q '^Measured on .* CPUs, .*GiB of memory; Linux ' page.md
grep -q '^| mine.so | ' page.md
! grep -q 'Not measured yet' page.md
test "$(tail -c 7 page.svg)" = "</svg>"
test "$(sed '/^<!-- board -->$/,/^<!-- end of the board -->$/d' page.md | cksum)" = \
  "$(sed '/^<!-- board -->$/,/^<!-- end of the board -->$/d' "$SOURCE/doc/scoreboard.md" | cksum)"
cp page.md once.md
cells=$(cat out/cells/*.json | cksum)
board > table
cmp page.md once.md
test "$(cat out/cells/*.json | cksum)" = "$cells"
status=0
echo 'no marks' > bare.md
"$SOURCE/script/scoreboard" --doc="$(realpath --relative-to=. bare.md)" > out.txt 2> words || status=$?
test $status = 2
grep -q "bare.md: has no lines '<!-- board -->'" words
