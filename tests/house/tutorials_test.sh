# The tutorials' commands print what the tutorials show; no page shows a place of anyone's machine.
command -v c++ >/dev/null || { echo "skipped: c++ is not here"; exit 77; }

failed=0
for tutorial in leak pinned temporary allocator; do
  mkdir -p $tutorial
  case $tutorial in
    allocator) cp "$SOURCE/cmtreplay/example_bump.c" "$SOURCE/doc/tutorials/temporary.cpp" allocator/ ;;
    *) cp "$SOURCE/doc/tutorials/$tutorial.cpp" $tutorial/ ;;
  esac
  (cd $tutorial && python3 "$SOURCE/tests/house/run_tutorial.py" "$SOURCE/doc/tutorials/$tutorial.md") || failed=1
done
exit $failed
