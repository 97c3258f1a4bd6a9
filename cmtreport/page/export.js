// Saves as files: the graph and memory over time as SVG, tables and memory over time as CSV, as far as they are shown.
"use strict";
(() => {
  const {el} = cmt.elements;
  const {ticksOf} = cmt.numbers;
  const letter = 6.6;  // pixels of a letter of 12 pixels, at most in the mean

  const save = (name, type, text) => {
    const link = el("a", {href: URL.createObjectURL(new Blob([text], {type})), download: name.replace(/[^\w.+-]+/g, "_").slice(0, 80)});
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000);
  };
  /// A button that saves make(): a text.
  const button = (ending, nameOf, make) => el("button", {
    type: "button", class: "save", title: `save what is shown as ${ending.toUpperCase()}`,
    onclick: () => save(`${nameOf()}.${ending}`, ending === "svg" ? "image/svg+xml" : "text/csv", make()),
  }, ending.toUpperCase());

  const csvCell = (value) => (typeof value === "number" ? String(value) : value == null ? "" : `"${String(value).replaceAll('"', '""')}"`);
  const csv = (rows) => rows.map((row) => row.map(csvCell).join() + "\n").join("");

  const escaped = (text) => String(text).replace(/[&<>"]/g, (c) => ({"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"}[c]));
  const round = (number) => String(+number.toFixed(1));
  const element = (tag, attributes, text = "") => `<${tag}${Object.entries(attributes).map(([name, value]) => ` ${name}="${escaped(typeof value === "number" ? round(value) : value)}"`).join("")}>${text}</${tag}>\n`;
  const words = (x, y, text, more = {}) => element("text", {x, y, ...more}, escaped(text));
  const wrapped = (width, height, title, body) => {
    const {color, backgroundColor} = getComputedStyle(document.body);
    return `<svg xmlns="http://www.w3.org/2000/svg" width="${round(width)}" height="${round(height)}" font-family="system-ui,DejaVu Sans,sans-serif" font-size="12" fill="${color}">\n` +
      element("title", {}, escaped(title)) + element("rect", {width: "100%", height: "100%", fill: backgroundColor}) + words(8, 16, title, {"font-weight": 600}) + body + "</svg>\n";
  };

  /// The frames of a graph as it is laid out.
  const ofFlame = ({laid, up, rows, drawn, colours}, title) => {
    const above = 26, level = (drawn.height - 2) / rows, scale = drawn.width / (laid.top.duration || 1);
    let body = "";
    const visit = (frame) => {
      const x = frame.start * scale, width = Math.max(0.5, frame.duration * scale - 0.5), y = above + (up ? rows - 1 - frame.node.level : frame.node.level) * level;
      const room = Math.floor((width - 8) / letter);
      body += element("rect", {x, y, width, height: level - 1, fill: frame.color}, element("title", {}, escaped(frame.name)));
      if (room > 3) body += words(x + 4, y + level - 6, frame.name.length <= room ? frame.name : frame.name.slice(0, room - 1) + "…", {fill: colours.text});
      frame.children.forEach(visit);
    };
    visit(laid.top);
    return wrapped(drawn.width, above + drawn.height, title, body);
  };

  /// A plot of lines and bands with its axes and names, as far as it is zoomed.
  const ofPlot = (u, panel, title) => {
    const left = 84, above = 28, width = u.over.clientWidth, height = u.over.clientHeight, right = left + width, bottom = above + height;
    const places = {x: (value) => left + u.valToPos(value, "x"), y: (value) => above + u.valToPos(value, "y")};
    let body = element("clipPath", {id: "plot"}, element("rect", {x: left, y: above, width, height})), line = bottom + 56;
    for (const [at, text] of ticksOf(panel.y, u.scales.y.min, u.scales.y.max, height, 34))
      body += element("path", {d: `M${left} ${round(places.y(at))}H${right}`, stroke: "#8886"}) + words(left - 6, places.y(at) + 4, text, {"text-anchor": "end"});
    for (const [at, text] of ticksOf(panel.x, u.scales.x.min, u.scales.x.max, width, 80)) body += words(places.x(at), bottom + 16, text, {"text-anchor": "middle"});
    body += words(left + width / 2, bottom + 34, panel.x.title, {"text-anchor": "middle"});
    const shown = u.series.map((series, i) => ({series, i})).slice(1).filter(({series}) => series.show);
    const isBand = ({series}) => series.fill?.(u, 0) != null;
    // Bands from the highest on, each down to the axis; lines lie above.
    for (const one of [...shown.filter(isBand).reverse(), ...shown.filter((other) => !isBand(other))]) {
      const {series, i} = one, points = u.data[0].map((x, at) => [x, u.data[i][at]]).filter(([, y]) => y != null);
      if (points.length === 0) continue;
      const steps = points.map(([x, y]) => `${round(places.x(x))} ${round(places.y(y))}`).join("L");
      body += isBand(one) ? element("path", {d: `M${round(places.x(points[0][0]))} ${bottom}L${steps}V${bottom}Z`, fill: series.fill(u, i), "clip-path": "url(#plot)"})
        : element("path", {d: "M" + steps, fill: "none", stroke: series.stroke(u, i), "stroke-width": "1.6", "clip-path": "url(#plot)"});
    }
    for (const {series, i} of shown) {
      body += element("rect", {x: left, y: line - 9, width: 11, height: 11, fill: series.fill?.(u, i) ?? series.stroke(u, i)}) + words(left + 17, line, series.label);
      line += 18;
    }
    return wrapped(right + 20, line, title, body);
  };

  /// Each moment's numbers. A series that has no point there has an empty cell.
  const plotRows = (x, series) => {
    const at = [...new Set(series.flatMap((one) => one.x))].sort((a, b) => a - b);
    const columns = series.map((one) => new Map(one.x.map((position, i) => [position, one.y[i]])));
    return [[`${x.title} (${x.unit})`, ...series.map(({name}) => name)], ...at.map((position) => [position, ...columns.map((column) => column.get(position))])];
  };

  cmt.export = {button, csv, ofFlame, ofPlot, plotRows};
})();
