# The documents, the golden vectors, the library and the second decoder agree.
command -v python3 >/dev/null && command -v zstd >/dev/null || exit 77
PYTHONDONTWRITEBYTECODE=1 python3 "$SOURCE/tests/format-spec/vectors.py"
