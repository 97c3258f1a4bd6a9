// page_test.mjs NAME: opens NAME.html, the replay of one trace. Each panel's axes have the picture's range and few ticks with
// numbers, and the curves are at the places that the axes give.
import path from "node:path";
import {check, checkPolicy, finish, openPage} from "../browser.mjs";

const [name] = process.argv.slice(2);
const {page, requests} = await openPage(name, {width: 1000, height: 900});
await page.goto("file://" + path.resolve(`${name}.html`));
const {panels} = await page.$eval("#picture", (element) => JSON.parse(element.textContent));
const drawn = await page.evaluate(() => window.plots.map(({scales, axes, data}) => ({
  x: [scales.x.min, scales.x.max], y: scales.y.max, data, ticks: axes.map((axis) => axis._values.filter((label) => label !== "")),
})));
/// Where a number of an axis is drawn: axis.cpp has the rule.
const placeOf = (axis, number) => (axis.log && number >= 1 ? 1 + Math.log2(number) : number);
const near = (one, other) => Math.abs(one - other) <= 1e-6 * Math.max(1, Math.abs(other));

check(drawn.length === panels.length, `${name}: ${drawn.length} plots`);
check(panels.some(({y}) => y.log && y.range[1] > 1e6), `${name}: no call took a millisecond`);
drawn.forEach(({x, y, data, ticks}, i) => {
  const {title, x: across, y: up, series} = panels[i];
  across.range.forEach((end, at) => check(near(x[at], placeOf(across, end)), `${title}: the axis ends at ${x[at]}, not at ${placeOf(across, end)}`));
  const ends = (numbers) => [Math.min(...numbers), Math.max(...numbers)];
  const [left, right] = ends(series.flatMap((one) => one.x)), [, top] = ends(series.flatMap((one) => one.y));
  check(near(data[0][0], placeOf(across, left)) && near(data[0].at(-1), placeOf(across, right)), `${title}: the curve is elsewhere`);
  const [, highest] = ends(data.slice(1).flat().filter((at) => at != null));
  check(near(highest, placeOf(up, top)) && highest <= y, `${title}: the curve is at ${highest} of ${y}, not at ${placeOf(up, top)}`);
  for (const words of ticks) {
    check(words.length >= 2 && words.length <= 30, `${title}: ${words.length} ticks`);
    check(words.every((word) => /^\d[\d.,]*( \S+)?$/.test(word)), `${title}: ticks ${words}`);
  }
});
const colours = await page.$$eval("canvas", (all) => all.map((canvas) => {
  const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  return new Set(new Uint32Array(data.buffer)).size;
}));
check(colours.length === panels.length && colours.every((count) => count > 2), `${name}: an empty panel: ${colours}`);
await checkPolicy(page, name);
check(requests.length === 1, `${name}: it loads ${requests.slice(1)}`);
await finish();
