# The package of Python: its tests, and an installation without network.
command -v python3 >/dev/null || exit 77
export PYTHONDONTWRITEBYTECODE=1
python3 -m unittest discover -q -s "$SOURCE/python/tests"
cp -rL "$SOURCE/python" package
if python3 -c 'import pip, setuptools, wheel' 2>/dev/null; then
  python3 -m pip -q install --no-index --no-build-isolation --no-deps --target installed ./package 2>log || { cat log; exit 1; }
  cd installed
  python3 -c 'import cmt_trace, sys; print(len(list(cmt_trace.Trace(sys.argv[1]))))' "$SOURCE/format-spec/vectors/readme_6655.cmt" | grep -qx 3
fi
