# script/demo compiles a file of ours twice, two folders below the root. Its include folders have to fit.

source=$(sed -n 's/^source=//p' "$SOURCE/script/demo")
mapfile -t options < <(grep -o -- '-std=[^ ]* -O2 -I[^ ]* -I[^ ]*' "$SOURCE/script/demo" | sort | uniq -c)
[ "${#options[@]}" = 1 ] || { echo "script/demo compiles with other options each time" >&2; exit 1; }
read -r count options <<<"${options[0]}"
[ "$count" = 2 ] || { echo "script/demo compiles $count times" >&2; exit 1; }
cd "$SOURCE/tests/house" && g++ $options -fsyntax-only "../../$source"
