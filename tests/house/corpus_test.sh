# The traces of corpus/ are those of its MANIFEST, and as many as it promises.

python3 "$SOURCE/script/corpus" check

# script/corpus check names every fault.
cp -r "$SOURCE/corpus" "$SOURCE/script" .
printf x >>corpus/perl.cmt
sed -i '/^xz.cmt/d' corpus/MANIFEST
status=0
python3 script/corpus check >out 2>messages || status=$?
[ $status = 1 ] && grep -q '^corpus: xz.cmt: in corpus/, but not in its MANIFEST' messages && grep -q '^perl.cmt: sha256 is' messages ||
  { cat messages >&2; exit 1; }
status=0
python3 script/corpus record nothing >out 2>messages || status=$?
[ $status = 2 ] && grep -q 'NAME is one of' messages
