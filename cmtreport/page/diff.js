// Builds the page of a difference: the two traces, the largest changes, and the functions and sizes that changed.
"use strict";
(async () => {
  const {el, table, plain} = cmt.elements;
  const {label} = cmt.numbers;
  const {relative} = cmt.diff;
  const page = document.getElementById("page");
  const titles = {traces: "The two traces", code: "Which code has changed", sizes: "By size", lifetimes: "By lifetime"};
  const section = (id, ...children) => el("section", {id, "aria-labelledby": `${id}-title`, tabindex: "-1", class: id === "code" ? "wide" : null}, el("h2", {id: `${id}-title`}, titles[id]), children);
  const reveal = (part) => {
    const target = document.getElementById(part) ?? document.getElementById("code");
    target.scrollIntoView({behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth"});
    target.focus({preventScroll: true});
  };
  const signed = (unit, number) => (number > 0 ? "+" : "") + label(unit, number);

  const totals = ({total: {before, after}}) => table("", ["", "#before", "#after", "#change", ""], [
    ["allocated", "allocated_bytes", "bytes"], ["allocations", "allocated_blocks", "count"], ["live at the peak", "peak_bytes", "bytes"],
    ["live at the end", "leaked_bytes", "bytes"], ["temporary blocks", "temporary_blocks", "count"],
  ].map(([words, key, unit]) => [words, label(unit, before[key]), label(unit, after[key]), signed(unit, after[key] - before[key]), relative(before[key], after[key])]));

  const side = (words, {name, program, command, start, events, defects, truncated}) => {
    const lost = [truncated ? "breaks off" : "", defects > 0 ? `defects: ${label("count", defects)}` : ""].filter(Boolean);
    return el("div", {class: "side"}, el("h2", {}, `${words}: ${plain(name)}`),
      el("p", {class: "command", title: plain(command || program)}, plain(command || program)),
      el("p", {class: "facts"}, el("span", {}, `${label("count", events)} events`), start ? el("span", {}, plain(start)) : null, lost.length > 0 ? el("strong", {class: "lost"}, lost.join("; ")) : null));
  };

  const programsOf = ({before, after, name}) => (before.program && after.program
    ? before.program === after.program ? before.program : `${before.program} to ${after.program}` : name);

  const kinds = {more: "more", less: "less", new: "new", gone: "gone", lost: "not whole"};
  const findings = (report, model, state) => {
    return cmt.findings.cards(report.findings, (kind) => kinds[kind] ?? "", (finding) => {
      const id = model.functions.findIndex(({name}) => name === plain(finding.function));
      const changes = {find: "", only: false, focus: []};
      if (model.measures.some(({key}) => key === finding.measure)) changes.measure = finding.measure;
      if (finding.function && id >= 0) Object.assign(changes, {tree: "bottom-up", focus: [id], chosen: id, table: "callers"});
      state.set(changes);
      reveal(finding.part);
    });
  };

  /// Two bars, one for each trace, as long as their shares of the most.
  const bars = (before, after, most) => {
    const bar = (kind, value) => {
      const one = el("span", {class: kind});
      one.style.setProperty("--share", most > 0 ? value / most : 0);
      return one;
    };
    return el("span", {class: "pair", "aria-hidden": "true"}, bar("was", before), bar("is", after));
  };

  /// Rows of [words, before, after].
  const comparison = (first, unit, rows) => {
    const changed = rows.filter(([, before, after]) => before !== after);
    if (changed.length === 0) return el("p", {class: "hint"}, "No difference.");
    const most = Math.max(...rows.flatMap(([, before, after]) => [before, after]));
    return el("table", {class: "pairs"},
      el("thead", {}, el("tr", {}, [first, "before", "after", "change", ""].map((text, i) => el("th", {scope: "col", class: i > 0 && i < 4 ? "number" : null}, text)))),
      el("tbody", {}, rows.map(([words, before, after]) => el("tr", {}, el("td", {}, plain(words)), el("td", {class: "number"}, before === 0 ? "–" : label(unit, before)), el("td", {class: "number"}, after === 0 ? "–" : label(unit, after)),
        el("td", {class: "number " + (after > before ? "rise" : after < before ? "fall" : "")}, before === after ? "–" : signed(unit, after - before)), el("td", {class: "meter"}, bars(before, after, most))))));
  };

  const exact = (number) => BigInt(number).toLocaleString("en");
  /// The 960 of "960 - 1,023 bytes". The report has these classes sorted by their change.
  const leastOf = (name) => Number(name.replaceAll(",", "").match(/\d+/)?.[0] ?? 0);
  const sizes = ({by_size: {contributors}}) => {
    const rows = contributors.map(({name, self: {before, after}}) => [name.replace(" - ", " to "), before.allocated_bytes, after.allocated_bytes, leastOf(name)])
      .filter(([, before, after]) => before !== after).sort((a, b) => a[3] - b[3]);
    return [el("p", {class: "hint"}, "Bytes asked for, by the size of the block: the classes that differ."), comparison("size", "bytes", rows)];
  };

  /// Classes are those of heap::AgeClasses: eight of equal width a doubling.
  const lifetimeClass = (least) => {
    let width = 1;
    while (least >= 16 * width) width *= 2;
    return width === 1 ? exact(least) : `${exact(least)} to ${exact(least + width - 1)}`;
  };
  const lifetimes = ({by_size: {lifetimes: classes, clock_unit: clock}}) => {
    const rows = classes.filter(([, before, after]) => before !== after).map(([least, before, after]) => [lifetimeClass(least), before, after]);
    return [el("p", {class: "hint"}, `Blocks that have ended, by their lifetime in ${plain(clock)}: the classes that differ.`), comparison("lifetime", "count", rows)];
  };

  const build = (report) => {
    const model = new cmt.diff.DiffModel(report);
    const opening = model.opening();
    const state = new cmt.State(model.last, model.measures.map(({key}) => key), opening.measure);
    const codePlace = el("div"), rule = el("p", {class: "hint"}, opening.rule);  // while it is what the graph shows
    state.listen(({measure}) => { rule.style.visibility = measure === state.first ? "" : "hidden"; });
    page.replaceChildren(
      el("div", {class: "head"}, el("header", {id: "traces", tabindex: "-1"}, el("h1", {}, plain(programsOf(report))), side("Before", report.before), side("After", report.after), totals(report)),
        el("div", {class: "found-list"}, findings(report, model, state))),
      el("nav", {"aria-label": "parts of the report"}, ["code", "sizes", "lifetimes"].map((id) => el("a", {href: "#" + id, onclick: (event) => { event.preventDefault(); reveal(id); }}, titles[id])),
        el("span", {class: "chosen"}, cmt.theme.choice(), cmt.keys.obey(state, report.has_stacks))),
      el("div", {class: "parts diff"}, section("code", rule, codePlace), section("sizes", ...sizes(report)), section("lifetimes", ...lifetimes(report))), cmt.keys.maker());
    if (!report.has_stacks) codePlace.append(el("p", {class: "hint"}, "Call stacks were not recorded in both: sizes stand in the place of functions."));
    const code = model.measures.length > 0 ? new cmt.diff.DiffCode(codePlace, model, state, null) : null;
    if (!code) codePlace.append(el("p", {class: "hint"}, "Neither trace has allocations."));
    page.removeAttribute("aria-busy");
    performance.mark("drawn");
    page.dataset.ready = "true";
    addEventListener("themechange", () => code?.redraw());
    let pending = 0;
    addEventListener("resize", () => {
      cancelAnimationFrame(pending);
      pending = requestAnimationFrame(() => code?.resize());
    });
    Object.assign(cmt, {shown: {model, state, code}});
  };

  try {
    build(await cmt.model.read("report"));
  } catch (error) {
    page.replaceChildren(el("p", {class: "lacking"}, `This page's report cannot be read: ${error.message}`));
    throw error;
  }
})();
