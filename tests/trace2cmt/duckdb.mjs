// duckdb.mjs types|facts|questions FILE: runs DuckDB on a Parquet file, for parquet_test.sh. Reads the queries from standard
// input, each ended by a semicolon.
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

const { DuckDBInstance } = createRequire(process.env.SOURCE + '/package.json')('@duckdb/node-api');
const [mode, file] = process.argv.slice(2);
const connection = await (await DuckDBInstance.create(':memory:')).connect();
const rows = async (query) => (await connection.runAndReadAll(query)).getRowsJson();
const print = (row) => console.log(row.map((value) => value ?? 'None').join(' '));

const columns = (await rows(`DESCRIBE FROM '${file}'`)).map(([name, type]) => ({ name, type }));
if (mode === 'types') {
  for (const { name, type } of columns) print([name, type]);
} else if (mode === 'facts') {
  const facts = columns.map(({ name, type }) => {
    const value = type === 'VARCHAR' ? `octet_length(encode(${name}))` : `${name}::HUGEINT`;
    return `[count(${name}), sum(${value}), min(${value}), max(${value})]::HUGEINT[]`;
  });
  const [row] = await rows(`SELECT ${facts.join(', ')} FROM '${file}'`);
  columns.forEach(({ name }, i) => print([name, ...row[i]]));
} else {
  for (const question of readFileSync(0, 'utf8').split(';').filter((text) => text.trim())) {
    for (const row of await rows(question)) {
      print(row.flatMap((value) => (Array.isArray(value) ? value.map((x) => Number(x).toFixed(3)) : [value])));
    }
  }
}
