// Which thread asked for memory when: a map with a row for each thread, on the axis of memory over time.
"use strict";
(() => {
  const {plain} = cmt.elements;
  const {label} = cmt.numbers;
  const rowsMax = 20, rowHeight = 18, othersName = "all others";

  /// "0 main"; of several processes with the program's name before it.
  const nameOf = ({process, thread, name}, processes) => {
    const program = processes.length > 1 && processes[process] ? plain(processes[process].program || processes[process].name) + " " : "";
    return thread == null ? othersName : `${program}${thread}${name ? " " + plain(name) : ""}`;
  };

  const cut = (text) => (text.length > 24 ? text.slice(0, 23) + "…" : text);

  /// Rows of [name, Map of bytes by moment]: the threads that asked for most, and the sum of all others.
  const rowsOf = ({threads, processes = []}) => {
    const sorted = threads.filter(({activity}) => activity?.length > 0)
      .sort((a, b) => (a.thread == null) - (b.thread == null) || b.allocated_bytes - a.allocated_bytes);
    const apart = sorted.length <= rowsMax ? sorted : sorted.slice(0, rowsMax - 1);
    const rows = apart.map((one) => [nameOf(one, processes), new Map(one.activity)]);
    if (apart.length === sorted.length) return rows;
    const others = new Map();
    for (const {activity} of sorted.slice(apart.length))
      for (const [moment, bytes] of activity) others.set(moment, (others.get(moment) ?? 0) + bytes);
    return [...rows, [othersName, others]];
  };

  /// null: with one thread there is nothing to tell apart.
  const panelOf = (report, axis) => {
    const rows = rowsOf({...report, threads: report.threads ?? []});
    if (rows.length < 2) return null;
    const cells = rows.flatMap(([, bytes], i) => [...bytes].map(([moment, value]) => [rows.length - 1 - i, moment - 1, value]));
    const values = cells.map(([, , value]) => value), least = values.reduce((a, b) => Math.min(a, b)), most = values.reduce((a, b) => Math.max(a, b));
    const names = rows.map(([name]) => name).reverse(), several = (report.processes ?? []).length > 1;
    return {
      title: "Threads over time", x: {...axis.panel, title: ""}, series: [], height: 42 + rows.length * rowHeight,
      y: {title: "thread", unit: "count", log: false, ticks: names.map((name, i) => [i + 0.5, cut(name)]), breaks: [], range: [0, rows.length]},
      heat: {
        title: "asked for", unit: "bytes", log: true, colours: [least, Math.max(least + 1, most)],
        x_edges: axis.at, y_edges: [...names.keys(), names.length], cells, marginals: false, apart_title: "", apart: [],
        row_names: names.map((name) => (several || name === othersName ? name : "thread " + name)), gaps_are_zero: true, column_names: axis.at.slice(1).map((_, i) => `${axis.words(i)} to ${axis.words(i + 1)}`),
      },
    };
  };

  cmt.threads = {nameOf, panelOf};
})();
