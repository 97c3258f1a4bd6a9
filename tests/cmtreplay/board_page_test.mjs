// board_page_test.mjs NAME: opens NAME.html, a scoreboard with its JSON. The page draws the JSON's numbers, opens the memory
// along a trace by mouse and by keyboard, loads nothing, and takes no name as markup.
import path from "node:path";
import {check, checkPolicy, finish, openPage} from "../browser.mjs";

const [name] = process.argv.slice(2);
const {page, requests} = await openPage(name, {width: 1000, height: 900});
await page.evaluateOnNewDocument(() => {
  window.texts = [];
  const {fillText} = CanvasRenderingContext2D.prototype;
  CanvasRenderingContext2D.prototype.fillText = function (text, ...rest) {
    window.texts.push(text);
    return fillText.call(this, text, ...rest);
  };
});
await page.goto("file://" + path.resolve(`${name}.html`));
const parse = (id) => page.$eval(id, (element) => JSON.parse(element.textContent));
const board = await parse("#numbers"), picture = await parse("#picture");

// The reference is in the picture, even if it is none of the allocators. Axes begin at 0.
const isAdded = board.allocators.every((allocator) => allocator.name !== board.reference);
const ranked = board.allocators.filter((allocator) => allocator.ranked);
check(board.reference === "libc" && isAdded, `${name}: libc is an allocator of this test`);
for (const [index, figure] of [[0, "peak"], [1, "mean"]]) {
  const {series, x, y} = picture.panels[index], points = series.filter((one) => one.x.length > 0);
  check(points.length === ranked.length + 1, `${name}: ${points.length} points`);
  check(x.range[0] === 0 && y.range[0] === 0, `${name}: the axes begin at ${x.range[0]} and ${y.range[0]}`);
  ranked.forEach(({time, [figure]: memory}, i) => {
    check(points[i].x[0] === time.ratio && points[i].y[0] === memory.ratio, `${name}: a point at another place`);
    check(`${points[i].within[0]}` === `${[time.low, time.high, memory.low, memory.high]}`, `${name}: another interval`);
  });
  const {name: last, x: [time], y: [memory]} = points.at(-1);
  check(last === "libc" && time === 1 && memory === 1, `${name}: ${last} is at ${time}, ${memory}`);
}
// The legend has each point's place before the pointer comes.
const legend = await page.$eval(".u-legend", (list) => [...list.querySelectorAll(".u-series")].map(({textContent}) => textContent));
const place = await page.evaluate((time, memory) => `${cmt.numbers.label("share", time)}, ${cmt.numbers.label("share", memory)}`, ranked[0].time.ratio, ranked[0].peak.ratio);
check(legend[1]?.endsWith(place) && legend[2]?.endsWith("100 %, 100 %"), `${name}: the legend is ${legend}, not ${place}`);
const measured = board.summaries.filter((cell) => cell.state === "");
for (const [index, figure] of [[2, "time"], [3, "peak"]]) {
  const cells = picture.panels[index].heat.cells.reduce((sum, run) => sum + run.length - 2, 0);
  check(cells === measured.length + board.traces.length, `${name}: ${cells} cells are drawn of ${measured.length}, and libc`);
  // Each row's best is called so, and the others have their distance to it.
  const distances = measured.map(({[figure]: {ratio}}) => Math.max(ratio, 1) / Math.min(ratio, 1) - 1);
  for (const distance of distances) {
    const text = distance < 0.0005 ? "best" : await page.evaluate((share) => cmt.numbers.label("share", share), Math.round(distance * 1e4) / 1e4);
    check(await page.evaluate((wanted) => window.texts.includes("best") && window.texts.includes(wanted), text), `${name}: no cell has the number ${text}`);
  }
}
// The terminal's tables are tables: a row for each trace, a column for each allocator.
const tables = await page.$$eval("table:not(.u-legend)", (all) => all.map((table) => [...table.rows].map((row) => [...row.cells].map((cell) => cell.textContent))));
check(tables.length >= 10 && tables[0][0].join() === ["time, to libc", ...board.allocators.map((one) => one.name)].join(), `${name}: ${tables.length} tables, ${tables[0]?.[0]}`);
check(tables.every((rows) => rows.length >= 1 + board.traces.length && rows.every((row) => row.length === rows[0].length)), `${name}: a table lacks rows`);
check(tables[0].slice(1, 1 + board.traces.length).map(([first]) => first).join() === board.traces.map((trace) => trace.name).join(), `${name}: the rows are ${tables[0].map(([first]) => first)}`);
check(!(await page.$$eval("pre", (all) => all.map((one) => one.textContent).join())).includes("time, to libc"), `${name}: a table is text`);
const canvases = () => page.$$eval("canvas", (all) => all.map((canvas) => {
  const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  return new Set(new Uint32Array(data.buffer)).size;
}));
check((await canvases()).length === 4 && (await canvases()).every((count) => count > 2), `${name}: an empty panel`);

// A click on the first row of a map opens the first trace; the list opens the second.
const map = (await page.$$(".u-over"))[2];
await map.scrollIntoView();
const box = await map.boundingBox();
await page.mouse.click(box.x + box.width / 2, box.y + 8);
const shown = () => page.$eval("section h2", (title) => title.textContent).catch(() => "nothing");
check((await shown()) === picture.details[0].title, `${name}: a click shows ${await shown()}`);
await page.focus("select");
await page.keyboard.press("ArrowDown");
check((await shown()) === picture.details[1].title, `${name}: the list shows ${await shown()}`);
check((await canvases()).length === 5, `${name}: the memory along a trace is not drawn`);
check(await page.evaluate(() => window.broken === undefined), `${name}: a name ran as a script`);
await checkPolicy(page, name);
check(requests.length === 1, `${name}: it loads ${requests.slice(1)}`);
await finish();
