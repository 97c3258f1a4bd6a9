// The parts of the page around memory and code: the facts and findings, sizes and lifetimes, addresses, pages, the replay
// and the watch. A part without data in the report is left out.
"use strict";
(() => {
  const {el, table, plain} = cmt.elements;
  const {label} = cmt.numbers;
  const bytes = (number) => label("bytes", number);
  const count = (number) => label("count", number);
  const time = (number) => label("ns", number);
  const sum = (numbers) => (numbers ?? []).reduce((a, b) => a + b, 0);
  const noTicks = {log: false, ticks: [], breaks: []};
  const greatest = (lists) => lists.reduce((most, list) => list.reduce((a, b) => Math.max(a, b ?? 0), most), 1);

  const bytesAxis = (series, title) => ({title, unit: "bytes", ...noTicks, range: [0, greatest(series.map(({y}) => y))]});
  const spanOf = (lists) => [Math.min(...lists.map((x) => x[0] ?? 0)), Math.max(1, ...lists.map((x) => x.at(-1) ?? 1))];

  /// How long a process was recorded that idled after its last event.
  const idleEnd = ({duration_ns, processes = []}) =>
    processes.length === 1 && processes[0].recorded_ns * 0.95 > duration_ns ? ` of ${time(processes[0].recorded_ns)}` : "";

  /// The facts about the recording, as a list, and a warning of losses and doubts.
  const facts = (report) => {
    const {moments, threads = [], processes = []} = report;
    // The common memory of several processes is known at the moments only.
    const peakName = processes.length < 2 ? "peak" : report.axis === "share" && report.peak?.process == null ? "peak of the sum of shares" : "peak at least";
    const known = [
      processes.length > 1 ? `${count(processes.length)} processes` : null,
      `${count(report.events)} events`,
      threads.length > 0 ? cmt.threads.counted(threads) : null,
      report.duration_ns != null ? time(report.duration_ns) + idleEnd(report) : null,
      `${bytes(moments.allocated_bytes.at(-1))} allocated`,
      report.peak?.live_bytes != null ? `${peakName} ${bytes(report.peak.live_bytes)}` : `at most ${bytes(Math.max(...moments.live_bytes))} live at the moments shown`,
      processes.length > 1 ? `${bytes(report.end_live_bytes)} live when each process ended` : `${bytes(moments.live_bytes.at(-1))} at the end`,
      processes.length === 1 && processes[0].memory ? `memory: ${processes[0].memory}` : null,
    ];
    return known.filter(Boolean);
  };

  const lossNames = {
    repairs: "events lost or altered", defects: "defects in the trace", unknown_ends: "frees of unknown blocks",
    unknown_stack_blocks: "blocks of unknown stacks", marks: "marks left out",
  };
  const losses = (report) => {
    const lost = report.lost ?? {};
    const words = Object.entries(lossNames).filter(([key]) => lost[key] > 0).map(([key, name]) => `${name}: ${count(lost[key])}`);
    if (report.truncated) words.unshift("the trace breaks off");
    return words;
  };

  /// Whether fewer than 1 in 10,000 events are lost, wrong or unknown.
  const isSmallLoss = ({events, truncated, lost: {repairs = 0, defects = 0, unknown_ends: ends = 0, unknown_stack_blocks: stacks = 0} = {}}) =>
    !truncated && repairs + defects + ends + stacks < Math.floor(events / 10_000);

  /// The command as a shell reads it, in one line.
  const commandOf = ({command}) => (command ?? "").replace(/[\t\n\r]+/g, " ");

  /// The title is the program, or of several processes the command that was started.
  const header = (report) => {
    const words = losses(report);
    const command = commandOf(report), several = (report.processes ?? []).length > 1 && command;
    return el("header", {},
      el("h1", {title: several ? plain(command) : null}, plain(several ? command : report.program || report.name || "trace")),
      command && !several ? el("p", {class: "command", title: plain(command)}, plain(command)) : null,
      el("p", {class: "facts"}, facts(report).map((fact) => el("span", {}, fact)),
        words.length > 0 ? el(isSmallLoss(report) ? "span" : "strong", {class: isSmallLoss(report) ? "whole" : "lost"}, words.join("; ")) : el("span", {class: "whole"}, report.lost?.is_known === false ? "what was lost is not known" : "nothing was lost")));
  };

  const measureOf = {
    peak: "peak_bytes", leak: "leaked_bytes", live_at_end: "leaked_bytes", growth: "growth_bytes", temporary: "temporary_blocks",
    untouched: "untouched_bytes", other_thread: "other_thread_blocks", reallocated: "reallocated_blocks", short_lived: "short_lived_blocks",
  };

  /// Each finding leads to its part, span, measure and function.
  const findings = (report, model, state, reveal) => cmt.findings.cards(report.findings ?? [], (kind) => (kind ?? "").replaceAll("_", " "), (finding) => {
    const changes = {find: "", only: false};
    const measure = finding.measure ?? measureOf[finding.kind];
    const id = finding.function ? model.functions.findIndex(({name}) => name === plain(finding.function)) : -1;
    changes.span = finding.span ?? state.whole;
    if (model.measures.some(({key}) => key === measure)) changes.measure = measure;
    // The function with all that call it; or else the one place in the tree.
    if (id >= 0) Object.assign(changes, {tree: "bottom-up", focus: [id], chosen: id, table: "callers"});
    else if (finding.node > 0) Object.assign(changes, {tree: "top-down", focus: cmt.tree.TopDown.path(model, finding.node), chosen: model.functionOf[finding.node]});
    state.set(changes);
    reveal(finding.part);
  });

  /// A function such as xmalloc, which is charged for what its callers asked for.
  const wrapperHint = ({findings: list = []}, model) => {
    const isKnown = (one) => model.functions.some(({name}, id) => name === plain(one) && model.handsOn?.[id]);
    const name = list.map((finding) => finding.function ?? "").find((one) => /^\w*(m|c|re)alloc$/i.test(one) && !isKnown(one));
    return name ? el("p", {class: "hint"}, `If ${name} only hands memory on, cmtreport --skip='^${name}$' charges its callers.`) : null;
  };

  /// A function that puts the colour of a process's program before a name. One process has no colour.
  const swatches = (processes) => {
    const hues = cmt.threads.huesOf(processes);
    return (process, name) => {
      if (hues[process] == null) return name;
      const swatch = el("span", {class: "swatch"});
      swatch.style.setProperty("--hue", hues[process]);
      return el("span", {}, swatch, name);
    };
  };

  /// The command that records what this report lacks.
  const stacksHint = (report) => (report.has_stacks === false ? el("p", {class: "hint stacks"},
    "Call stacks were not recorded, so sizes are in the place of functions. Without --calls, cmttrace records them: ",
    el("code", {}, `cmttrace -o app.cmt -- ${plain(commandOf(report) || "COMMAND")}`)) : null);

  const threadTable = ({threads = [], processes = []}) => {
    // Processes of one thread each are in their own table.
    if (threads.length < 2 || (processes.length > 1 && new Set(threads.map(({process}) => process)).size === threads.length)) return null;
    const named = swatches(processes);
    const rows = [...threads].sort((a, b) => b.allocated_bytes - a.allocated_bytes).slice(0, 40)
      .map((one) => [named(one.process, cmt.threads.nameOf(one, processes)), count(one.events), bytes(one.allocated_bytes)]);
    return table(cmt.threads.counted(threads), ["thread", "#events", "#allocated"], rows);
  };

  const processTable = ({processes = []}) => {
    if (processes.length < 2) return null;
    const named = swatches(processes);
    const rows = processes.map((one, i) => ({...one, i})).sort((a, b) => (b.peak_live_bytes ?? 0) - (a.peak_live_bytes ?? 0)).slice(0, 100)
      .map((one) => [named(one.i, plain(one.program || one.name || "")), one.pid == null ? "–" : String(one.pid), count(one.events), bytes(one.peak_live_bytes), bytes(one.allocated_bytes)]);
    return table(`${count(processes.length)} processes, a colour for each program`, ["process", "#pid", "#events", "#peak", "#allocated"], rows);
  };

  const sizesPanel = ({sizes}) => {
    if (!sizes || sizes.size_edges.length < 2) return null;
    const unit = {ns: "ns", bytes: "bytes"}[sizes.clock_unit] ?? "count";
    const title = {ns: "lifetime", bytes: "lifetime in bytes allocated meanwhile"}[sizes.clock_unit] ?? "lifetime in events";
    const cells = sizes.cells.filter(([, , blocks]) => blocks > 0).map(([size, lifetime, blocks]) => [lifetime, size, blocks]);
    const most = Math.max(2, cells.reduce((a, [, , blocks]) => Math.max(a, blocks), 0), ...(sizes.alive_at_end ?? []));
    const y = sizes.lifetime_edges.length > 1 ? sizes.lifetime_edges : [0, 1];
    return {
      title: "Sizes and lifetimes",
      x: {...noTicks, title: "bytes asked for", unit: "bytes", log: true, range: [sizes.size_edges[0], sizes.size_edges.at(-1)]},
      y: {...noTicks, title, unit, log: true, range: [y[0], y.at(-1)]}, series: [],
      heat: {
        title: "blocks", unit: "count", log: true, colours: [1, most], x_edges: sizes.size_edges, y_edges: y, cells,
        marginals: true, apart_title: "alive at end", apart: sizes.alive_at_end ?? [],
      },
    };
  };

  /// The rows of a map of addresses: one for each bin that was ever used; a long gap is a break (see axis.cpp).
  const addressRows = (bins, binBytes) => {
    const keptGap = Math.floor(bins.length / 16) + 1, breakRoom = Math.floor(bins.length / 40) + 1;
    const rows = new Map(), edges = [], ticks = [], between = [], breaks = [];
    let position = 0;
    bins.forEach((bin, i) => {
      const gap = i === 0 ? 0 : bin - bins[i - 1] - 1;
      if (gap > keptGap) breaks.push(position + breakRoom / 2);
      position += gap > keptGap ? breakRoom : gap;
      const tick = [position, "0x" + (BigInt(bin) * BigInt(binBytes)).toString(16)];
      if (i === 0 || gap > keptGap) ticks.push(tick);
      else if (i % (Math.floor(bins.length / 8) + 1) === 0) between.push(tick);
      if (edges.length === 0 || edges.at(-1) < position) edges.push(position);
      rows.set(bin, edges.length - 1);
      edges.push(position + 1);
      position += 1;
    });
    return {rows, edges, breaks, ticks: [...ticks, ...between]};
  };

  const addressPanel = ({pages}, axis) => {
    const addresses = pages?.address_map;
    if (!addresses || addresses.moments.length === 0) return null;
    const bins = [...new Set(addresses.moments.flatMap((moment) => moment.bins.map(([bin]) => bin)))].sort((a, b) => a - b);
    const {rows, edges, breaks, ticks} = addressRows(bins, addresses.bin_bytes);
    const xs = [0], cells = [];
    for (const moment of addresses.moments) {
      const at = axis.of(moment);
      if (!(at > xs.at(-1))) continue;
      xs.push(at);
      for (const [bin, live] of moment.bins) cells.push([rows.get(bin), xs.length - 2, Math.min(1, Math.max(1e-6, live / addresses.bin_bytes))]);
    }
    if (xs.length < 2 || edges.length < 2) return null;
    return {
      title: `Address space over time, a row for every ${bytes(addresses.bin_bytes)} that were ever used`,
      x: {...axis.panel, range: [0, xs.at(-1)]}, series: [],
      y: {...noTicks, title: "address", unit: "count", ticks, breaks, range: [edges[0], edges.at(-1)]},
      heat: {title: "bytes live", unit: "share", log: false, colours: [0, 1], x_edges: xs, y_edges: edges, cells, marginals: false, apart_title: "", apart: []},
    };
  };

  /// Resident memory where it was sampled, which is before the moment that names it.
  const residentOf = (moments, axis) => {
    const own = moments.filter((one, i) => one.resident_bytes != null && one.resident_event !== moments[i - 1]?.resident_event);
    return {x: own.map((one) => axis.of({time_ns: one.resident_time_ns, event: one.resident_event})), y: own.map((one) => one.resident_bytes)};
  };

  const pagesPanel = ({pages}, axis) => {
    if (!pages || (pages.samples ?? []).length === 0) return null;
    const page = pages.page_size_bytes ?? 4096;
    const x = pages.samples.map((sample) => axis.of(sample));
    const of = (make) => pages.samples.map((sample) => { const value = make(sample); return Number.isFinite(value) ? value : null; });
    const series = [
      {name: "live bytes", form: "band", look: 0, x, y: of((s) => s.live_bytes)},
      {name: "unused on their pages", form: "band", look: 1, x, y: of((s) => Math.max(0, s.pages * page - s.live_bytes))},
      {name: "pages without a live block, at most", form: "band", look: 2, x, y: of((s) => s.held_pages_max * page)},
      {name: "on pages of one small old block", form: "line", look: 3, x, y: of((s) => (s.pinned_pages == null ? null : s.pinned_pages * page))},
      {name: "resident", form: "line", look: 7, ...residentOf(pages.samples, axis)},
    ].filter(({y}) => y.some((value) => value != null));
    return {title: "Pages over time", x: axis.panel, y: bytesAxis([{y: x.map((_, i) => sum(series.filter(({form}) => form === "band").map(({y}) => y[i] ?? 0)))}, ...series], "bytes on pages"), series, heat: null};
  };

  const holderTables = ({pages}) => {
    const {holders} = pages ?? {};
    if (!holders) return [];
    const names = {by_function: "function", by_size: "size", by_age: "age", by_kind: "call"};
    const titles = {by_function: "Who holds the pages, by function", by_size: "by size of the block", by_age: "by bytes allocated since", by_kind: "by call"};
    return Object.keys(names).filter((key) => (holders[key] ?? []).length > 0).map((key) => {
      const first = (value) => (key === "by_size" || key === "by_age" ? bytes(value) + " +" : plain(value));
      const rows = [...holders[key]].sort((a, b) => b[4] - a[4]).slice(0, 16)
        .map(([name, blocks, live, onPages, unused, sole]) => [first(name), count(blocks), bytes(live), bytes(onPages), bytes(unused), bytes(sole)]);
      return table(titles[key], [names[key], "#blocks", "#live", "#pages", "#unused", "#held alone"], rows);
    });
  };

  const replayTable = ({replay}) => {
    if (!replay?.allocators) return null;
    const first = replay.allocators.find(({name}) => name === "libc") ?? replay.allocators[0];
    const row = (one, name) => {
      if (one.death) return [name, plain(one.death.text ?? "ended early"), "", "", "", "", "", "", ""];
      const {low, high} = one.wall_ns_median_95 ?? {};
      const interval = low == null ? "–" : `${time(low)} – ${time(high)}`;
      const ratio = one.wall_ns && first.wall_ns?.median > 0 ? (one.wall_ns.median / first.wall_ns.median).toFixed(2) : "–";
      return [name, one.wall_ns ? time(one.wall_ns.median) : "–", interval, ratio, one.ns_per_call == null ? "–" : one.ns_per_call.toFixed(1), bytes(one.peak_resident_bytes),
        bytes(one.mean_resident_bytes), bytes(one.end_resident_bytes), one.fragmentation ? one.fragmentation.toFixed(2) : "–"];
    };
    const rows = [...replay.allocators].sort((a, b) => (a.wall_ns?.median ?? 0) - (b.wall_ns?.median ?? 0)).map((one) => row(one, plain(one.name)));
    if (replay.baseline) rows.push(row(replay.baseline, "(null)"));
    const isFew = replay.allocators.some(({death, wall_ns: times}) => !death && times?.samples?.length > 1 && times.samples.length < 6);  // their interval is the range
    return table(`Replayed on ${count(replay.allocators.length)} allocators; ratio: time over that of ${plain(first.name)}; (null) is the cost of the replay itself`,
      ["allocator", "#time", isFew ? "#range" : "#95 %", "#ratio", "#ns/call", "#resident peak", "#mean", "#at end", "#fragmentation"], rows);
  };

  /// The replay's verdict on each pair of allocators, and its warnings of calls that it could not do as recorded.
  const replayWords = ({replay}) => {
    const list = (name, lines) => (lines?.length > 0 ? el("ul", {class: name}, lines.map((line) => el("li", {}, plain(line)))) : null);
    return [list("verdict", replay?.verdict), list("warnings", replay?.warnings)].filter(Boolean);
  };

  const replayPanel = ({replay}, axis) => {
    const allocators = (replay?.allocators ?? []).filter(({marks}) => (marks ?? []).length > 0);
    if (allocators.length === 0) return null;
    const timed = allocators.every(({marks}) => marks.every((mark) => mark.time_ns != null));
    const at = (mark) => (timed ? mark.time_ns : mark.event);
    const series = [
      {name: "live bytes", form: "band", look: 2, x: allocators[0].marks.map(at), y: allocators[0].marks.map((mark) => mark.live_bytes)},
      ...allocators.map(({name, marks}, i) => ({name: plain(name), form: "line", look: [0, 1, 3, 4, 5, 6, 7][i % 7], x: marks.map(at), y: marks.map((mark) => mark.resident_bytes)})),
    ];
    return {
      title: "Resident memory by allocator", x: {...noTicks, title: timed ? "recorded time" : "events", unit: timed ? "ns" : "count", range: [0, Math.max(spanOf(series.map(({x}) => x))[1], timed === axis.timed ? axis.panel.range[1] : 0)]},
      y: bytesAxis(series, "bytes"), series, heat: null,
    };
  };

  const watchPanel = ({watch}) => {
    if (!watch) return null;
    let series = [];
    if (watch.samples) {
      const read = watch.samples.filter(({processes}) => processes > 0);
      const x = read.map((sample) => sample.begin_ns);
      series = [{name: watch.metric ?? "resident", form: "line", look: 3, x, y: read.map((sample) => sample.bytes)}];
      if (read.some((sample) => sample.live_bytes != null)) series.unshift({name: "live bytes", form: "band", look: 0, x, y: read.map((sample) => sample.live_bytes)});
    } else if (watch.time_ns) {
      series = (watch.kinds ?? []).filter((kind) => kind.bytes.some((value) => value > 0))
        .map((kind, i) => ({name: plain(kind.name), form: "band", look: i % 8, x: watch.time_ns, y: kind.bytes}));
      series.push({name: `in all (${watch.metric})`, form: "line", look: 3, x: watch.time_ns, y: watch.bytes});
    }
    if (series.every(({x}) => x.length === 0)) return null;
    const summed = {y: series[0].x.map((_, i) => sum(series.filter(({form}) => form === "band").map(({y}) => y[i] ?? 0)))};
    return {title: "Seen from outside", x: {...noTicks, title: "time", unit: "ns", range: spanOf(series.map(({x}) => x))}, y: bytesAxis([summed, ...series], "bytes"), series, heat: null};
  };

  const watchPartsPanel = ({watch}) => {
    const x = watch?.parts_time_ns ?? [];
    if (x.length < 2) return null;  // a look alone has no width
    const series = watch.parts.map(({name, bytes: y}, i) => ({name: plain(name), form: "step_band", look: i % 8, x, y}));
    const summed = {y: x.map((_, i) => sum(series.map(({y}) => y[i])))};
    return {title: "Parts of the resident memory", x: {...noTicks, title: "time", unit: "ns", range: [watch.time_ns?.[0] ?? x[0], watch.time_ns?.at(-1) ?? x.at(-1)]}, y: bytesAxis([summed], "resident, by part"), series, heat: null};
  };

  /// A watch without traces need not be of the recorded run.
  const watchNote = ({watch}) => (watch && !watch.traced
    ? el("p", {class: "hint"}, "The watch does not say that it is of the recorded run: its times are its own.") : null);

  const watchTable = ({watch}) => {
    const mappings = (watch?.mappings ?? []).filter((one) => one.bytes?.length > 0);
    if (mappings.length === 0) return null;
    const rows = mappings.map((one) => [plain(one.name), bytes(greatest([one.bytes])), bytes(one.bytes.at(-1))]).slice(0, 20);
    return table("Mappings", ["mapping", "#most", "#at the end"], rows);
  };

  cmt.parts = {header, findings, wrapperHint, stacksHint, threadTable, processTable, sizesPanel, addressPanel, pagesPanel, holderTables, replayTable, replayWords, replayPanel, watchPanel, watchPartsPanel, watchNote, watchTable};
})();
