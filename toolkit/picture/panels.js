// Draws panels with uPlot: axes with series or a map between them (page.cpp describes their JSON). The colours are those
// of the SVG's style sheet, as the browser computes them, so that light and dark need no second list.
"use strict";
(() => {
  const {label, toScale, fromScale, ticksOf} = cmt.numbers;
  const levels = 12;
  const margin = {size: 54, gap: 5};  // of the bars beside a map, and the row above it, as svg_heat.cpp has them
  const apart = {size: 12, gap: 6};

  let probe = null;
  let looks = new Map();
  /// A property of a class of the style sheet.
  const look = (name, property) => {
    if (probe == null) {
      const svg = document.body.appendChild(document.createElementNS("http://www.w3.org/2000/svg", "svg"));
      svg.setAttribute("class", "looks");
      svg.setAttribute("aria-hidden", "true");
      probe = svg.appendChild(document.createElementNS("http://www.w3.org/2000/svg", "path"));
    }
    const key = name + " " + property;
    if (!looks.has(key)) {
      probe.setAttribute("class", name);
      looks.set(key, getComputedStyle(probe)[property]);
    }
    return looks.get(key);
  };
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { looks = new Map(); });
  addEventListener("themechange", () => { looks = new Map(); });  // of cmtreport/page/theme.js

  const font = "11px system-ui, sans-serif";
  const rightEdge = 16;
  /// The pixels that the labels of a vertical axis need.
  const roomOf = (axis) => (axis.ticks.length > 0 ? Math.max(...axis.ticks.map(([, text]) => text.length)) * 7 + 26 : 68);
  /// The pixels that a panel needs for its labels, with the title of its axis and of a row apart.
  const roomOfPanel = ({y, heat}) => Math.max(roomOf(y), heat?.apart.length > 0 ? 80 : 0) + (y.title ? 20 : 0);

  const uplotAxis = (axis, side) => {
    const distance = side === 2 ? 80 : 34;
    const now = (u, low, high) => ticksOf(axis, low, high, (side === 2 ? u.bbox.width : u.bbox.height) / devicePixelRatio, distance);
    const ink = getComputedStyle(document.body).color;
    return {
      side, font, labelFont: "12px system-ui, sans-serif", label: axis.title || undefined, labelSize: axis.title ? 20 : 0,
      size: side === 2 ? 34 : (axis.room ?? roomOf(axis)), stroke: ink, grid: {stroke: look("grid", "stroke"), width: 1},
      ticks: {stroke: look("axis", "stroke"), width: 1},
      splits: (u, index, low, high) => now(u, low, high).map(([at]) => at),
      values: (u, splits) => {
        const scale = u.scales[side === 2 ? "x" : "y"];
        const labels = new Map(now(u, scale.min, scale.max));
        return splits.map((at) => labels.get(at) ?? "");
      },
    };
  };

  const common = (panel, {width, height, sync, room}) => ({
    width, height,
    axes: [uplotAxis(panel.x, 2), uplotAxis({...panel.y, room: (room ?? roomOfPanel(panel)) - (panel.y.title ? 20 : 0)}, 3)],
    cursor: {drag: {x: true, y: !sync, uni: 20}, points: {show: panel.heat == null}, ...(sync ? {sync: {key: sync}} : {})},
  });

  /// The crosses and names of points.
  const drawPoints = (u, panel, all) => {
    const {ctx, bbox} = u, scale = devicePixelRatio;
    ctx.save();
    all.forEach((one) => {
      if (one.form !== "point") return;
      ctx.strokeStyle = look("l" + one.look, "stroke");
      ctx.lineWidth = 1.6 * scale;
      one.x.forEach((at, i) => {
        const x = u.valToPos(at, "x", true), y = u.valToPos(one.y[i], "y", true);
        const within = one.within[i];
        if (within) {
          const [left, right] = [within[0], within[1]].map((end) => u.valToPos(end, "x", true));
          const [low, high] = [within[2], within[3]].map((end) => u.valToPos(end, "y", true));
          clipped(ctx, bbox.left, bbox.top, bbox.width, bbox.height, () => {
            ctx.beginPath();
            ctx.moveTo(left, y);
            ctx.lineTo(right, y);
            ctx.moveTo(x, low);
            ctx.lineTo(x, high);
            ctx.stroke();
          });
        }
        const turned = x > bbox.left + bbox.width * 0.8;
        words(ctx, one.name, x + (turned ? -8 : 8) * scale, y - 10 * scale, turned ? "right" : "left");
      });
    });
    ctx.restore();
  };

  const isBand = ({form}) => form.endsWith("band");

  /// The place of a point, such as "70 %, 104 %", wherever the pointer is.
  const pointWords = ({x, y}, one) => (one.x.length === 0 ? "–" : `${label(x.unit, fromScale(one.x[0], x.log))}, ${label(y.unit, fromScale(one.y[0], y.log))}`);

  /// The number of a series at an index, or the last one before it, since series differ in their points. A series that has
  /// ended has none.
  const knownAt = (numbers, at) => {
    let before = at, after = at;
    while (before > 0 && numbers[before] == null) --before;
    while (after < numbers.length && numbers[after] == null) ++after;
    return after < numbers.length || at - before <= 2 ? numbers[before] : null;
  };

  /// Lines and bands. uPlot wants one x for all, and bands as their tops; it draws in order, and lines lie above.
  const seriesPlot = (panel, settings) => {
    const onX = (at) => toScale(at, panel.x.log), onY = (at) => (at == null ? null : toScale(at, panel.y.log));
    const all = panel.series.map((one, i) => ({
      ...one, look: one.look ?? i % 8, x: one.x.map(onX), y: one.y.map(onY),
      within: one.within?.map((ends) => ends && [onX(ends[0]), onX(ends[1]), onY(ends[2]), onY(ends[3])]),
    }))
      .sort((a, b) => isBand(b) - isBand(a));
    const tables = all.map((one) => [one.x, one.y]);
    const raw = tables.length > 0 ? uPlot.join(tables, tables.map((table) => table.map(() => 2))) : [[]];
    const data = [raw[0]];
    let below = null;
    all.forEach((one, i) => {
      const y = raw[i + 1];
      if (!isBand(one)) return data.push(y);
      const under = below;
      below = y.map((value, j) => (value == null ? null : value + (under?.[j] ?? 0)));
      data.push(below);
    });
    // Without a pointer the legend has the numbers of the panel's moment, or else of the last one.
    const after = panel.rest == null ? -1 : data[0].findIndex((at) => at >= onX(panel.rest));
    const rest = after < 0 ? data[0].length - 1 : after;
    const bands = [];
    const series = all.map((one, i) => {
      const band = isBand(one), isStep = one.form.startsWith("step");
      const previous = all.slice(0, i).findLastIndex(isBand);
      const fill = one.colour ?? look("f" + one.look, "fill");
      if (band && previous >= 0) bands.push({series: [i + 1, previous + 1]});
      return {
        label: one.name, stroke: band ? (isStep ? look("ground", "fill") : fill) : look("l" + one.look, "stroke"), width: band ? 1 : 1.6, spanGaps: true,
        fill: band ? fill : undefined,
        points: {show: all[0].x.length < 2, ...(one.form === "point" ? {size: 9, fill} : {})},
        paths: isStep ? uPlot.paths.stepped({align: 1}) : undefined,
        value: (u, value, index, at) => one.form === "point" ? pointWords(panel, one) : label(panel.y.unit, knownAt(raw[i + 1], at ?? rest) == null ? null : fromScale(knownAt(raw[i + 1], at ?? rest), panel.y.log)),
      };
    });
    const hasPoints = all.some((one) => one.form === "point");
    const extent = panel.x.range.map(onX), rangeOfY = panel.y.range.map(onY), ends = [data[0][0], data[0].at(-1)];
    const isAll = (low, high) => low == null || low === high || (low === ends[0] && high === ends[1]);
    return {
      options: {
        ...common(panel, settings), bands, padding: [8, rightEdge, 0, 0],
        scales: {
          x: {time: false, range: (u, low, high) => (isAll(low, high) ? extent : [low, high])},
          y: {range: (u, low, high) => (hasPoints ? rangeOfY : [0, high > 0 ? high * 1.05 : rangeOfY[1]])},
        },
        ...(hasPoints ? {hooks: {draw: [(u) => drawPoints(u, panel, all)]}} : {}),
        series: [{label: panel.x.name ?? panel.x.title, class: panel.x.name ?? panel.x.title ? undefined : "untitled", value: (u, value) => label(panel.x.unit, hasPoints ? null : fromScale(value ?? data[0][rest], panel.x.log))}, ...series],
      },
      data,
    };
  };

  const heatColours = () => Array.from({length: levels}, (_, level) => look("h" + level, "fill"));
  const level = (heat, cell) => {
    const [low, high] = heat.colours.map((end) => toScale(end, heat.log));
    return Math.min(levels - 1, Math.max(0, Math.floor(((toScale(cell, heat.log) - low) / (high - low)) * levels)));
  };

  /// "blocks  1 ▇▇▇▇▇▇▇▇▇▇▇▇ 380 k". Where rows have shades of their own, the bar has a stripe for each of these.
  const colourBar = (heat) => {
    const bar = document.createElement("p");
    bar.className = "colours";
    const [low, high] = heat.colours.map((end) => label(heat.unit, end));
    bar.append(heat.title + (heat.log ? ", logarithmic: " : ": "), low + " ");
    const scales = [...new Map((heat.row_shades ?? [null]).map((shades) => shades ?? heatColours()).map((shades) => [shades.join(), shades])).values()].reverse();
    for (let level = 0; level < levels; ++level) {
      const {style} = bar.appendChild(document.createElement("span"));
      style.background = scales.length === 1 ? scales[0][level] : `linear-gradient(${scales.map((shades, i) => `${shades[level]} ${(100 * i) / scales.length}% ${(100 * (i + 1)) / scales.length}%`)})`;
      style.height = `${Math.max(11, 4 * scales.length)}px`;
    }
    bar.append(" " + high);
    return bar;
  };

  /// The sums of a map's columns, with the row apart, and of its rows.
  const marginsOf = (heat) => {
    const columns = new Float64Array(heat.x_edges.length - 1), rows = new Float64Array(heat.y_edges.length - 1);
    for (const [row, first, ...cells] of heat.cells) {
      cells.forEach((cell, i) => {
        columns[first + i] += cell;
        rows[row] += cell;
      });
    }
    heat.apart.forEach((cell, column) => { columns[column] += cell; });
    return {columns, rows};
  };

  const words = (ctx, text, x, y, align, ink) => {
    ctx.fillStyle = ink ?? getComputedStyle(document.body).color;
    ctx.font = font.replace("11px", 11 * devicePixelRatio + "px");
    ctx.textAlign = align;
    ctx.textBaseline = "middle";
    ctx.fillText(text, x, y);
  };

  /// The row above the map that is not one of its rows.
  const drawApart = (u, heat, colours, xs) => {
    const scale = devicePixelRatio, {ctx, bbox} = u;
    const bottom = bbox.top - apart.gap * scale, top = bottom - apart.size * scale;
    heat.apart.forEach((cell, column) => {
      if (!(cell > 0)) return;
      ctx.fillStyle = colours[level(heat, cell)];
      ctx.fillRect(xs[column], top, Math.max(1, xs[column + 1] - xs[column]), bottom - top);
    });
  };

  const clipped = (ctx, x, y, width, height, draw) => {
    ctx.save();
    ctx.beginPath();
    ctx.rect(x, y, width, height);
    ctx.clip();
    draw();
    ctx.restore();
  };

  /// Bars of the sums above and beside the map, each with its greatest sum as a number.
  const drawMargins = (u, heat, sums, xs, ys) => {
    const scale = devicePixelRatio, {ctx, bbox} = u;
    const size = margin.size * scale, right = bbox.left + bbox.width + margin.gap * scale;
    const bottom = bbox.top - (margin.gap + (heat.apart.length > 0 ? apart.gap + apart.size : 0)) * scale;
    const [mostOfColumn, mostOfRow] = [Math.max(...sums.columns), Math.max(...sums.rows)];
    ctx.fillStyle = look("bar", "fill");
    clipped(ctx, bbox.left, bottom - size, bbox.width, size, () => sums.columns.forEach((sum, i) => {
      const height = mostOfColumn > 0 ? (size * sum) / mostOfColumn : 0;
      ctx.fillRect(xs[i], bottom - height, Math.max(1, xs[i + 1] - xs[i] - scale), height);
    }));
    clipped(ctx, right, bbox.top, size, bbox.height, () => sums.rows.forEach((sum, i) => {
      const width = mostOfRow > 0 ? (size * sum) / mostOfRow : 0;
      ctx.fillRect(right, ys[i + 1], width, Math.max(1, ys[i] - ys[i + 1] - scale));
    }));
    words(ctx, label(heat.unit, mostOfColumn), bbox.left - 8 * scale, bottom - size + 5 * scale, "right");
    words(ctx, heat.title, bbox.left - 8 * scale, bottom - 6 * scale, "right");
    words(ctx, label(heat.unit, mostOfRow), right + size, bbox.top + bbox.height + 12 * scale, "right");
  };

  /// Draws the visible cells.
  const drawMap = (u, panel, sums) => {
    const {heat} = panel;
    const colours = heatColours();
    const [xs, ys] = [[heat.x_edges, "x"], [heat.y_edges, "y"]]
      .map(([edges, key]) => edges.map((edge) => Math.round(u.valToPos(toScale(edge, panel[key].log), key, true))));
    const {ctx, bbox} = u;
    clipped(ctx, bbox.left, bbox.top, bbox.width, bbox.height, () => {
      for (const [row, first, ...cells] of heat.cells) {
        cells.forEach((cell, i) => {
          const x = xs[first + i], y = ys[row + 1];
          ctx.fillStyle = (heat.row_shades?.[row] ?? colours)[level(heat, cell)];
          const width = xs[first + i + 1] - x, height = ys[row] - y;
          ctx.fillRect(x, y, Math.max(1, width), Math.max(1, height));
          if (heat.numbers && width >= 40 * devicePixelRatio && height >= 14 * devicePixelRatio) {
            const isBest = heat.unit === "share" && cell < 0.0005, ink = look(level(heat, cell) < levels / 2 ? "n0" : "n1", "fill");
            words(ctx, isBest ? "best" : label(heat.unit, cell), x + width / 2, y + height / 2, "center", ink);
          }
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
    });
    ctx.save();
    if (heat.apart.length > 0) {
      clipped(ctx, bbox.left, 0, bbox.width, bbox.top, () => drawApart(u, heat, colours, xs));
      words(ctx, heat.apart_title, bbox.left - 8 * devicePixelRatio, bbox.top - (apart.gap + apart.size / 2) * devicePixelRatio, "right");
    }
    if (heat.marginals) drawMargins(u, heat, sums, xs, ys);
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
    if (heat.row_names?.length > 0) {
      if (row < 0 || column < 0) return "";
      const known = table.has(row + "," + column) || heat.gaps_are_zero ? `${label(heat.unit, cell)} ${heat.title}` : "not known";
      return `${heat.row_names[row]}, ${heat.column_names[column]}: ${known}`;
    }
    const above = heat.apart.length > 0 && column >= 0 ? `; ${heat.apart_title}: ${label(heat.unit, heat.apart[column])}` : "";
    return `${panel.x.title} ${label(panel.x.unit, heat.x_edges[column])} to ${label(panel.x.unit, heat.x_edges[column + 1])}, ` +
      `${panel.y.title} ${place}: ${label(heat.unit, cell)} ${heat.title}${above}`;
  };

  /// A click on a row shows its panel of details.
  const openDetails = (u, {y, heat}, {onDetails}) => {
    if (!(heat.row_details?.length > 0) || onDetails == null) return;
    u.over.style.cursor = "pointer";
    u.over.addEventListener("click", () => {
      const row = findEdge(heat.y_edges, fromScale(u.posToVal(u.cursor.top, "y"), y.log));
      if (row >= 0) onDetails(heat.row_details[row]);
    });
  };

  const heatPlot = (panel, settings) => {
    const {heat} = panel;
    const table = new Map();
    for (const [row, first, ...cells] of heat.cells) cells.forEach((cell, i) => table.set(row + "," + (first + i), cell));
    const sums = heat.marginals ? marginsOf(heat) : null;
    const ends = (key) => panel[key].range.map((end) => toScale(end, panel[key].log));
    const scale = (key) => ({time: false, range: (u, low, high) => (low == null || low === high ? ends(key) : [low, high])});
    const above = (sums ? margin.size + margin.gap : 0) + (heat.apart.length > 0 ? apart.size + apart.gap : 0);
    return {
      options: {
        ...common(panel, settings), legend: {show: false}, scales: {x: scale("x"), y: scale("y")},
        padding: [Math.max(8, above), rightEdge + (sums ? margin.size + margin.gap : 0), 0, 0],
        series: [{}, {stroke: "transparent", points: {show: false}}],
        hooks: {
          ready: [(u) => openDetails(u, panel, settings)],
          draw: [(u) => drawMap(u, panel, sums)],
          setCursor: [(u) => { settings.readout.textContent = readCell(u, panel, table); }],
        },
      },
      data: [ends("x"), ends("y")],
    };
  };

  /// Arrow keys move the cursor, whose numbers the legend or the readout shows; + and − zoom, Escape shows all again.
  const obeyKeys = (u, place, {x}) => {
    const whole = x.range.map((end) => toScale(end, x.log));
    place.tabIndex = 0;
    place.addEventListener("keydown", (event) => {
      const width = u.over.clientWidth, height = u.over.clientHeight;
      const {left, top} = {left: Math.max(0, u.cursor.left ?? 0), top: Math.max(0, u.cursor.top ?? 0)};
      const step = event.shiftKey ? 40 : 8;
      const moves = {ArrowLeft: [-step, 0], ArrowRight: [step, 0], ArrowUp: [0, -step], ArrowDown: [0, step]};
      const factors = {"+": 0.5, "=": 0.5, "-": 2};
      if (moves[event.key]) {
        const [x, y] = moves[event.key];
        u.setCursor({left: Math.min(width - 1, Math.max(0, left + x)), top: Math.min(height - 1, Math.max(0, top + y))});
      } else if (factors[event.key]) {
        const at = u.posToVal(left, "x"), half = ((u.scales.x.max - u.scales.x.min) * factors[event.key]) / 2;
        u.setScale("x", {min: Math.max(whole[0], at - half), max: Math.min(whole[1], at + half)});
      } else if (event.key === "Escape") {
        u.setScale("x", {min: whole[0], max: whole[1]});
      } else {
        return;
      }
      event.preventDefault();
    });
  };

  /// Draws a panel into an element: the plot, and for a map its colours and its readout. settings:
  ///
  ///     width, height   of the plot, in pixels
  ///     room            of the vertical axis, in pixels
  ///     sync            a name that panels with one cursor share
  ///     options         change those of uPlot
  const drawPanel = (panel, place, settings) => {
    const readout = document.createElement("p");
    readout.className = "readout";
    if (panel.heat) place.appendChild(colourBar(panel.heat));
    const frame = place.appendChild(document.createElement("div"));
    frame.className = "plot";
    frame.setAttribute("role", "group");
    frame.setAttribute("aria-label", panel.title + ": arrow keys move the cursor, + and - zoom, Escape shows all");
    if (panel.heat) place.appendChild(readout);
    const {options, data} = panel.heat ? heatPlot(panel, {...settings, readout}) : seriesPlot(panel, settings);
    const plot = new uPlot({...options, ...settings.options?.(options)}, data, frame);
    obeyKeys(plot, frame, panel);
    return plot;
  };

  cmt.panels = {drawPanel, roomOfPanel, look};
})();
