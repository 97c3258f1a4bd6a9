// page_test.mjs NAME...: opens NAME.html in a browser and compares it with NAME.json.
import fs from "node:fs";
import path from "node:path";
import {isDeepStrictEqual} from "node:util";
import {check, checkPolicy, finish, openPage} from "./browser.mjs";

/// How many different colours a canvas has: an empty one has one.
const ink = (page) => page.evaluate(() => [...document.querySelectorAll("canvas")].map((canvas) => {
  const {data} = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  return new Set(new Uint32Array(data.buffer)).size;
}));
const ranges = (page) => page.evaluate(() => window.plots.map((plot) => [plot.scales.x.min, plot.scales.x.max]));

const dragOver = async (page, index) => {
  const over = (await page.$$(".u-over"))[index];
  await over.scrollIntoView();
  const box = await over.boundingBox();
  const at = (x, y) => [box.x + box.width * x, box.y + box.height * y];
  await page.mouse.move(...at(0.3, 0.3));
  await page.mouse.down();
  await page.mouse.move(...at(0.5, 0.6), {steps: 5});
  await page.mouse.up();
};

/// Dragging narrows the x axis, a double click widens it again.
const checkZoom = async (page, name) => {
  const before = await ranges(page);
  for (let i = 0; i < before.length; ++i) {
    await dragOver(page, i);
    const after = await ranges(page);
    const share = (after[i][1] - after[i][0]) / (before[i][1] - before[i][0]);
    check(share > 0.15 && share < 0.25, `${name}: panel ${i} shows ${share} of its x axis after dragging over a fifth`);
    await (await page.$$(".u-over"))[i].click({count: 2});
    await page.waitForFunction((index, width) => {
      const {min, max} = window.plots[index].scales.x;
      return Math.abs(max - min - width) < width / 100;
    }, {}, i, before[i][1] - before[i][0]).catch(() => check(false, `${name}: panel ${i} does not zoom out`));
  }
};

/// Plots fill the window, those below each other begin at one place, and "+" and Escape zoom by keyboard.
const checkLayout = async (page, name) => {
  const [width, ...lefts] = await page.evaluate(() => [window.plots[0].width / innerWidth, ...window.plots.map((plot) => plot.bbox.left)]);
  check(width > 0.93 && width <= 1, `${name}: a plot takes ${width} of the window's width`);
  check(lefts.every((left) => left === lefts[0]), `${name}: plots begin at ${lefts}`);
  const [before] = await ranges(page);
  await page.focus(".plot");
  for (const key of ["ArrowRight", "+"]) await page.keyboard.press(key);
  const widths = () => page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => {
    const {min, max} = window.plots[0].scales.x;
    done(max - min);
  }))));
  const whole = before[1] - before[0];
  check((await widths()) < whole * 0.6, `${name}: "+" does not zoom`);
  await page.keyboard.press("Escape");
  check(Math.abs((await widths()) - whole) < whole / 1000, `${name}: Escape does not show all: ${await widths()} of ${whole}`);
};

/// A series of a panel by how its name begins.
const seriesOf = (panel, begin) => panel.series.find((one) => one.name.startsWith(begin)) ?? {x: [], y: []};
const same = (name, what, drawn, expected) => check(isDeepStrictEqual(drawn, expected), `${name}: other ${what}`);

/// Runs of cmtwatch: what was resident, by process or what of it was live.
const checkWatch = (name, panel, {samples, metric, traced}) => {
  const read = samples.filter((sample) => sample.processes > 0);
  const byProcess = samples.some((sample) => sample.by_process);
  const total = seriesOf(panel, byProcess && !traced ? "in all" : metric);
  same(name, "times", total.x, read.map((sample) => sample.begin_ns));
  same(name, "bytes", total.y, read.map((sample) => sample.bytes));
  check(panel.series.every(({form}) => form.startsWith("step")), `${name}: slopes between samples`);
  // Processes of one program have one colour, others another.
  const looks = panel.series.filter(({form, look}) => form === "step_band" && look != null).map((one) => [one.name.replace(/ \d+$/, ""), one.look]);
  check(!byProcess || new Set(looks.map(String)).size === new Set(looks.map(([program]) => program)).size, `${name}: the programs' colours are ${looks}`);
  check(!byProcess || looks.length > 0, `${name}: no processes`);
  const live = seriesOf(panel, "live");
  if (traced) same(name, "live bytes", live.y, read.filter((sample) => sample.live_bytes != null).map((sample) => sample.live_bytes));
  if (!traced) check(live.y.length === 0, `${name}: live bytes of nobody`);
  if (byProcess) return;
  const beyond = seriesOf(panel, "beyond");
  same(name, "bytes beyond", beyond.y, live.y.length === 0 ? []
    : read.filter((sample) => sample.live_bytes != null).map((sample) => Math.max(0, sample.beyond_live_bytes)));
};

/// Recordings of cmtwatch: what there was in all, by kind.
const checkKinds = (name, panel, {time_ns, metric, bytes, kinds}) => {
  const line = seriesOf(panel, `in all (${metric})`);
  same(name, "times", line.x, time_ns.filter((_, i) => bytes[i] != null));
  same(name, "bytes", line.y, bytes.filter((sum) => sum != null));
  for (const kind of kinds) {
    const there = kind.bytes.some((bytes) => bytes > 0);
    same(name, kind.name, seriesOf(panel, kind.name).y, there ? kind.bytes : []);
  }
};

const checkRuns = (name, panel, {runs}) => runs.forEach((run, i) => {
  same(name, `times of run ${i}`, panel.series[i].x, run.time_ns);
  same(name, `bytes of run ${i}`, panel.series[i].y, run.bytes);
});

/// What is drawn are the JSON's numbers.
const checkNumbers = (name, drawn, json) => {
  if (json.schema === "cmt.watch/1") return checkWatch(name, drawn.panels[0], json);
  if (json.schema === "cmt.kinds/1") return checkKinds(name, drawn.panels[0], json);
  if (json.schema === "cmt.compare/1") return checkRuns(name, drawn.panels[0], json);
  if (json.schema === "cmt.overhead/1") {
    const [live, , free] = drawn.panels[0].series;
    check(isDeepStrictEqual(live.y, json.curve.map((moment) => moment.live_bytes)), `${name}: other live bytes`);
    check(isDeepStrictEqual(free.y, json.curve.map((moment) => moment.held_pages_max * json.page_size_bytes)), `${name}: other pages`);
    check(isDeepStrictEqual(live.x, json.curve.map((moment) => moment.time_ns ?? moment.event)), `${name}: other times`);
    const bins = json.address_map.moments.reduce((sum, moment) => sum + moment.bins.length, 0);
    const cells = (drawn.panels[1].heat?.cells ?? []).reduce((sum, run) => sum + run.length - 2, 0);
    check(bins === cells, `${name}: ${cells} cells for ${bins} bins`);
  } else {
    const {heat} = drawn.panels[0];
    const shown = heat.cells.reduce((sum, [, , ...cells]) => sum + cells.reduce((a, b) => a + b, 0), 0);
    const leaked = heat.apart.reduce((a, b) => a + b, 0);
    check(shown === json.sizes.reduce((sum, size) => sum + size.ended_blocks, 0), `${name}: ${shown} blocks are shown`);
    check(leaked === json.sizes.reduce((sum, size) => sum + size.leaked_blocks, 0), `${name}: ${leaked} blocks at the end`);
  }
};

const titleOf = (json) => {
  if (json.schema === "cmt.watch/1") return json.command?.join(" ") ?? `process ${json.pid}`;
  if (json.schema === "cmt.kinds/1") return json.recording;
  if (json.schema === "cmt.compare/1") return "runs compared";
  return (json.name ?? json.inputs[0].name).replace(/^-$/, "standard input");
};

for (const name of process.argv.slice(2)) {
  const {page, requests} = await openPage(name, {width: 1000, height: 900});
  await page.goto("file://" + path.resolve(`${name}.html`));

  const numbers = await page.$eval("#numbers", (element) => JSON.parse(element.textContent));
  // What is measured comes out different each time: without a file beside it the page's own numbers are those of the run.
  const json = fs.existsSync(`${name}.json`) ? JSON.parse(fs.readFileSync(`${name}.json`, "utf8")) : numbers;
  check(isDeepStrictEqual(numbers, json), `${name}: the page's numbers are not the JSON's`);
  checkNumbers(name, await page.$eval("#picture", (element) => JSON.parse(element.textContent)), json);

  const colours = await ink(page);
  const parts = [json.processes, json.mappings].filter((part) => (part ?? []).length > 0).length;
  const panels = json.schema === "cmt.overhead/1" ? 2 : 1 + (json.schema === "cmt.kinds/1" ? parts : 0);
  check(colours.length === panels, `${name}: ${colours.length} panels`);
  if (name !== "empty") {
    check(colours.every((count) => count > 2), `${name}: a canvas is empty: ${colours}`);
    await checkZoom(page, name);
    await checkLayout(page, name);
    check((await page.evaluate(() => document.body.innerText)).length > 50, `${name}: no words`);
  }
  await checkPolicy(page, name);
  check(requests.length === 1, `${name}: it loads ${requests.slice(1)}`);
  const title = await page.title();  // a long command's is cut
  check(title === titleOf(json) || (title.endsWith("...") && titleOf(json).startsWith(title.slice(0, -3))), `${name}: titled ${title}`);
  await page.close();
}
await finish();
