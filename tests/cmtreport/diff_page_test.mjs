// diff_page_test.mjs NAME: opens NAME.html, the page of the difference NAME.json, in a browser: it draws, shows the JSON's
// own sums by each measure, obeys the mouse, loads nothing, and runs and draws no name as markup.
import fs from "node:fs";
import path from "node:path";
import {check, checkPolicy, finish, openPage} from "../browser.mjs";

const [, , name] = process.argv;
const settled = (page) => page.evaluate(() => new Promise((done) => {
  let frames = 5;
  const next = () => (frames-- > 0 ? requestAnimationFrame(next) : setTimeout(done, 20));
  next();
}));

const {page, requests} = await openPage(name, {width: 1400, height: 900});
const json = JSON.parse(fs.readFileSync(`${name}.json`, "utf8"));
await page.goto("file://" + path.resolve(`${name}.html`));
await page.waitForSelector("#page[data-ready]");
await settled(page);
const set = async (changes) => {
  await page.evaluate((values) => cmt.shown.state.set(values), changes);
  await settled(page);
};

/// The own figures by function, by the JSON alone.
const byFunction = (measure) => {
  const {node, before, after} = json.figures[measure];
  const sums = new Map();
  node.forEach((at, i) => {
    const function_ = json.frames.function[json.nodes.frame[at]];
    const sum = sums.get(function_) ?? sums.set(function_, {before: 0, after: 0}).get(function_);
    sum.before += before[i];
    sum.after += after[i];
  });
  return sums;
};

// It opens on the figure that has changed most, as a part of its whole.
{
  const changedPart = (measure, whole) => [...byFunction(measure).values()].reduce((sum, {before, after}) => sum + Math.abs(after - before), 0) / Math.max(json.total.before[whole], json.total.after[whole]);
  const parts = Object.keys(json.figures).filter((key) => json.figures[key].node.length > 0).map((key) => [key, changedPart(key, {allocated_bytes: key, peak_bytes: key, leaked_bytes: "peak_bytes"}[key] ?? "allocated_blocks")]);
  const most = Math.max(...parts.map(([, part]) => part)), opened = await page.evaluate(() => cmt.shown.state.values.measure);
  check(parts.find(([key]) => key === opened)[1] > most - 1e-9, `opens on ${opened} of ${parts}`);
  check((await page.$eval("#code .hint", (element) => element.textContent)).includes(`${(100 * most).toFixed(1)} %`), "does not say why it opens on it");
}

for (const [measure, unit] of [["allocated_bytes", "bytes"], ["allocated_blocks", "count"], ["peak_bytes", "bytes"], ["temporary_blocks", "count"]]) {
  await page.select("#measure", measure);
  await settled(page);
  const sums = byFunction(measure);
  const {sum, table, texts} = await page.evaluate((unit) => ({
    sum: cmt.shown.code.view.sum,
    table: [...document.querySelectorAll("#code .rows tbody tr")].map((row) => ({name: row.querySelector("button").title.split("\n")[0], cells: [...row.children].slice(1).map((cell) => cell.textContent)})),
    texts: Object.fromEntries([0, 10, 100, 135, 1000, 10000, 20000, 35000, 40000, 100000, 135000].flatMap((number) => [[number, cmt.numbers.label(unit, number)], [-number, cmt.numbers.label(unit, -number)]])),
  }), unit);
  const changes = [...sums].filter(([, {before, after}]) => before !== after).sort(([, a], [, b]) => Math.abs(b.after - b.before) - Math.abs(a.after - a.before));
  const all = changes.reduce((total, [, {before, after}]) => total + Math.abs(after - before), 0);
  const change = json.total.after[measure] - json.total.before[measure];
  check(sum === change, `${measure}: the page's sum is ${sum}, not ${change}`);
  check(table.length >= changes.length, `${measure}: ${table.length} rows of ${changes.length}`);
  changes.forEach(([function_, {before, after}], i) => {
    const {name: shown, cells} = table[i];
    check(shown === function_, `${measure}: row ${i} is ${shown}, not ${function_}`);
    const share = ((100 * Math.abs(after - before)) / all).toFixed(1) + " %";
    check(cells[3] === share, `${measure}: ${function_} has a share of ${cells[3]}, not ${share}`);
    for (const [cell, number] of [[0, before], [1, after]]) {
      const text = number === 0 ? "–" : texts[number];
      if (text) check(cells[cell] === text, `${measure}: ${function_} has ${cells[cell]}, not ${text}`);
    }
  });
}

// Frames that grew are red, those that shrank blue, and the rest grey; as wide as the size, load is there too.
await page.select("#measure", "allocated_bytes");
await settled(page);
const colours = await page.evaluate(() => {
  const {code: {flame}} = cmt.shown;
  const found = {};
  const visit = ({name, color, children}) => { found[name] = color; children.forEach(visit); };
  visit(flame.laid.top);
  return found;
});
const hue = (text) => Number(text?.match(/hsl\((\d+)/)?.[1] ?? -1);
check(hue(colours.push) < 30 && hue(colours.push) >= 0, `push is ${colours.push}, not red`);
check(Math.abs(hue(colours.old) - 212) < 30, `old is ${colours.old}, not blue`);
check(!("load" in colours), "load, which has not changed, has a width");
await page.click('#code [data-value="size"]');
await settled(page);
const wide = await page.evaluate(() => {
  const {duration, color} = cmt.shown.code.flame.laid.top.children[0].children.find(({name}) => name === "load") ?? {};
  return {duration, color};
});
check(wide.duration === 40000, `as wide as the size, load has ${wide.duration}`);
check(hue(wide.color) < 0 || /,0%|,9%/.test(wide.color), `load, which has not changed, is ${wide.color}`);
check((await page.evaluate(() => location.hash)).includes("width=size"), "the fragment lacks the width");
await set({width: "change"});

// A finding leads to its function and measure; each table has rows; a click focuses a frame.
for (let i = 0; i < json.findings.length; ++i) {
  await page.evaluate((at) => document.querySelectorAll(".findings a")[at].click(), i);
  await settled(page);
  const now = await page.evaluate(() => ({measure: cmt.shown.state.values.measure, chosen: cmt.shown.model.functions[cmt.shown.state.values.chosen]?.name}));
  check(now.measure === json.findings[i].measure && now.chosen === json.findings[i].function, `finding ${i} shows ${now.chosen} by ${now.measure}`);
}
for (const table of ["top-down", "bottom-up", "callers", "functions"]) {
  await set({table, focus: [], tree: "top-down"});
  check((await page.$$("#code .rows tr")).length > 2, `the table ${table} is empty`);
}
const box = await (await page.$("#code canvas")).boundingBox();
await page.mouse.move(box.x + 30, box.y + 28);
await settled(page);
check(await page.$eval(".tip", (tip) => tip.textContent.includes("before") && tip.textContent.includes("of all changes")), "no tooltip with both figures");
await page.mouse.click(box.x + 30, box.y + 28);
await settled(page);
check(/focus=\d+/.test(await page.evaluate(() => location.hash)), "a click on a frame does not focus it");

// The classes of sizes and lifetimes that differ, with the JSON's own numbers.
const label = (unit, number) => page.evaluate((unit, number) => cmt.numbers.label(unit, number), unit, number);
const shownRows = (id) => page.$$eval(`#${id} tbody tr`, (list) => list.map((row) => [...row.children].slice(0, 4).map((cell) => cell.textContent)));
const expected = async (classes, unit) => {
  const rows = [];
  for (const [words, before, after] of classes) {
    if (before === after) continue;
    const sign = after > before ? "+" : "";
    rows.push([words, before === 0 ? "–" : await label(unit, before), after === 0 ? "–" : await label(unit, after), sign + (await label(unit, after - before))]);
  }
  return JSON.stringify(rows);
};
const least = ([name]) => Number(name.replaceAll(",", "").match(/\d+/)[0]);
const sizes = json.by_size.contributors.map(({name, self: {before, after}}) => [name.replace(" - ", " to "), before.allocated_bytes, after.allocated_bytes]).sort((a, b) => least(a) - least(b));
const sizeRows = await shownRows("sizes");
check(sizeRows.length >= 4 && JSON.stringify(sizeRows) === (await expected(sizes, "bytes")), `the sizes are ${JSON.stringify(sizeRows)}, not ${await expected(sizes, "bytes")}`);
const ages = json.by_size.lifetimes.map(([low, before, after]) => {
  const width = low < 16 ? 1 : 2 ** (Math.floor(Math.log2(low)) - 3);
  return [width === 1 ? String(low) : `${low.toLocaleString("en")} to ${(low + width - 1).toLocaleString("en")}`, before, after];
});
const ageRows = await shownRows("lifetimes");
check(ageRows.length > 0 && JSON.stringify(ageRows) === (await expected(ages, "count")), `the lifetimes are ${JSON.stringify(ageRows)}, not ${await expected(ages, "count")}`);

await page.emulateMediaFeatures([{name: "prefers-color-scheme", value: "dark"}]);
await page.setViewport({width: 1024, height: 768});
await settled(page);
check(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), "wider than a window of 1,024 pixels");
check((await page.$$(".lacking, main img, main script, main b b")).length === 0, "a name became an element, or a part cannot be shown");
check((await page.evaluate(() => document.body.innerText)).includes("<img src=x onerror"), "the hostile name is not shown as text");
check(requests.every((url) => url.startsWith("file:///")), `it loads ${requests}`);
await checkPolicy(page, name);
await finish();
