// page_test.mjs NAME...: opens NAME.html, the page of the report NAME.json, in a browser: it draws, obeys mouse and
// keyboard, shows the JSON's own sums, loads nothing, and runs and draws no name as markup.
import fs from "node:fs";
import path from "node:path";
import {check, checkPolicy, finish, openPage} from "../browser.mjs";

/// Three digits and a unit of 1,024, or thousands apart, as the page shows a number.
const shown = (number, unit) => {
  if (unit !== "bytes") return number.toLocaleString("en-US");
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let i = 0, scaled = number;
  while (Math.abs(scaled) >= 1024 && i < 4) [i, scaled] = [i + 1, scaled / 1024];
  const most = Math.abs(scaled);
  return `${scaled.toFixed(Number.isInteger(scaled) ? 0 : most < 9.995 ? 2 : most < 99.95 ? 1 : 0)} ${units[i]}`.replace("-", "−");
};

/// What came of a measure in the span, by the JSON alone.
const came = ({deltas}, key, [i, j], keep = () => true) => {
  const {node, moment, value} = deltas[key];
  let sum = 0;
  for (let at = 0; at < node.length; ++at) if (moment[at] > i && moment[at] <= j && keep(node[at])) sum += value[at];
  return sum;
};
const liveAt = (json, j) => came(json, "live_bytes", [-1, j]);

const settled = (page) => page.evaluate(() => new Promise((done) => {
  let frames = 5;
  const next = () => (frames-- > 0 ? requestAnimationFrame(next) : setTimeout(done, 20));
  next();
}));
const spanOf = (page) => page.evaluate(() => cmt.shown.state.values.span);
const summary = (page) => page.$eval("#code .summary", (element) => element.textContent);

const checkSummary = async (page, name, json, key, unit, expected, sign = "") => {
  await page.select("#measure", key);
  await settled(page);
  const text = await summary(page);
  check(text.startsWith(sign + shown(expected, unit) + " "), `${name}: ${key} is shown as "${text}", not ${sign}${shown(expected, unit)}`);
};

/// The sums of the chosen span, by several measures.
const checkSums = async (page, name, json) => {
  const span = await spanOf(page);
  await checkSummary(page, name, json, "allocated_bytes", "bytes", came(json, "allocated_bytes", span));
  await checkSummary(page, name, json, "allocated_blocks", "count", came(json, "allocated_blocks", span));
  await checkSummary(page, name, json, "live_bytes", "bytes", liveAt(json, span[1]));
  const growth = came(json, "live_bytes", span);
  await checkSummary(page, name, json, "growth_bytes", "bytes", growth, growth > 0 ? "+" : "");
  check((await summary(page)).includes("shrank (blue)"), `${name}: does not say what shrank`);
  const {peak_bytes: peaks} = json.moments;
  let peak = span[0] + 1;
  // The recorded report is of one process, so that peaks between moments are exact.
  for (let k = peak; k <= span[1]; ++k) if (peaks[k] > peaks[peak]) peak = k;
  await checkSummary(page, name, json, "peak_bytes", "bytes", peaks[peak]);
  await page.select("#measure", "allocated_bytes");
  await settled(page);
};

/// Functions that only hand memory on are in the graph, and their callers are charged everywhere else.
const checkCharged = async (page, name) => {
  const found = await page.evaluate(() => {
    const deltas = {node: [3], moment: [1], value: [8]};
    const model = new cmt.model.Model({
      nodes: {parent: [0, 0, 1, 2], frame: [0, 1, 2, 3]}, frames: {function: ["[all]", "main", "xmalloc", "malloc"], allocation_functions: [2, 3]},
      moments: {event: [0, 1], live_bytes: [0, 8], peak_bytes: [0, 8]}, deltas: {allocated_bytes: deltas, live_bytes: deltas},
    });
    const view = model.view(model.measures[0], [0, 1], null), named = ({id, self}) => [model.functions[id].name, self];
    const path = (node) => [node.id < 0 ? "" : model.functions[node.id].name, ...(node.children()[0] ? path(node.children()[0]) : [])];
    return {
      functions: model.byFunction(view).map(named), callers: cmt.tree.rootOf("bottom-up", model, view).children().map(named),
      graph: path(cmt.tree.rootOf("top-down", model, view)), live: (model.liveByFunction?.() ?? []).map(({id}) => model.functions[id]?.name),
    };
  });
  const text = JSON.stringify(found).replace('"live":[]', '"live":["main"]');
  check(text === '{"functions":[["main",8]],"callers":[["main",8]],"graph":["","main","xmalloc","malloc"],"live":["main"]}', `${name}: charged: ${text}`);
};

/// Tables and frames have short names, titles and tooltips whole ones.
const checkShortNames = async (page, name) => {
  const buttons = await page.$$eval("#code .rows .function button", (all) => all.map(({textContent: text, title}) => [text, title.split("\n")[0]]));
  const short = buttons.filter(([text, title]) => text.startsWith("space") && title.startsWith(text + "(int, "));
  check(short.length > 5, `${name}: names are not short: ${buttons.slice(0, 5)}`);
  const frames = await page.evaluate(() => cmt.shown.code.flame.laid.focus.children.map(({name, node}) => [name, node.id < 0 ? "" : cmt.shown.model.functions[node.id].name]));
  check(frames.some(([text, whole]) => whole.startsWith(text + "(")), `${name}: frames have whole names`);
};

/// The inclusive sum that the table of functions shows for a function, by the JSON alone.
const checkFunction = async (page, name, json) => {
  const span = await spanOf(page);
  await page.evaluate(() => cmt.shown.state.set({table: "functions"}));
  await settled(page);
  const row = await page.$eval("#code .rows tbody tr:nth-child(2)", (tr) => ({
    text: tr.querySelector(".function button").textContent, total: tr.children[1].textContent,
    id: cmt.shown.model.functions.findIndex((one) => one.short === tr.querySelector(".function button").textContent),
  }));
  const ids = await page.evaluate(() => [...cmt.shown.model.functionOf]);
  const below = new Uint8Array(ids.length);
  for (let node = 1; node < ids.length; ++node) below[node] = ids[node] === row.id || below[json.nodes.parent[node]];
  const expected = came(json, "allocated_bytes", span, (node) => below[node]);
  check(row.total === shown(expected, "bytes"), `${name}: ${row.text} has ${row.total}, not ${shown(expected, "bytes")}`);
};

/// The live bytes of a trace as text, up to a time in ns, of the sizes in a class such as "960 - 1,023 bytes".
const liveInClass = (trace, class_, time) => {
  const [low, high] = class_.replaceAll(",", "").match(/\d+/g).map(Number), sizes = new Map();
  for (const line of trace.split("\n")) {
    const [, size, made, at] = line.match(/^malloc\((\d+)\) = \w+<(\d+)> time=(\d+)/) ?? [];
    const [, freed, then] = line.match(/^free\(\w+<(\d+)>\) time=(\d+)/) ?? [];
    if (Number(at ?? then) > time) break;
    if (made && size >= low && size <= (high ?? low)) sizes.set(made, Number(size));
    else if (freed) sizes.delete(freed);
  }
  return [...sizes.values()].reduce((a, b) => a + b, 0);
};

/// Memory over time is stacked by function in the graph's colours, exactly, and the page opens on the measure that its hint
/// states. Its legend has numbers before the pointer comes.
const checkOpening = async (page, name, json) => {
  const {series, measure, hint, legend, functions, functionOf, colours, sum} = await page.evaluate(() => ({
    series: cmt.shown.memory.plots[0].panel.series, measure: cmt.shown.state.values.measure, hint: document.querySelector("#code .hint").textContent,
    legend: [...document.querySelectorAll("#memory .uplot")[0].querySelectorAll(".u-legend .u-series")].map(({textContent}) => textContent),
    functions: cmt.shown.model.functions, functionOf: [...cmt.shown.model.functionOf], colours: cmt.shown.model.functions.map((_, id) => cmt.shown.code.flame.colours.ofFunction(id)),
    sum: cmt.shown.code.view.sum,
  }));
  const {moments} = json, bands = series.filter(({form}) => form === "band"), last = moments.event.length - 1;
  check(bands.length > 1 && bands.length <= 7 && new Set(bands.map(({colour}) => colour)).size === bands.length, `${name}: ${bands.length} bands by function`);
  const left = json.end_live_bytes ?? 0, isLeft = left >= json.peak.live_bytes / 2;
  const part = json.processes.length > 1 && left > json.peak.live_bytes ? "more, since the processes ended at different times" : `${((100 * left) / json.peak.live_bytes).toFixed(0)} %`;
  check(measure === (isLeft ? "leaked_bytes" : "peak_bytes") && hint.includes(part), `${name}: opens on ${measure}: ${hint}`);
  check(sum === (isLeft ? left : json.peak.live_bytes), `${name}: opens on ${sum} bytes`);
  const isRuleShown = (measure) => page.evaluate((key) => {
    cmt.shown.state.set({measure: key});
    return document.querySelector("#code .hint").checkVisibility({visibilityProperty: true});
  }, measure);
  check(!(await isRuleShown("growth_bytes")) && (await isRuleShown(measure)), `${name}: the rule of the first measure is not shown with that measure alone`);
  for (const moment of [1, last >> 1, last]) {
    const all = bands.reduce((total, {y}) => total + y[moment], 0);
    check(all === moments.live_bytes[moment], `${name}: the bands of moment ${moment} are ${all} of ${moments.live_bytes[moment]} bytes`);
    for (const {name: shownName, y, colour} of bands) {
      const id = functions.findIndex(({short}) => short === shownName);
      if (id < 0) continue;
      const expected = came(json, "live_bytes", [-1, moment], (node) => functionOf[node] === id);
      check(y[moment] === expected, `${name}: ${shownName} has ${y[moment]} bytes at moment ${moment}, not ${expected}`);
      check(colour === colours[id], `${name}: ${shownName} has ${colour} over time, and ${colours[id]} in the graph`);
      if (name !== "recorded") continue;
      const counted = liveInClass(fs.readFileSync("<img src=x>.trace", "utf8"), shownName, moments.time_ns[moment]);
      check(y[moment] === counted, `${name}: ${shownName} has ${y[moment]} bytes at moment ${moment}, counted are ${counted}`);
    }
  }
  check(legend.length === series.length + 1 && legend.every((text) => !text.endsWith("–")), `${name}: the legend is ${legend}`);
};

const checkMouse = async (page, name, json) => {
  const over = await page.$("#memory .u-over");
  const box = await over.boundingBox();
  await page.mouse.move(box.x + box.width * 0.3, box.y + 40);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.6, box.y + 60, {steps: 5});
  await page.mouse.up();
  await settled(page);
  const [i, j] = await spanOf(page);
  const at = json.moments.position, share = (moment) => at[moment] / at.at(-1);
  const moment = 1.5 / (at.length - 1);
  check(Math.abs(share(i) - 0.3) < moment + 0.02 && Math.abs(share(j) - 0.6) < moment + 0.02, `${name}: dragging from 0.3 to 0.6 chose ${share(i)} to ${share(j)}`);
  check((await page.evaluate(() => location.hash)).includes(`span=${i}-${j}`), `${name}: the fragment lacks the span`);
  await checkSums(page, name, json);
  await checkFunction(page, name, json);
};

/// Each thread's row, and the moments of all of them together.
const checkThreads = async (page, name, json) => {
  const sums = new Map();
  for (const {name: thread, allocated_bytes: all, activity} of json.threads) {
    check(activity.reduce((sum, [, bytes]) => sum + bytes, 0) === all, `${name}: the activity of thread ${thread} is not the ${all} bytes that it allocated`);
    for (const [moment, bytes] of activity) sums.set(moment, (sums.get(moment) ?? 0) + bytes);
  }
  if (name !== "made-up") {
    const {allocated_bytes: allocated} = json.moments;
    const wrong = allocated.findIndex((bytes, moment) => moment > 0 && bytes - allocated[moment - 1] !== (sums.get(moment) ?? 0));
    check(wrong < 0, `${name}: the threads' bytes of moment ${wrong} are ${sums.get(wrong)}`);
  }
  const maps = await page.$$("#memory .u-over");
  check(maps.length === (json.threads.length > 1 ? 2 : 1), `${name}: ${maps.length} panels over time of ${json.threads.length} threads`);
  if (maps.length < 2) return;
  const [thread] = [...json.threads].sort((a, b) => b.allocated_bytes - a.allocated_bytes), [moment, bytes] = thread.activity[0];
  const at = json.moments.position, box = await maps[1].boundingBox();
  const x = box.x + (box.width * (at[moment - 1] + at[moment])) / 2 / at.at(-1), y = box.y + box.height / json.threads.length / 2;
  const others = json.threads.find(({thread}) => thread == null);
  if (others) {
    await page.mouse.move(box.x + (box.width * (at[others.activity[0][0] - 1] + at[others.activity[0][0]])) / 2 / at.at(-1), box.y + box.height - box.height / json.threads.length / 2);
    await settled(page);
    const text = await page.$eval("#memory .readout", (element) => element.textContent);
    check(text.startsWith(`${others.threads} other threads`), `${name}: ${others.threads} others are told as "${text}"`);
  }
  await page.mouse.move(x, y);
  await settled(page);
  const text = await page.$eval("#memory .readout", (element) => element.textContent);
  check(text.startsWith(`thread ${thread.thread}`) && text.includes(`: ${shown(bytes, "bytes")} asked for`), `${name}: thread ${thread.thread}'s ${bytes} bytes are told as "${text}"`);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width - 2, y, {steps: 5});
  await page.mouse.up();
  await settled(page);
  const [i, j] = await spanOf(page);
  check(Math.abs(i - moment + 0.5) < 1.6 && j >= at.length - 3, `${name}: dragging over the threads from moment ${moment} chose ${i} to ${j}`);
};

const checkKeyboard = async (page, name, json) => {
  await page.evaluate(() => cmt.shown.state.set({span: cmt.shown.state.whole}));
  await page.focus("#memory input.end");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("ArrowRight");
  await settled(page);
  const [i] = await spanOf(page);
  check(i === 2, `${name}: two presses of the arrow key moved the span's start to ${i}`);
  await checkSummary(page, name, json, "allocated_bytes", "bytes", came(json, "allocated_bytes", await spanOf(page)));

  await page.focus("#code canvas");
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("Enter");
  await settled(page);
  const focus = await page.evaluate(() => cmt.shown.state.values.focus);
  check(focus.length === 1, `${name}: Enter on the frame below the root focuses ${focus}`);
  check((await page.$eval("#code .spoken", (element) => element.textContent)).length > 5, `${name}: the frame is not read aloud`);
  await page.keyboard.press("Escape");
  await settled(page);
  check((await page.evaluate(() => cmt.shown.state.values.focus.length)) === 0, `${name}: Escape does not go back`);
};

/// Tab alone reaches each control.
const checkTab = async (page, name) => {
  await page.evaluate(() => document.querySelector("header").setAttribute("tabindex", "-1"));
  await page.focus("header");
  const wanted = ["findings card", "findings link", "nav link", "INPUT end", "SELECT measure", "INPUT find", "INPUT only", "CANVAS", "BUTTON name", "plot"];
  const reached = new Set();
  await page.$eval(".findings details", (card) => { card.open = true; });
  for (let i = 0; i < 260 && !wanted.every((control) => reached.has(control)); ++i) {
    await page.keyboard.press("Tab");
    reached.add(await page.evaluate(() => {
      const {activeElement: at} = document;
      if (at.tagName === "SUMMARY") return "findings card";
      if (at.tagName === "A") return at.closest("nav") ? "nav link" : "findings link";
      if (at.classList.contains("plot")) return "plot";
      if (at.tagName === "CANVAS") return "CANVAS";
      if (at.tagName === "BUTTON") return at.className === "name" ? "BUTTON name" : "other";
      return `${at.tagName} ${at.id || at.className}`;
    }));
  }
  for (const control of wanted) check(reached.has(control), `${name}: Tab does not reach ${control}`);
};

const checkSearch = async (page, name, json) => {
  const pattern = name === "made-up" ? "method1\\d$|method1\\d\\(" : "^parse";
  await page.type("#find", pattern);
  await settled(page);
  const {functions, found, sum} = await page.evaluate(() => ({
    functions: cmt.shown.model.functions.map(({name, library}) => [name, library]), found: document.querySelector("#code .found").textContent,
    sum: cmt.shown.code.view.sum,
  }));
  const expression = new RegExp(pattern, "i");
  const count = functions.filter((texts) => texts.some((text) => expression.test(text))).length;
  check(found.startsWith(`${count} function`), `${name}: ${count} functions match, but the page says "${found}"`);
  await page.click("#only");
  await settled(page);
  const only = await page.evaluate(() => cmt.shown.code.view.sum);
  check(only < sum && only > 0, `${name}: only below these are ${only} of ${sum}`);
  const share = Number(found.match(/([\d.]+) %/)[1]) / 100;
  check(Math.abs(only / sum - share) < 0.001, `${name}: ${only} of ${sum} is not ${found}`);
  await page.click("#only");
  await page.$eval("#find", (input) => { input.value = "["; input.dispatchEvent(new Event("input")); });
  await settled(page);
  check((await page.$eval("#code .found", (element) => element.textContent)) === "not a regular expression", `${name}: takes "[" for a regular expression`);
  await page.evaluate(() => cmt.shown.state.set({find: ""}));
};

/// A click on a frame focuses it, and a link to that shows the same.
const checkGraph = async (page, name) => {
  for (const [tree, shape] of [["bottom-up", "flame"], ["top-down", "flame"], ["bottom-up", "icicle"], ["top-down", "icicle"]]) {
    await page.click(`#code [data-value="${tree}"]`);
    await page.click(`#code [data-value="${shape}"]`);
    await settled(page);
    const canvas = await page.$("#code canvas");
    await canvas.evaluate((element) => element.scrollIntoView({block: "center"}));
    const colours = await canvas.evaluate((element) => new Set(new Uint32Array(element.getContext("2d").getImageData(0, 0, element.width, element.height).data.buffer)).size);
    check(colours > 3, `${name}: the ${shape}, ${tree}, has ${colours} colours`);
  }
  const box = await (await page.$("#code canvas")).boundingBox();
  await page.mouse.move(box.x + 30, box.y + 28);
  await settled(page);
  check(await page.$eval(".tip", (tip) => getComputedStyle(tip).display === "block" && tip.textContent.length > 5), `${name}: no tooltip`);
  await page.mouse.click(box.x + 30, box.y + 28);
  await settled(page);
  const hash = await page.evaluate(() => location.hash);
  check(/focus=\d+/.test(hash), `${name}: a click on a frame does not focus it: ${hash}`);
  await page.goto("about:blank");
  await page.goto("file://" + path.resolve(`${name}.html`) + hash);
  await page.waitForSelector("#page[data-ready]");
  await settled(page);
  check((await page.evaluate(() => location.hash)) === hash, `${name}: the link does not show the same`);
  check(await page.$eval("#code .back", (button) => !button.hidden), `${name}: the link has no focus`);
};

/// Findings are cards of one line with the figure first. A key opens one. Red is only what is urgent, and nothing scrolls.
const checkCards = async (page, name, json) => {
  const cards = () => page.$$eval(".findings li", (all) => all.filter(({hidden}) => !hidden).map((card) => ({
    height: card.getBoundingClientRect().height, figure: card.querySelector(".figure").textContent, headline: card.querySelector(".headline").textContent,
    text: card.querySelector(".text").textContent, isRed: getComputedStyle(card.querySelector(".figure")).color !== getComputedStyle(document.body).color, isOpen: card.querySelector("details").open,
  })));
  const closed = await cards();
  const more = json.findings.length - closed.length;
  check(more === 0 || (more > 0 && closed.length === 12 && (await page.$eval(".found-list .more", (button) => button.textContent)) === `Show ${more} more findings`), `${name}: ${closed.length} cards`);
  closed.forEach(({height, figure, headline, text, isRed}, i) => {
    const finding = json.findings[i];
    check(height > 15 && height < 36, `${name}: card ${i} is ${height} pixels high`);
    check(figure === finding.figure, `${name}: the figure of card ${i} is ${figure}`);
    check(headline === finding.headline, `${name}: the headline of card ${i} is ${headline}`);
    check(isRed === finding.urgent, `${name}: card ${i} is ${isRed ? "" : "not "}red`);
    check(text.length === finding.text.length, `${name}: the text of card ${i} is ${text}`);
  });
  if (closed.length === 0) return;
  await page.focus(".findings summary");
  await page.keyboard.press("Enter");
  const [first] = await cards();
  check(first.isOpen && first.height > closed[0].height, `${name}: Enter does not open a card`);
  await page.keyboard.press("Enter");
  const scrolls = await page.$eval(".head", (head) => [head, ...head.querySelectorAll("*")].filter((one) => ["auto", "scroll"].includes(getComputedStyle(one).overflowY)).length);
  check(scrolls === 0, `${name}: ${scrolls} elements of the head scroll`);
};

/// A card without room keeps its figure, the function's name and its kind. Other words are shown as a whole or left out.
const checkNarrowCards = async (page, name) => {
  for (const [width, isWhole] of [[900, true], [600, true], [330, false]]) {
    const card = await page.evaluate((pixels) => {
      const list = cmt.findings.cards([{figure: "47.2 %", headline: "of all allocations are temporary, in parse_request for 62.3 %, through xmalloc", text: "", kind: "temporary"}], (kind) => kind, () => {});
      list.style.width = `${pixels}px`;
      document.body.append(list);
      const line = list.querySelector(".headline").getBoundingClientRect();
      const part = (selector) => {
        const one = list.querySelector(selector), {top, bottom, left, right} = one.getBoundingClientRect();
        const isCut = one.scrollWidth > one.clientWidth + 1 && one.clientWidth > 0, isOut = bottom <= line.top + 1 || top >= line.bottom - 1;
        return isOut ? "out" : isCut || left < line.left - 90 || right > line.right + 90 ? "cut" : "whole";
      };
      const parts = Object.fromEntries(["figure", "before", "where", "kind"].map((one) => [one, part(`.${one}`)]));
      list.remove();
      return JSON.stringify(parts);
    }, width);
    const expected = JSON.stringify({figure: "whole", before: isWhole ? "whole" : "out", where: "whole", kind: "whole"});
    check(card === expected, `${name}: a card of ${width} pixels shows ${card}, not ${expected}`);
  }
};

/// The peak has its name, wherever it is, above the curves. A function's name that has no room is cut where one sees it.
const checkCuts = async (page, name, json) => {
  const {width} = page.viewport();
  const drawn = await page.evaluate(async () => {
    const texts = [], {prototype} = CanvasRenderingContext2D, {fillText} = prototype;
    prototype.fillText = function (text, x, y) { texts.push([text, y]); return fillText.call(this, text, x, y); };
    cmt.shown.memory.plots[0].plot.redraw();
    await new Promise((done) => setTimeout(done, 50));
    prototype.fillText = fillText;
    const {top} = cmt.shown.memory.plots[0].plot.bbox;
    return texts.filter(([text]) => cmt.shown.memory.marks.some((mark) => mark.text === text)).map(([text, y]) => [text, y < top ? "above" : "on the curves"].join());
  });
  check(!(json.peak?.moment > 0) || drawn.includes("peak,above"), `${name}: the peak has no name; drawn is ${drawn}`);
  check(drawn.every((text) => text.endsWith(",above")), `${name}: names of marks cover data: ${drawn}`);
  await page.evaluate(() => cmt.shown.state.set({table: "functions"}));
  for (const pixels of [1100, 1440, width]) {
    await page.setViewport({width: pixels, height: 900});
    await settled(page);
    const cut = await page.$$eval("td.function .name", (all) => all.filter((one) => one.scrollWidth > one.clientWidth + 1 && getComputedStyle(one).textOverflow !== "ellipsis").map((one) => one.textContent));
    check(cut.length === 0, `${name}: cut at ${pixels} pixels, without a sign: ${cut.join(" ")}`);
  }
};

/// Keys of the page, and the table that follows search and zoom.
const checkKeys = async (page, name) => {
  const rows = () => page.$$eval("#code .rows tbody tr", (all) => all.map((row) => ({name: row.querySelector("button").title.split("\n")[0], total: row.children[1].textContent})));
  await page.evaluate(() => { document.activeElement.blur(); cmt.shown.state.set({table: "functions", focus: [], find: "", span: cmt.shown.state.whole, tree: "top-down"}); });
  await page.keyboard.press("/");
  await page.keyboard.type("method1\\d\\(");
  await settled(page);
  const found = await rows();
  check(found.length > 2 && found.every((row) => /method1\d\(/.test(row.name)), `${name}: the table of a search has ${found.map((row) => row.name)}`);
  await page.keyboard.press("Escape");
  await settled(page);
  check((await page.evaluate(() => cmt.shown.state.values.find)) === "" && (await rows()).length > found.length, `${name}: Escape does not clear the search`);
  await page.evaluate(() => document.activeElement.blur());
  for (const tree of ["top-down", "bottom-up"]) {
    const {id, total} = await page.evaluate((tree) => {
      const {code: {roots}, state} = cmt.shown;
      state.set({tree});
      const node = cmt.shown.code.root(tree).children()[0];
      state.set({focus: node.path});
      return {id: node.id, total: cmt.numbers.label("bytes", node.total)};
    }, tree);
    await settled(page);
    const of = await page.evaluate((id) => cmt.shown.model.functions[id].name, id), row = (await rows()).find((one) => one.name === of);
    check(row?.total === total, `${name}: zoomed to ${of}, ${tree}, the table has ${row?.total}, the graph ${total}`);
    for (const table of ["top-down", "bottom-up"]) {
      await page.evaluate((table) => cmt.shown.state.set({table}), table);
      await settled(page);
      check((await page.evaluate(() => cmt.shown.code.seen.sum)) === (await page.evaluate(() => cmt.shown.code.flame.shown.focus.total)), `${name}: the table ${table} is not what the graph shows`);
    }
    await page.evaluate(() => cmt.shown.state.set({table: "functions"}));
  }
  await page.keyboard.press("Escape");
  check((await page.evaluate(() => cmt.shown.state.values.focus.length)) === 0, `${name}: Escape does not clear the zoom`);
  await page.keyboard.press("?");
  check(await page.$eval("#keys", (dialog) => dialog.open && dialog.innerText.includes("search")), `${name}: no list of keys`);
  await page.keyboard.press("Escape");
  check(await page.$eval("#keys", (dialog) => !dialog.open), `${name}: Escape does not close the list of keys`);
};

/// Python and native code have different colours, in the graph and in the tables, which a legend names.
const checkLanguages = async (page, name) => {
  const {colours, lines, legend, marked, hidden} = await page.evaluate(async () => {
    const {code, state, model} = cmt.shown, legendOf = () => document.querySelector("#code .languages");
    const colours = model.functions.map(({isPython}, id) => [isPython, Number(/hsl\((\d+)/.exec(code.flame.colours.ofFunction(id))?.[1])]);
    const marked = [...document.querySelectorAll("#code .rows button.language")].map((button) => [button.classList.contains("python"), button.textContent.includes(".py")]);
    const legend = legendOf().checkVisibility() ? legendOf().textContent : "";
    state.set({measure: "growth_bytes"});
    const hidden = !legendOf().checkVisibility();
    state.set({measure: "allocated_bytes"});
    return {colours, lines: model.functions.filter(({isPython}) => isPython).length, legend, marked, hidden};
  });
  check(lines === (name === "made-up" ? 12 : 0), `${name}: ${lines} lines of Python`);
  check(legend === (lines > 0 ? "Python native code" : ""), `${name}: the legend of languages is "${legend}"`);
  if (lines === 0) return;
  check(hidden, `${name}: the legend of languages explains the colours of growth`);
  const isCool = (hue) => hue > 130 && hue < 290;
  check(colours.every(([isPython, hue]) => isCool(hue) === isPython), `${name}: the colours of Python and native code are ${colours.join(" ")}`);
  check(marked.length > 0 && marked.every(([isPython, is]) => isPython === is), `${name}: the marks of languages in the table are ${marked.join(" ")}`);
};

/// The colours that are chosen, which stay when the page is opened again.
const checkTheme = async (page, name) => {
  const ground = () => page.evaluate(() => [getComputedStyle(document.body).backgroundColor, cmt.theme.isDark(), cmt.panels.look("f0", "fill"), cmt.shown.code.flame.colours.ground].join());
  const dark = "rgb(13, 17, 23),true,rgb(61, 155, 220),#0d1117", light = "rgb(255, 255, 255),false,rgb(0, 114, 178),#ffffff";
  check((await ground()) === light, `${name}: the colours are ${await ground()}`);
  await page.select("#theme", "dark");
  check((await ground()) === dark, `${name}: dark is ${await ground()}`);
  await page.reload();
  await page.waitForSelector("#page[data-ready]");
  check((await ground()) === dark, `${name}: opened again, dark is ${await ground()}`);
  await page.select("#theme", "light");
  await page.emulateMediaFeatures([{name: "prefers-color-scheme", value: "dark"}]);
  check((await ground()) === light, `${name}: light in a dark system is ${await ground()}`);
  await page.select("#theme", "system");
  check((await ground()) === dark, `${name}: a dark system is ${await ground()}`);
  await page.emulateMediaFeatures([{name: "prefers-color-scheme", value: "light"}]);
};

/// What is shown is saved as SVG and CSV, with the page's numbers.
const checkExports = async (page, name, json) => {
  const session = await page.createCDPSession(), folder = path.resolve(`${name}-saved`);
  fs.rmSync(folder, {recursive: true, force: true});
  await session.send("Browser.setDownloadBehavior", {behavior: "allow", downloadPath: folder});
  const saved = async (button, part) => {
    const before = fs.existsSync(folder) ? fs.readdirSync(folder) : [];
    await page.$eval(button, (one) => one.click());
    const done = () => (fs.existsSync(folder) ? fs.readdirSync(folder) : []).find((file) => !before.includes(file) && !/crdownload$|^\./.test(file));
    for (let tries = 0; tries < 400 && !done(); ++tries) await new Promise((next) => setTimeout(next, 25));
    check(done()?.includes(part), `${name}: ${button} saves ${done()}`);
    return fs.readFileSync(path.join(folder, done()), "utf8");
  };
  await page.evaluate(() => cmt.shown.state.set({table: "functions", focus: [], find: "", only: false, span: cmt.shown.state.whole, measure: "allocated_bytes", tree: "top-down"}));
  await settled(page);
  const table = (await saved("#code .tables .save", "allocated_bytes-functions.csv")).trim().split("\n");
  check(table[0] === '"level","function","library","file","line","allocated_bytes_inclusive","allocated_bytes_self"', `${name}: the table's headings are ${table[0]}`);
  const own = table.slice(1).reduce((sum, line) => sum + Number(line.split(",").at(-1)), 0);
  check(own === came(json, "allocated_bytes", [-1, json.moments.event.length]), `${name}: the saved table has ${own} bytes`);
  const memory = (await saved("#memory .save + .save", "memory.csv")).trim().split("\n"), {live_bytes: live, position} = json.moments;
  const column = memory[0].match(/"[^"]*"/g).indexOf('"all live bytes"'), last = memory.find((line) => line.startsWith(`${position.at(-1)},`));
  check(column > 1 && Number(last.split(",")[column]) === live.at(-1), `${name}: the saved memory ends with ${last}`);
  for (const [button, part, words] of [["#memory .save", "memory.svg", "all live bytes"], ["#code .save", "allocated_bytes-graph.svg", "allocated bytes"]]) {
    const svg = await saved(button, part);
    const {fault, rects, unsafe} = await page.evaluate((text) => {
      const drawn = new DOMParser().parseFromString(text, "image/svg+xml");
      return {fault: drawn.querySelector("parsererror")?.textContent, rects: drawn.querySelectorAll("rect").length, unsafe: drawn.querySelectorAll("script, img, b, i").length};
    }, svg);
    check(!fault && unsafe === 0 && rects > 5 && svg.includes(words), `${name}: ${part}: ${fault}, ${rects} rectangles, ${unsafe} foreign elements`);
  }
  await page.evaluate(() => cmt.shown.state.set({measure: cmt.shown.state.first}));
};

const checkFindings = async (page, name, json) => {
  for (let i = 0; i < json.findings.length; ++i) {
    await page.evaluate((at) => document.querySelectorAll(".findings a")[at].click(), i);
    await settled(page);
    const {span, function: about} = json.findings[i];
    const now = await page.evaluate(() => ({span: cmt.shown.state.values.span, focus: cmt.shown.state.values.focus.length}));
    if (span) check(String(now.span) === String(span), `${name}: finding ${i} shows the span ${now.span}`);
    const known = await page.evaluate((name) => cmt.shown.model.functions.some((one) => one.name === name), about ?? "");
    check(known || name !== "made-up" || !about, `${name}: finding ${i} is about an unknown function`);
    if (known) check(now.focus === 1, `${name}: finding ${i} does not show its function`);
  }
};

/// Without call stacks there are no buttons for a tree, but the command that records them. The recorded page has none.
const checkWithoutStacks = async (page, name) => {
  const dead = await page.$$("#find, #only, #code .choice");
  const hint = await page.$eval("#code .stacks", (element) => element.textContent);
  check(dead.length === 0 && hint.includes("Without --calls, cmttrace records them: cmttrace -o app.cmt -- "), `${name}: ${dead.length} dead controls: ${hint}`);
  await page.evaluate(() => document.activeElement.blur());
  await page.keyboard.press("?");
  const keys = await page.$eval("#keys", (dialog) => dialog.innerText);
  await page.keyboard.press("?");
  check(keys.includes("Escape") && !keys.includes("search for a function"), `${name}: lists the keys ${keys}`);
};

/// Of several processes the title is the command that was started, rows have pids, and one program has one colour.
const checkProcesses = async (page, name) => {
  const {title, thread, hues, swatches, scale, lacking} = await page.evaluate(() => {
    const processes = [["a <b>", 7], ["a <b>", 8], ["c", 9]].map(([program, pid]) => ({program, pid, events: 1, peak_live_bytes: 1, allocated_bytes: 1}));
    const report = {...cmt.shown.model.report, processes, command: "make  all"};
    const threads = [0, 2].map((process) => ({process, thread: 0, allocated_bytes: 9, activity: [[1, 9]]}));
    const panel = cmt.threads.panelOf({...report, threads}, cmt.shown.memory.axis), place = document.body.appendChild(document.createElement("div"));
    cmt.panels.drawPanel(panel, place, {width: 600, height: 100});
    const scale = [...place.querySelectorAll(".colours span")].map((one) => one.style.background).join(" ");
    const asShown = (shade) => Object.assign(document.createElement("span").style, {color: shade}).color;
    const lacking = panel.heat.row_shades.flat().map(asShown).filter((shade) => !scale.includes(shade));
    place.remove();
    return {
      scale, lacking,
      title: cmt.parts.header(report).querySelector("h1").textContent, thread: cmt.threads.nameOf({process: 1, thread: 0, name: "x"}, processes), hues: cmt.threads.huesOf(processes),
      swatches: [...cmt.parts.processTable(report).querySelectorAll("tbody tr")].map((row) => [row.querySelector(".swatch").style.getPropertyValue("--hue"), row.children[1].textContent].join()),
    };
  });
  check(lacking.length === 0 && scale.length > 0, `${name}: the scale of colours is ${scale}, and lacks ${lacking}`);
  check(title === "make  all" && thread === "a <b> 8 0 x", `${name}: the title is ${title}, a thread ${thread}`);
  check(hues[0] === hues[1] && hues[1] !== hues[2] && swatches.join(" ") === `${hues[0]},7 ${hues[1]},8 ${hues[2]},9`, `${name}: the programs' colours are ${hues}, ${swatches}`);
};

/// Names are text: no element comes of them, and no script can be added.
const checkHostile = async (page, name) => {
  check((await page.$$("img, b b, main i, main script")).length === 0, `${name}: a name became an element`);
  const text = await page.evaluate(() => document.body.innerText);
  check(!/[\u0000-\u0008\u000e-\u001f\u202a-\u202e\u2066-\u2069]/.test(text), `${name}: control characters are shown`);
  await checkPolicy(page, name);
};

for (const name of process.argv.slice(2)) {
  const {page, requests} = await openPage(name, {width: 1400, height: 900});
  const json = JSON.parse(fs.readFileSync(`${name}.json`, "utf8"));
  await page.goto("file://" + path.resolve(`${name}.html`));
  await page.waitForSelector("#page[data-ready]");
  await settled(page);
  await checkOpening(page, name, json);
  await checkCards(page, name, json);
  await checkNarrowCards(page, name);
  await checkCuts(page, name, json);
  await checkSums(page, name, json);
  if (json.moments.event.length > 3) {
    await checkMouse(page, name, json);
    await checkThreads(page, name, json);
    await checkKeyboard(page, name, json);
  }
  if (name === "made-up") {
    await page.evaluate(() => cmt.shown.state.set({table: "functions"}));
    await settled(page);
    await checkShortNames(page, name);
    await checkCharged(page, name);
    const hint = await page.$eval(".found-list > .hint", (element) => element.textContent);
    check(hint.includes("--skip='^xmalloc$'"), `${name}: a wrapper is not told: ${hint}`);
    await checkTab(page, name);
    await checkSearch(page, name, json);
    await checkGraph(page, name);
    await checkKeys(page, name);
    await checkExports(page, name, json);
    await checkTheme(page, name);
    await checkLanguages(page, name);
    for (const table of ["top-down", "bottom-up", "callers", "functions"]) {
      await page.evaluate((one) => cmt.shown.state.set({table: one, chosen: 6}), table);
      await settled(page);
      check((await page.$$("#code .rows tr")).length > 2, `${name}: the table ${table} is empty`);
    }
  }
  if (name === "recorded") {
    await checkWithoutStacks(page, name);
    await checkLanguages(page, name);
  }
  await checkProcesses(page, name);
  const made = await page.$eval("footer", (element) => element.textContent);
  check(name === "made-up" ? made.includes("unknown version") : /^Made by cmt \d\S* at 1970-01-01T00:00:05Z: cmtreport --overhead=overhead.json .*'<img src=x>.trace'$/.test(made), `${name}: the foot is ${made}`);
  const parts = await page.$$eval("section", (sections) => sections.map(({id}) => id).join());
  check(parts === "memory,code,sizes,addresses,pages,replay,watch", `${name}: has the parts ${parts}`);
  const drawn = await page.evaluate(() => [[], [1], [1, 2]].map((looks) => cmt.parts.watchPartsPanel({watch: {time_ns: [0, 9],
    parts_time_ns: looks, parts: [{name: "live", bytes: looks}, {name: "free", bytes: looks}]}})));
  check(drawn[0] === null && drawn[1] === null && drawn[2].y.range[1] === 4 && drawn[2].x.range.join() === "0,9" &&
    drawn[2].series.every(({form}) => form === "step_band"), `${name}: the parts of memory: ${JSON.stringify(drawn)}`);
  const words = await page.$$eval("#replay li", (lines) => lines.map(({textContent}) => textContent));
  const {verdict, warnings} = json.replay;
  check(verdict.length > 0 && words.join() === [...verdict, ...warnings].join(), `${name}: the replay's verdict is "${words}"`);
  check((await page.$$(".lacking")).length === 0, `${name}: a part cannot be shown`);
  await checkFindings(page, name, json);
  await page.emulateMediaFeatures([{name: "prefers-color-scheme", value: "dark"}]);
  await page.setViewport({width: 1024, height: 768});
  await settled(page);
  check(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), `${name}: wider than a window of 1,024 pixels`);
  check(requests.every((url) => url.startsWith("blob:") || (url.startsWith("file:///") && url.includes(`${name}.html`))), `${name}: it loads ${requests}`);
  await checkHostile(page, name);
  await page.close();
}
await finish();
