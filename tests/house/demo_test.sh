# script/demo compiles a file of ours twice: in the root, and two folders below it. Its include folders have to fit.

source=$(sed -n 's/^source=//p' "$SOURCE/script/demo")
mapfile -t options < <(grep -o -- '-std=[^ ]* -O2 -I[^ ]* -I[^ ]*' "$SOURCE/script/demo")
[ "${#options[@]}" = 2 ] || { echo "script/demo compiles ${#options[@]} times" >&2; exit 1; }
cd "$SOURCE" && g++ ${options[0]} -fsyntax-only "$source"
cd "$SOURCE/tests/house" && g++ ${options[1]} -fsyntax-only "../../$source"
