// Builds the page from the report: the parts in their order. Draws plots again when the window or the colours change.
"use strict";
(async () => {
  const {el} = cmt.elements;
  const page = document.getElementById("page");
  const plots = [];

  const titles = {
    memory: "Memory over time", code: "Which code allocates", sizes: "Sizes and lifetimes", addresses: "Address space",
    pages: "Who holds the pages", replay: "On other allocators", watch: "Seen from outside",
  };
  const followsSpan = ["memory", "code"];
  const section = (id, ...children) => el("section", {id, "aria-labelledby": `${id}-title`, tabindex: "-1"},
    el("h2", {id: `${id}-title`}, titles[id], followsSpan.includes(id) ? null : el("small", {}, " of the whole trace")), children);
  const reveal = (part) => {
    const target = document.getElementById(part) ?? document.getElementById("code");
    target.scrollIntoView({behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth"});
    target.focus({preventScroll: true});
  };

  /// Returns the place of a panel. The panel is drawn later, when the page has its layout.
  const plotted = (panel, height) => {
    if (!panel) return null;
    const place = el("div", {class: "chart"});
    plots.push({place, panel, height});
    return place;
  };
  const drawPlot = (one) => {
    one.place.textContent = "";
    one.plot = cmt.panels.drawPanel(one.panel, one.place, {width: Math.max(280, one.place.clientWidth), height: one.height});
  };

  /// Returns a plot with tables at its side, or the one of the two that exists.
  const beside = (plot, tables) => {
    const there = tables.filter(Boolean);
    if (!plot || there.length === 0) return [plot, there];
    return [el("div", {class: "beside"}, plot, el("div", {class: "tables"}, there))];
  };

  const optionalParts = (report, axis) => {
    const {parts} = cmt;
    const sections = [];
    // A part made of another tool's report may be of a form that this page does not know: the others stay.
    const add = (id, wide, make) => {
      let children;
      try {
        children = [make()].flat(2).filter(Boolean);
      } catch (error) {
        children = [el("p", {class: "lacking"}, `This part cannot be shown: ${error.message}`)];
      }
      if (children.length === 0) return;
      const made = section(id, ...children);
      if (wide) made.classList.add("wide");
      sections.push(made);
    };
    add("sizes", false, () => plotted(parts.sizesPanel(report), 400));
    add("addresses", false, () => plotted(parts.addressPanel(report, axis), 400));
    add("pages", true, () => beside(plotted(parts.pagesPanel(report, axis), 300), parts.holderTables(report)));
    add("replay", true, () => beside(plotted(parts.replayPanel(report, axis), 300), [parts.replayTable(report), ...parts.replayWords(report)]));
    add("watch", true, () => [parts.watchNote(report)].concat(beside(plotted(parts.watchPanel(report), 260), [parts.watchTable(report)]), [plotted(parts.watchPartsPanel(report), 300)]));
    // One narrow part alone would leave half of its row empty.
    const narrow = sections.filter(({classList}) => !classList.contains("wide"));
    if (narrow.length === 1) narrow[0].classList.add("wide");
    return sections;
  };

  /// Stays at the top: links to the parts, and the span.
  const bar = (model, state, axis, ids) => {
    const words = el("span", {class: "span", "aria-live": "polite"});
    const whole = el("button", {type: "button", onclick: () => state.set({span: state.whole})}, "Whole trace");
    state.listen(({span: [i, j]}) => {
      const {allocated_bytes: allocated, live_bytes: live} = model.report.moments;
      const growth = live[j] - live[i];
      words.textContent = `${axis.words(i)} to ${axis.words(j)}: ${cmt.numbers.label("bytes", allocated[j] - allocated[i])} allocated, ` +
        `${growth > 0 ? "+" : ""}${cmt.numbers.label("bytes", growth)} live`;
      whole.disabled = model.isWhole([i, j]);
    });
    const links = ids.map((id) => el("a", {href: "#" + id, onclick: (event) => { event.preventDefault(); reveal(id); }}, titles[id]));
    return el("nav", {"aria-label": "parts of the report"}, links, el("span", {class: "chosen"}, words, whole, cmt.theme.choice(), cmt.keys.obey(state, model.report.has_stacks !== false)));
  };

  const build = (report) => {
    if (report.has_stacks === false) titles.code = "Which sizes are allocated";
    const model = new cmt.model.Model(report);
    const opening = model.opening();
    const state = new cmt.State(model.last, model.measures.map(({key}) => key), opening.measure);
    const axis = new cmt.memory.TimeAxis(report);
    const hint = el("p", {class: "hint"}, "Drag over the curve, or move the two sliders, to choose a span; double-click for the whole trace.");
    const memoryPlace = el("div", {class: "chart"}, hint), codePlace = el("div");
    const lists = [cmt.parts.processTable(report), cmt.parts.threadTable(report)].filter(Boolean);
    const memorySection = section("memory",
      el("div", {class: lists.length > 0 ? "beside lists" : "alone"}, memoryPlace, lists.length > 0 ? el("div", {class: "tables"}, lists) : null));
    memorySection.classList.add("wide");
    const rule = el("p", {class: "hint"}, opening.rule);  // while it is what the graph shows
    state.listen(({measure, span}) => { rule.style.visibility = measure === state.first && model.isWhole(span) ? "" : "hidden"; });
    const codeSection = section("code", rule, cmt.parts.stacksHint(report) ?? "", codePlace);
    codeSection.classList.add("wide");
    const sections = [memorySection, codeSection, ...optionalParts(report, axis)];
    page.replaceChildren(
      el("div", {class: "head"}, cmt.parts.header(report), el("div", {class: "found-list"}, cmt.parts.findings(report, model, state, reveal), cmt.parts.wrapperHint(report, model) ?? "")),
      bar(model, state, axis, sections.map(({id}) => id)),
      el("div", {class: "parts"}, sections), cmt.keys.maker());
    const memory = new cmt.memory.Memory(memoryPlace, model, state);
    const code = model.measures.length > 0 ? new cmt.code.Code(codePlace, model, state, axis) : null;
    if (!code) codePlace.append(el("p", {class: "hint"}, "The report has no allocations."));
    page.removeAttribute("aria-busy");
    performance.mark("drawn");

    requestAnimationFrame(() => setTimeout(() => {
      plots.forEach(drawPlot);
      performance.mark("complete");
      page.dataset.ready = "true";
    }));
    addEventListener("themechange", () => {
      memory.draw();
      code?.redraw();
      plots.forEach(drawPlot);
    });
    let pending = 0;
    addEventListener("resize", () => {
      cancelAnimationFrame(pending);
      pending = requestAnimationFrame(() => {
        memory.resize();
        code?.resize();
        for (const one of plots) one.plot?.setSize({width: Math.max(280, one.place.clientWidth), height: one.height});
      });
    });
    Object.assign(cmt, {shown: {model, state, memory, code, plots}});
  };

  try {
    build(await cmt.model.read("report"));
  } catch (error) {
    page.replaceChildren(el("p", {class: "lacking"}, `This page's report cannot be read: ${error.message}`));
    throw error;
  }
})();
