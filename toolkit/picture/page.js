// Draws the panels of a picture with uPlot; page.cpp describes its JSON. The colours are those of the SVG's style sheet,
// as the browser computes them, so that light and dark need no second list.
"use strict";
(() => {
  const picture = JSON.parse(document.getElementById("picture").textContent);
  const main = document.getElementById("panels");

  // Numbers with their units, by the rules that axis.cpp hands over.
  const rules = picture.tick_rules;
  const magnitude = (unit, number) => rules[unit].magnitudes.findLast(([size]) => Math.abs(number) >= size) ?? rules[unit].magnitudes[0];
  const withUnit = (number, [size, name], digits) => {
    const text = String(+(number / size).toFixed(digits));
    return text === "0" || name === "" ? text : text + " " + name;
  };
  const label = (unit, number) => {
    if (number == null) return "–";
    if (unit === "count") return number.toLocaleString("en-US", {maximumFractionDigits: 2});
    return withUnit(number, magnitude(unit, number), 2);
  };
  const toScale = (number, log) => (!log ? number : number >= 1 ? 1 + Math.log2(number) : number);
  const fromScale = (place, log) => (!log ? place : place >= 1 ? 2 ** (place - 1) : place);

  const roundStep = (unit, step) => {
    const {base, least_step: least, factors} = rules[unit];
    if (step <= least) return least;
    const power = base ** Math.floor(Math.log(step) / Math.log(base) + 1e-9);
    return power * [...factors, base].find((factor) => factor * power >= step * (1 - 1e-9));
  };
  const linearTicks = (unit, low, high, most) => {
    const step = roundStep(unit, (high - low) / (most - 1));
    const unitOfAll = magnitude(unit, high);
    const ticks = [];
    for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-6 && ticks.length <= most; ++i)
      ticks.push([i * step, withUnit(i * step, unitOfAll, 6)]);
    return ticks;
  };
  const logTicks = (unit, low, high, most) => {
    const {base} = rules[unit];
    const first = low < 1 ? 0 : Math.ceil(Math.log(low) / Math.log(base) - 1e-9);
    const last = Math.floor(Math.log(Math.max(high, 1)) / Math.log(base) + 1e-9);
    if (last <= first) return linearTicks(unit, low, high, most);
    const every = Math.max(1, Math.ceil((last - first + 1) / most));
    const ticks = low <= 0 ? [[0, "0"]] : [];
    for (let power = first; power <= last; power += every)
      ticks.push([base ** power, withUnit(base ** power, magnitude(unit, base ** power), 0)]);
    return ticks;
  };

  /// [[position, label]…] of the visible part of an axis.
  const ticksOf = (axis, low, high, pixels, distance) => {
    const most = Math.max(2, Math.floor(pixels / distance));
    if (axis.ticks.length > 0) {
      const kept = [];
      for (const [at, text] of axis.ticks) {
        const far = ([other]) => (Math.abs(other - at) / (high - low)) * pixels >= distance / 2;
        if (at >= low && at <= high && kept.every(far)) kept.push([at, text]);
      }
      return kept.sort((a, b) => a[0] - b[0]);
    }
    const make = axis.log ? logTicks : linearTicks;
    return make(axis.unit, fromScale(low, axis.log), fromScale(high, axis.log), most)
      .map(([at, text]) => [toScale(at, axis.log), text]).filter(([at]) => at >= low && at <= high);
  };

  // The style sheet's colours.
  const svg = document.body.appendChild(document.createElementNS("http://www.w3.org/2000/svg", "svg"));
  svg.setAttribute("class", "looks");
  const probe = svg.appendChild(document.createElementNS("http://www.w3.org/2000/svg", "path"));
  const look = (name, property) => {
    probe.setAttribute("class", name);
    return getComputedStyle(probe)[property];
  };

  const uplotAxis = (axis, side) => {
    const [distance, font] = [side === 2 ? 80 : 34, "11px system-ui, sans-serif"];
    const now = (u, low, high) => ticksOf(axis, low, high, (side === 2 ? u.bbox.width : u.bbox.height) / devicePixelRatio, distance);
    const ink = getComputedStyle(document.body).color;
    return {
      side, font, labelFont: "12px system-ui, sans-serif", label: axis.title || undefined, labelSize: axis.title ? 20 : 0,
      size: side === 2 ? 34 : axis.title ? 112 : 132, stroke: ink, grid: {stroke: look("grid", "stroke"), width: 1},
      ticks: {stroke: look("axis", "stroke"), width: 1},
      splits: (u, index, low, high) => now(u, low, high).map(([at]) => at),
      values: (u, splits) => {
        const scale = u.scales[side === 2 ? "x" : "y"];
        const labels = new Map(now(u, scale.min, scale.max));
        return splits.map((at) => labels.get(at) ?? "");
      },
    };
  };

  const width = () => Math.max(320, main.clientWidth);
  const common = (panel, height, sync) => ({
    width: width(), height,
    axes: [uplotAxis(panel.x, 2), uplotAxis(panel.y, 3)],
    cursor: {drag: {x: true, y: !sync, uni: 20}, points: {show: panel.heat == null}, ...(sync ? {sync: {key: "panels"}} : {})},
  });

  /// Lines and bands. uPlot wants one x for all, and bands as their tops; it draws in order, and lines lie above.
  const seriesPlot = (panel, sync) => {
    const all = panel.series.map((one, i) => ({...one, look: i % 8}))
      .sort((a, b) => (b.form === "band") - (a.form === "band"));
    const tables = all.map((one) => [one.x, one.y]);
    const raw = tables.length > 0 ? uPlot.join(tables, tables.map((table) => table.map(() => 2))) : [[]];
    const data = [raw[0]];
    let below = null;
    all.forEach((one, i) => {
      const y = raw[i + 1];
      if (one.form !== "band") return data.push(y);
      const under = below;
      below = y.map((value, j) => (value == null ? null : value + (under?.[j] ?? 0)));
      data.push(below);
    });
    const bands = [];
    const series = all.map((one, i) => {
      const band = one.form === "band";
      const previous = all.slice(0, i).findLastIndex((other) => other.form === "band");
      const fill = look("f" + one.look, "fill");
      if (band && previous >= 0) bands.push({series: [i + 1, previous + 1]});
      return {
        label: one.name, stroke: band ? fill : look("l" + one.look, "stroke"), width: band ? 1 : 1.6, spanGaps: true,
        fill: band ? fill : undefined, points: {show: all[0].x.length < 2},
        paths: one.form === "step" ? uPlot.paths.stepped({align: 1}) : undefined,
        value: (u, value, index, at) => label(panel.y.unit, at == null ? null : raw[i + 1][at]),
      };
    });
    const extent = panel.x.range;
    return {
      options: {
        ...common(panel, 320, sync), bands,
        scales: {
          x: {time: false, range: (u, low, high) => (low == null || low === high ? extent : [low, high])},
          y: {range: (u, low, high) => [0, high > 0 ? high * 1.05 : panel.y.range[1]]},
        },
        series: [{label: panel.x.title, value: (u, value) => label(panel.x.unit, value)}, ...series],
      },
      data,
    };
  };

  const levels = 12;
  const heatColours = () => Array.from({length: levels}, (_, level) => look("h" + level, "fill"));
  const level = (heat, cell) => {
    const [low, high] = heat.colours.map((end) => toScale(end, heat.log));
    return Math.min(levels - 1, Math.max(0, Math.floor(((toScale(cell, heat.log) - low) / (high - low)) * levels)));
  };

  /// "blocks  1 ▇▇▇▇▇▇▇▇▇▇▇▇ 380 k"
  const colourBar = (heat) => {
    const bar = document.createElement("p");
    bar.className = "colours";
    const [low, high] = heat.colours.map((end) => label(heat.unit, end));
    bar.append(heat.title + (heat.log ? ", logarithmic: " : ": "), low + " ");
    for (const colour of heatColours()) bar.appendChild(document.createElement("span")).style.background = colour;
    bar.append(" " + high);
    return bar;
  };

  /// Draws the visible cells.
  const drawCells = (u, panel) => {
    const {heat} = panel;
    const colours = heatColours();
    const [xs, ys] = [[heat.x_edges, "x"], [heat.y_edges, "y"]]
      .map(([edges, key]) => edges.map((edge) => Math.round(u.valToPos(toScale(edge, panel[key].log), key, true))));
    const {ctx, bbox} = u;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    for (const [row, first, ...cells] of heat.cells) {
      cells.forEach((cell, i) => {
        const x = xs[first + i], y = ys[row + 1];
        ctx.fillStyle = colours[level(heat, cell)];
        ctx.fillRect(x, y, Math.max(1, xs[first + i + 1] - x), Math.max(1, ys[row] - y));
      });
    }
    ctx.strokeStyle = look("break", "stroke");
    ctx.setLineDash([2, 3]);
    for (const at of panel.y.breaks) {
      const y = Math.round(u.valToPos(at, "y", true)) + 0.5;
      ctx.beginPath();
      ctx.moveTo(bbox.left, y);
      ctx.lineTo(bbox.left + bbox.width, y);
      ctx.stroke();
    }
    ctx.restore();
  };

  const findEdge = (edges, at) => edges.findIndex((edge, i) => at >= edge && at < edges[i + 1]);

  /// The text for the cell under the pointer.
  const readCell = (u, panel, table) => {
    const {left, top} = u.cursor;
    if (left == null || left < 0 || top < 0) return "";
    const {heat} = panel;
    const x = fromScale(u.posToVal(left, "x"), panel.x.log), y = fromScale(u.posToVal(top, "y"), panel.y.log);
    const column = findEdge(heat.x_edges, x), row = findEdge(heat.y_edges, y);
    const place = panel.y.ticks.length > 0
      ? (panel.y.ticks.filter(([at]) => at <= y).sort((a, b) => b[0] - a[0])[0]?.[1] ?? "") + " on"
      : label(panel.y.unit, heat.y_edges[row]) + " to " + label(panel.y.unit, heat.y_edges[row + 1]);
    const cell = table.get(row + "," + column) ?? 0;
    const apart = heat.apart.length > 0 && column >= 0 ? `; ${heat.apart_title}: ${label(heat.unit, heat.apart[column])}` : "";
    return `${panel.x.title} ${label(panel.x.unit, heat.x_edges[column])} to ${label(panel.x.unit, heat.x_edges[column + 1])}, ` +
      `${panel.y.title} ${place}: ${label(heat.unit, cell)} ${heat.title}${apart}`;
  };

  const heatPlot = (panel, sync, readout) => {
    const table = new Map();
    for (const [row, first, ...cells] of panel.heat.cells)
      cells.forEach((cell, i) => table.set(row + "," + (first + i), cell));
    const ends = (key) => panel[key].range.map((end) => toScale(end, panel[key].log));
    const scale = (key) => ({time: false, range: (u, low, high) => (low == null || low === high ? ends(key) : [low, high])});
    return {
      options: {
        ...common(panel, 420, sync), legend: {show: false}, scales: {x: scale("x"), y: scale("y")},
        series: [{}, {stroke: "transparent", points: {show: false}}],
        hooks: {draw: [(u) => drawCells(u, panel)], setCursor: [(u) => { readout.textContent = readCell(u, panel, table); }]},
      },
      data: [ends("x"), ends("y")],
    };
  };

  const drawAll = () => {
    main.textContent = "";
    const {x} = picture.panels[0] ?? {};
    const sync = picture.panels.length > 1 && picture.panels.every((panel) => panel.x.title === x.title && panel.x.unit === x.unit);
    window.plots = picture.panels.map((panel) => {
      main.appendChild(document.createElement("h2")).textContent = panel.title;
      if (panel.heat) main.appendChild(colourBar(panel.heat));
      const place = main.appendChild(document.createElement("div"));
      const readout = main.appendChild(document.createElement("p"));
      readout.className = "readout";
      const {options, data} = panel.heat ? heatPlot(panel, sync, readout) : seriesPlot(panel, sync);
      return new uPlot(options, data, place);
    });
  };

  drawAll();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  addEventListener("resize", () => window.plots.forEach((plot) => plot.setSize({width: width(), height: plot.height})));
})();
