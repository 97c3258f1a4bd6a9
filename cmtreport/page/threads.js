// The map of threads: when each asked for memory, in a row each, on the axis of memory over time.
"use strict";
(() => {
  const {plain} = cmt.elements;
  const {label} = cmt.numbers;
  const rowsMax = 20, rowHeight = 18;

  /// "3 threads": of a report's threads, one of which may be the sum of several.
  const counted = (threads, word = "thread") => {
    const count = threads.reduce((sum, one) => sum + (one.threads ?? 1), 0);
    return `${label("count", count)} ${word}${count === 1 ? "" : "s"}`;
  };

  /// By process, the hue of its program; [] of one process.
  const huesOf = (processes) => {
    const programs = [...new Set(processes.map(({program, name}) => program || name))];
    return processes.length < 2 ? [] : processes.map(({program, name}) => cmt.hues[programs.indexOf(program || name) % cmt.hues.length]);
  };

  /// The colours of a map's levels in one hue.
  const shadesOf = (hue) => (hue == null ? null : Array.from({length: 12}, (_, level) => (cmt.theme.isDark() ? `hsl(${hue},55%,${20 + 5 * level}%)` : `hsl(${hue},60%,${88 - 5 * level}%)`)));

  /// "0 main"; of several processes with the program's name and pid before it.
  const nameOf = (one, processes) => {
    const {process, thread, name} = one;
    const program = processes.length > 1 && processes[process] ? `${plain(processes[process].program || processes[process].name)} ${processes[process].pid ?? ""} `.replace("  ", " ") : "";
    return thread == null ? counted([one], "other thread") : `${program}${thread}${name ? " " + plain(name) : ""}`;
  };

  const cut = (text) => (text.length > 24 ? text.slice(0, 23) + "…" : text);

  /// Rows of [name, Map of bytes by moment, whether it is one thread, its process]: the threads that asked for most, and the sum of all others.
  const rowsOf = ({threads, processes = []}) => {
    const sorted = threads.filter(({activity}) => activity?.length > 0)
      .sort((a, b) => (a.thread == null) - (b.thread == null) || b.allocated_bytes - a.allocated_bytes);
    const apart = sorted.length <= rowsMax ? sorted : sorted.slice(0, rowsMax - 1);
    const rows = apart.map((one) => [nameOf(one, processes), new Map(one.activity), one.thread != null, one.process]);
    if (apart.length === sorted.length) return rows;
    const others = new Map();
    for (const {activity} of sorted.slice(apart.length))
      for (const [moment, bytes] of activity) others.set(moment, (others.get(moment) ?? 0) + bytes);
    return [...rows, [counted(sorted.slice(apart.length), "other thread"), others, false]];
  };

  /// Returns null for fewer than two threads, where a map would show nothing new.
  const panelOf = (report, axis) => {
    const rows = rowsOf({...report, threads: report.threads ?? []});
    if (rows.length < 2) return null;
    const cells = rows.flatMap(([, bytes], i) => [...bytes].map(([moment, value]) => [rows.length - 1 - i, moment - 1, value]));
    const values = cells.map(([, , value]) => value), least = values.reduce((a, b) => Math.min(a, b)), most = values.reduce((a, b) => Math.max(a, b));
    const hues = huesOf(report.processes ?? []);
    const names = rows.map(([name]) => name).reverse(), several = (report.processes ?? []).length > 1;
    const fullNames = rows.map(([name, , isOne]) => (isOne && !several ? "thread " + name : name)).reverse();
    return {
      title: "Threads over time", x: {...axis.panel, title: ""}, series: [], height: 42 + rows.length * rowHeight,
      y: {title: "thread", unit: "count", log: false, ticks: names.map((name, i) => [i + 0.5, cut(name)]), breaks: [], range: [0, rows.length]},
      heat: {
        title: "asked for", row_shades: rows.map(([, , isOne, process]) => (isOne ? shadesOf(hues[process]) : null)).reverse(), unit: "bytes", log: true, colours: [least, Math.max(least + 1, most)],
        x_edges: axis.at, y_edges: [...names.keys(), names.length], cells, marginals: false, apart_title: "", apart: [],
        row_names: fullNames, gaps_are_zero: true, column_names: axis.at.slice(1).map((_, i) => `${axis.words(i)} to ${axis.words(i + 1)}`),
      },
    };
  };

  cmt.threads = {counted, nameOf, huesOf, panelOf};
})();
