# --to=parquet: DuckDB reads the types and values of the CSV of the same trace, and the manual page's questions get the right
# answers.

command -v node >/dev/null || { echo "skipped: no node"; exit 77; }
[ -d "$SOURCE/node_modules/@duckdb/node-api" ] || { echo "skipped: script/bootstrap --test has not installed @duckdb/node-api"; exit 77; }
export SOURCE
failed=0
complain() { echo "wrong: $*" >&2; failed=1; }
tests=$SOURCE/tests/trace2cmt
duckdb() { LD_PRELOAD='' node "$tests/duckdb.mjs" "$@"; }
. "$tests/every_kind.sh"
write_many 130000

trace2cmt --to=parquet every_kind.trace >every_kind.parquet
duckdb types every_kind.parquet >types
diff -u - types <<'END' || complain "types"
event BIGINT
kind VARCHAR
thread UINTEGER
time_ns BIGINT
size UBIGINT
count UBIGINT
alignment UBIGINT
tag UBIGINT
address UBIGINT
usable_size UBIGINT
old_tag UBIGINT
old_address UBIGINT
old_size UBIGINT
lifetime_events BIGINT
lifetime_ns BIGINT
label VARCHAR
pool_block UBIGINT
END

# Each column has the same values as in the CSV, from a file and a pipe, with one row group and with several.
printf '' >nothing.trace
for trace in every_kind many; do
  trace2cmt --to=csv -o $trace.csv $trace.trace
  trace2cmt --to=parquet -o $trace.parquet $trace.trace
  trace2cmt <$trace.trace | trace2cmt --to=parquet --level=1 | cat >piped.parquet
  python3 "$tests/table_facts.py" $trace.csv >expected
  duckdb facts $trace.parquet >facts
  diff -u expected facts || complain "the values of $trace.parquet"
  duckdb facts piped.parquet | diff -u expected - || complain "the values of $trace, through pipes"
done
trace2cmt --to=parquet nothing.trace >nothing.parquet
duckdb facts nothing.parquet >facts
grep -qx 'event 0 None None None' facts || complain "a table without rows"

# Row groups are bounded, and rows are in order. The least and the greatest value of a column let readers skip groups.
duckdb questions many.parquet <<'END' >groups
SELECT row_group_id, row_group_num_rows, stats_min_value, stats_max_value, stats_null_count, compression
FROM parquet_metadata('many.parquet') WHERE path_in_schema = 'event' ORDER BY row_group_id;
SELECT count(*) FROM parquet_metadata('many.parquet') WHERE path_in_schema = 'size' AND stats_max_value::UBIGINT > 65536;
SELECT count(*) FROM 'many.parquet' WHERE event <> file_row_number + 1;
SELECT decode(key), decode(value) FROM parquet_kv_metadata('every_kind.parquet');
END
diff -u - groups <<'END' || complain "row groups and metadata"
0 122880 1 122880 0 ZSTD
1 7120 122881 130000 0 ZSTD
0
0
cmt.program app, "deep"
cmt.repairs 0
cmt.end complete
END

# The queries of the manual page, as printed there, on the folder that they name.
mkdir traces
mv many.parquet traces
sed -n '/^In DuckDB/,/^The same in Spark/{/^\.Bd/,/^\.Ed/{/^\./!p}}' "$SOURCE/man/trace2cmt.1" >questions.sql
[ "$(grep -c 'traces/\*\.parquet' questions.sql)" = 3 ] || complain "the manual page's questions: $(cat questions.sql)"
duckdb questions traces/many.parquet <questions.sql >answers
python3 "$tests/table_facts.py" many.csv answers >expected
diff -u expected answers || complain "the answers to the manual page's questions"

# For two files with the same tags, the query finds the leaks of both.
cp traces/many.parquet traces/twin.parquet
duckdb questions traces/many.parquet <questions.sql | awk '{ print $2 }' >twice
awk '{ print $2 * 2 }' answers | diff - twice || complain "the answers over two files"
exit $failed
