// Memory and threads over time, in which a span is chosen: by dragging, by two sliders, or by a finding's link.
"use strict";
(() => {
  const {el, plain, shorten} = cmt.elements;
  const {label} = cmt.numbers;

  /// The axis: positions of moments, and words for them. Processes without a clock in common share none but their events.
  class TimeAxis {
    constructor({axis, moments}) {
      this.timed = axis === "time";
      this.at = moments.position;
      if (axis === "share") this.at = this.at.map((position) => position / Math.max(1, moments.position.at(-1)));
      const [title, unit] = {time: ["time", "ns"], events: ["events", "count"], share: ["of each process's events", "share"]}[axis];
      this.panel = {title, unit, log: false, ticks: [], breaks: [], range: [this.at[0], this.at.at(-1)]};
    }

    words(moment) {
      const at = this.at[moment];
      if (this.timed && at === 0) return "0";
      if (this.timed) return this.at.at(-1) < 1e9 ? label("ns", at) : (at / 1e9).toFixed(3) + " s";
      return this.panel.unit === "share" ? label("share", at) : "event " + label("count", at);
    }

    /// The position of a fraction of a moment.
    between(moment) {
      const below = Math.min(this.at.length - 1, Math.floor(moment)), above = Math.min(this.at.length - 1, below + 1);
      return this.at[below] + (this.at[above] - this.at[below]) * (moment - below);
    }

    /// The moment next to a position.
    nearest(position) {
      const above = this.at.findIndex((at) => at >= position);
      if (above < 0) return this.at.length - 1;
      return above > 0 && position - this.at[above - 1] < this.at[above] - position ? above - 1 : above;
    }

    /// The position of a sample in another part of the report.
    of(sample) { return this.timed ? sample.time_ns : sample.event; }
  }

  /// The live bytes of the largest functions on each other, in their colours of the graph, and the live bytes of all. Resident
  /// memory of one process is drawn where it was sampled. The line of all live bytes has these points too, since those of the
  /// next moment may be others. The samples of several processes differ in time, and have a line of their own.
  const seriesOf = (model, axis, colours) => {
    const {moments, processes = []} = model.report;
    const {resident_bytes: resident, resident_live_bytes: live, resident_position: at} = moments;
    const known = axis.at.map((_, i) => i).filter((i) => resident?.[i] != null);
    const own = at ? known.filter((i) => at[i] !== at[i - 1]) : known;
    const samples = own.map((i) => ({x: at ? at[i] : axis.at[i], resident: resident[i], live: live[i]}));
    const points = axis.at.map((x, i) => ({x, live: moments.live_bytes[i]})).concat(at ? samples : []).sort((a, b) => a.x - b.x);
    const {share: least = 0} = model.report.folded ?? {};
    const others = "other functions" + (least > 0 ? `, and calls with less than ${+(100 * least).toPrecision(2)} % of every measure` : "");
    const series = model.liveByFunction().map(({id, values}) => ({
      name: id < 0 ? others : shorten(model.functions[id].short, 40), form: "band", x: axis.at, y: [...values], colour: colours.ofFunction(id),
    }));
    series.push({name: "all live bytes", form: "line", x: points.map(({x}) => x), y: points.map((point) => point.live), look: 2});
    if (processes.length < 2) series.push({name: "most live in each interval", form: "line", x: axis.at, y: moments.peak_bytes, look: 6});
    const add = (name, key, look) => series.push({name, form: "line", x: samples.map(({x}) => x), y: samples.map((sample) => sample[key]), look});
    if (samples.length > 0) add(at ? "resident" : "resident, each process at its last sample", "resident", 3);
    if (samples.length > 0 && !at) add("live at these samples", "live", 6);
    return series;
  };

  /// Lines and names of marks. The names are above the plot, so that they cover no curve. A name that has no room on the
  /// right of its line is on the left or a row above, or left out.
  const markRows = 3, markHeight = 12;
  const drawMarks = (u, marks) => {
    const {ctx, bbox} = u, scale = devicePixelRatio;
    ctx.save();
    ctx.font = `${11 * scale}px system-ui, sans-serif`;
    ctx.textAlign = "left";
    ctx.textBaseline = "alphabetic";
    ctx.strokeStyle = cmt.panels.look("axis", "stroke");
    const {color: ink, backgroundColor: ground} = getComputedStyle(document.body);
    ctx.setLineDash([3 * scale, 3 * scale]);
    const rows = Array.from({length: markRows}, () => []), right = bbox.left + bbox.width, isFree = (row, from, to) => from >= bbox.left && to <= right + 1 && row.every(([a, b]) => to <= a || from >= b);
    const names = [];
    for (const {at, text} of marks) {
      const x = Math.round(u.valToPos(at, "x", true)) + 0.5;
      if (x < bbox.left || x > right + 1) continue;
      const width = ctx.measureText(text).width + 8 * scale;
      const [row = 0, from] = rows.flatMap((_, i) => [[i, x], [i, x - width]]).find(([i, begin]) => isFree(rows[i], begin, begin + width)) ?? [];
      const top = bbox.top - markHeight * row * scale;
      ctx.beginPath();
      ctx.moveTo(x, top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
      if (from == null) continue;
      rows[row].push([from, from + width]);
      names.push({text, from, top, width});
    }
    for (const {text, from, top, width} of names) {
      ctx.fillStyle = ground;
      ctx.fillRect(from + 2 * scale, top - markHeight * scale, width - 4 * scale, markHeight * scale);
      ctx.fillStyle = ink;
      ctx.fillText(text, from + 4 * scale, top - 3 * scale);
    }
    ctx.restore();
  };

  const apartFrom = 5;

  class Memory {
    constructor(place, model, state) {
      Object.assign(this, {place, model, state, colours: new cmt.Colours(model)});
      this.axis = new TimeAxis(model.report);
      this.marks = (model.report.marks ?? []).map(({moment, label: text}) => ({at: this.axis.between(moment), text: plain(text)}));
      const {peak} = model.report;
      if (peak?.moment > 0) this.marks.push({at: this.axis.at[peak.moment], text: "peak"});
      this.marks.sort((a, b) => a.at - b.at);
      const fileName = () => `${plain(model.report.name || "report")}-memory`;
      place.append(el("div", {class: "saves"},
        cmt.export.button("svg", fileName, () => cmt.export.ofPlot(this.plots[0].plot, this.plots[0].panel, `${plain(model.report.name ?? "")}: memory over time`)),
        cmt.export.button("csv", fileName, () => cmt.export.csv(cmt.export.plotRows(this.plots[0].panel.x, seriesOf(model, this.axis, this.colours))))));
      this.plotPlace = place.appendChild(el("div"));
      this.plots = [];
      this.sliders = ["from", "to"].map((end, side) => el("input", {
        type: "range", min: 0, max: model.last, step: 1, class: "end", "aria-label": `the span's ${side === 0 ? "start" : "end"}`,
        oninput: (event) => this.slide(side, Number(event.target.value)),
      }));
      this.sliderRow = place.appendChild(el("div", {class: "ends"}, this.sliders));
      this.otherPlaces = place.appendChild(el("div"));
      this.draw();
      state.listen(({span}, before) => { if (before?.span !== span) this.show(span); });
    }

    /// Moves one end of the span; the other gives way.
    slide(side, moment) {
      const [i, j] = this.state.values.span;
      const span = side === 0 ? [Math.min(moment, this.model.last - 1), Math.max(j, moment + 1)] : [Math.min(i, moment - 1), Math.max(moment, 1)];
      this.state.set({span: [Math.max(0, span[0]), Math.min(this.model.last, span[1])]});
    }

    /// The panels: of memory, and of threads where there are several. Resident memory has a panel of its own where it is so
    /// large that live bytes would be a line at the bottom.
    panels() {
      const all = seriesOf(this.model, this.axis, this.colours);
      const most = (list) => Math.max(1, ...list.flatMap(({y}) => [y.reduce((a, b) => Math.max(a, b ?? 0), 0)]));
      const isResident = ({name}) => name.startsWith("resident");
      const [resident, live] = [all.filter(isResident), all.filter((one) => !isResident(one))];
      const isApart = most(resident) > apartFrom * most(live);
      const panel = (title, series, height, x = this.axis.panel) => ({
        title, x, y: {title: "bytes", unit: "bytes", log: false, ticks: [], breaks: [], range: [0, most(series)]},
        series, heat: null, height, rest: this.axis.at[this.model.opening().moment],
      });
      return [panel("Memory over time", isApart ? live : all, 260), isApart ? panel("Resident memory over time", resident, 160, {...this.axis.panel, title: "", name: this.axis.panel.title}) : null, cmt.threads.panelOf(this.model.report, this.axis)].filter(Boolean);
    }

    draw() {
      this.colours.readScheme();
      const panels = this.panels(), places = [this.plotPlace, ...panels.slice(1).map(() => el("div"))];
      this.otherPlaces.replaceChildren(...places.slice(1));
      const room = Math.max(...panels.map(cmt.panels.roomOfPanel));
      this.plots = panels.map((panel, i) => {
        places[i].textContent = "";
        return {panel, plot: cmt.panels.drawPanel(panel, places[i], {room, width: this.width(), height: panel.height, options: (options) => this.optionsOf(panel, options)})};
      });
      this.placeSliders();
      this.showSelection();
    }

    width() { return Math.max(320, this.place.clientWidth); }

    /// Dragging chooses a span, a double click the whole.
    optionsOf(panel, {cursor, hooks = {}, padding}) {
      const draw = panel.heat ? [] : [(u) => drawMarks(u, this.marks), () => this.placeSliders()];
      return {
        padding: panel.heat ? padding : [padding[0] + markHeight * Math.min(markRows, this.marks.length), ...padding.slice(1)],
        hooks: {...hooks, draw: [...(hooks.draw ?? []), ...draw, () => this.showSelection()], setSelect: [(u) => this.dragged(u)]},
        cursor: {...cursor, drag: {x: true, y: false, setScale: false, dist: 4}, bind: {dblclick: () => () => this.state.set({span: this.state.whole})}},
      };
    }

    /// Below the plot's own width, which uPlot settles when it draws.
    placeSliders() {
      if (this.plots.length === 0) return;
      const over = this.plots[0].plot.over.getBoundingClientRect(), row = this.sliderRow.getBoundingClientRect();
      this.sliderRow.style.paddingLeft = Math.max(0, over.left - row.left) + "px";
      this.sliderRow.style.paddingRight = Math.max(0, row.right - over.right) + "px";
    }

    /// The moments next to the ends of what was dragged over.
    dragged(u) {
      const {left, width} = u.select;
      if (this.showing || width < 2) return;
      const [low, high] = [left, left + width].map((at) => this.axis.nearest(u.posToVal(at, "x")));
      const i = Math.min(low, this.model.last - 1);
      this.state.set({span: [i, Math.max(i + 1, high)]});
    }

    showSelection() {
      const [i, j] = this.state.values.span, isWhole = this.model.isWhole([i, j]);
      for (const {plot: u} of this.plots) {
        const [left, right] = [i, j].map((moment) => u.valToPos(this.axis.at[moment], "x"));
        u.root.classList.toggle("has-span", !isWhole);
        this.showing = true;
        u.setSelect(isWhole ? {left: 0, top: 0, width: 0, height: 0} : {left, top: 0, width: right - left, height: u.over.clientHeight}, false);
        this.showing = false;
      }
    }

    show(span) {
      span.forEach((moment, side) => {
        this.sliders[side].value = moment;
        this.sliders[side].setAttribute("aria-valuetext", this.axis.words(moment));
      });
      this.showSelection();
    }

    resize() {
      for (const {panel, plot} of this.plots) plot.setSize({width: this.width(), height: panel.height});
      this.showSelection();
    }
  }

  cmt.memory = {Memory, TimeAxis};
})();
