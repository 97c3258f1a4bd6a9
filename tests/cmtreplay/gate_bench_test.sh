# bench/gate stores each gate when it is done, the same command continues, and the table is there at any time. A script
# replaces cmtreplay, since a real gate takes seconds.
command -v cc > /dev/null || { echo "skipped: cc is not installed"; exit 77; }
mkdir -p build/cmtreplay
cat > build/cmtreplay/cmtreplay << 'FAKE'
#!/bin/bash
turns=$(printf '%s\n' "$@" | sed -n 's/^--alloc=.*SLOW_TURNS=//p')
case " $* " in
  *" --json "*) echo '{"gate": [{"figure": "time", "trace": "a", "change": {"ratio": '"$(awk "BEGIN { print 1 + 0.0001 * $turns }")"'}}]}' ;;
  *) echo called >> calls; [ "$turns" = 310 ] || exit 0
     [ "$(wc -l < calls)" != 3 ] || { echo 'not judged: a'; exit 1; }
     echo 'worse: a'; exit 3 ;;
esac
FAKE
chmod +x build/cmtreplay/cmtreplay
echo 'malloc(8) = 1000<1>' > a.trace
gate() { "$SOURCE/bench/gate" --build=build --log=log "$@"; }
gate --planted=2 --same=1 a.trace > table
test "$(wc -l < log)" = 4  # one line has the setting
grep -q '^setting [0-9a-f]*: .*, traces: 1, --budget=2, 310 turns: 3.1 % slower$' table
grep -q '^| planted | 2 of 2 | [12] | ' table
grep -q '^| same | 1 of 1 | 0 | 0.0 % (0.0 to 97.5) | 0 | [0-9.]* |$' table
# It continues, also after a line that was cut off, and does no gate again.
printf '{"setting": "cut' >> log
gate --planted=3 --same=2 a.trace > table
test "$(wc -l < calls)" = 5
grep -q '^| planted | 3 of 3 | 2 | 100.0 % (15.8 to 100.0) | 1 | ' table
gate --table --planted=3 --same=2 | cmp - table
test "$(wc -l < calls)" = 5
gate --planted=9 --same=9 --minutes=0 a.trace > table
grep -q '^| planted | 3 of 9 ' table
# Other settings are counted apart, and so are lines of earlier versions.
echo 'planted 3 12.5' >> log
gate --planted=1 --same=0 --budget=1 a.trace > table
test "$(grep -c '^setting' table)" = 3
grep -q '^| planted | 1 of 1 | 1 | 100.0 % (2.5 to 100.0) | 0 | 12.5 |$' table
