// board_page_test.mjs NAME: opens NAME.html, a scoreboard with its JSON. The page draws the JSON's numbers, opens the memory
// along a trace by mouse and by keyboard, loads nothing, and takes no name as markup.
import path from "node:path";
import {check, checkPolicy, finish, openPage} from "../browser.mjs";

const [name] = process.argv.slice(2);
const {page, requests} = await openPage(name, {width: 1000, height: 900});
await page.goto("file://" + path.resolve(`${name}.html`));
const parse = (id) => page.$eval(id, (element) => JSON.parse(element.textContent));
const board = await parse("#numbers"), picture = await parse("#picture");

const ranked = board.allocators.filter((allocator) => allocator.ranked);
for (const [index, figure] of [[0, "peak"], [1, "mean"]]) {
  const points = picture.panels[index].series.filter((one) => one.x.length > 0);
  check(points.length === ranked.length, `${name}: ${points.length} points`);
  points.forEach((point, i) => {
    const {time, [figure]: memory} = ranked[i];
    check(point.x[0] === time.ratio && point.y[0] === memory.ratio, `${name}: a point at another place`);
    check(`${point.within[0]}` === `${[time.low, time.high, memory.low, memory.high]}`, `${name}: another interval`);
  });
}
const measured = board.summaries.filter((cell) => cell.state === "").length;
for (const index of [2, 3]) {
  const cells = picture.panels[index].heat.cells.reduce((sum, run) => sum + run.length - 2, 0);
  check(cells === measured, `${name}: ${cells} cells are drawn of ${measured}`);
}
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
