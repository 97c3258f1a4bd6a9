// The report's numbers: what each function allocated in a span of the trace, by any measure. Draws nothing.
//
// The report has a call tree and, for each measure, sparse changes of each node's own allocations by moment. A span is a
// pair of moments i < j. The sum of the changes of the moments i + 1 to j is the amount allocated or freed in the span.
// The sum of all changes of live bytes up to j is the memory that is live at j. The peak of a span is exact for one
// process: the report also has the memory that was live at each interval's peak.
"use strict";
(() => {
  const {plain} = cmt.elements;

  /// The JSON in an element that page_head's packed_data_element wrote.
  const read = async (id) => {
    const text = atob(document.getElementById(id).textContent);
    const packed = new Uint8Array(text.length);
    for (let i = 0; i < text.length; ++i) packed[i] = text.charCodeAt(i);
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    return JSON.parse(await new Response(stream).text());
  };

  const largestMax = 6;  // functions with a colour of their own

  const came = (key) => ({needs: key, from: (i) => i, to: (i, j) => j});
  const liveAt = (key) => ({needs: key, from: () => -1, to: (i, j) => j});
  /// Adds the memory that was live at the interval's start, and the changes from there to its moment of most live bytes.
  const liveAtPeak = (key, exact) => ({needs: key, exact});
  /// [key, group, words, unit, how it is summed, signed]
  const measures = [
    ["allocated_bytes", "Allocated in the span", "allocated bytes", "bytes", came("allocated_bytes")],
    ["allocated_blocks", "Allocated in the span", "allocations", "count", came("allocated_blocks")],
    ["peak_bytes", "Live", "live at the span's peak, bytes", "bytes", liveAtPeak("live_bytes", "interval_peak_bytes")],
    ["peak_blocks", "Live", "live at the span's peak, blocks", "count", liveAtPeak("live_blocks", "interval_peak_blocks")],
    ["live_bytes", "Live", "live at its end, bytes", "bytes", liveAt("live_bytes")],
    ["live_blocks", "Live", "live at its end, blocks", "count", liveAt("live_blocks")],
    ["growth_bytes", "Live", "growth in the span, bytes", "bytes", came("live_bytes"), true],
    ["growth_blocks", "Live", "growth in the span, blocks", "count", came("live_blocks"), true],
    ["leaked_bytes", "Live", "allocated in it and never freed, bytes", "bytes", came("leaked_bytes")],
    ["leaked_blocks", "Live", "allocated in it and never freed, blocks", "count", came("leaked_blocks")],
    ["temporary_blocks", "Allocated and freed", "temporary, blocks", "count", came("temporary_blocks")],
    ["temporary_bytes", "Allocated and freed", "temporary, bytes", "bytes", came("temporary_bytes")],
    ["short_lived_blocks", "Allocated and freed", "short-lived, blocks", "count", came("short_lived_blocks")],
    ["other_thread_blocks", "Allocated and freed", "freed by another thread, blocks", "count", came("other_thread_blocks")],
    ["reallocated_blocks", "Allocated and freed", "reallocated, blocks", "count", came("reallocated_blocks")],
    ["untouched_bytes", "Allocated and freed", "never touched, bytes", "bytes", came("untouched_bytes")],
  ].map(([key, group, words, unit, rule, signed]) => ({key, group, words, unit, signed: Boolean(signed), ...rule}));

  /// Changes in the order of their moments: those of moment k begin at starts[k].
  const byMoment = ({node, moment, value}, moments) => {
    const starts = new Int32Array(moments + 1);
    for (const k of moment) ++starts[k + 1];
    for (let k = 0; k < moments; ++k) starts[k + 1] += starts[k];
    const place = starts.slice();
    const nodes = new Int32Array(node.length), values = new Float64Array(node.length);
    for (let i = 0; i < node.length; ++i) {
      const at = place[moment[i]]++;
      nodes[at] = node[i];
      values[at] = value[i];
    }
    return {starts, nodes, values};
  };

  /// The functions by number; frames of one function in different lines are one.
  const functionsOf = (report) => {
    const {frames} = report;
    const library = (frame) => (frames.library?.[frame] >= 0 ? plain(frames.libraries[frames.library[frame]]) : "");
    const known = new Map(), list = [], python = new Set(frames.python_functions);
    const ofFrame = Int32Array.from(frames.function, (name, frame) => {
      const key = name + "\0" + library(frame);
      if (!known.has(key)) {
        known.set(key, list.length);
        const short = frames.short_name?.[frame];
        list.push({name: plain(name), short: plain(short || name), library: library(frame), file: plain(frames.file?.[frame] ?? ""), line: frames.line?.[frame] || null, isPython: python.has(frame)});
      }
      return known.get(key);
    });
    return {list, ofFrame};
  };

  /// Sums of a function, or of what it calls, at their start. `sides` are the traces that are compared, [] of one alone:
  /// [{key, self, total}], of which {self, total} are by node; each has sums of its own.
  const noSums = (id, sides) => ({id, self: 0, total: 0, weight: 0, ...Object.fromEntries(sides.map(({key}) => [key, {self: 0, total: 0}]))});

  /// The tree of calls and its functions. Classes derived from it add the figures: measures, and view(measure, span, keep).
  /// A view has by node:
  /// - self, and total, which includes callees
  /// - width and weight, the widths at which a frame is drawn for these two
  ///
  /// sum and gross are the total and the weight of the root. sides are the compared traces, as for noSums.
  class Tree {
    constructor(report) {
      this.report = report;
      const {nodes} = report;
      this.count = nodes.parent.length;
      this.parent = Int32Array.from(nodes.parent);
      const {list, ofFrame} = functionsOf(report);
      this.functions = list;
      this.hasPython = list.some(({isPython}) => isPython);
      this.functionOf = Int32Array.from(nodes.frame, (frame) => ofFrame[frame] ?? -1);
      this.functionOf[0] = -1;
      const handingOn = new Set(report.frames.allocation_functions);
      this.handsOn = new Uint8Array(list.length);  // in some stacks at least
      for (const frame of handingOn) this.handsOn[ofFrame[frame]] = 1;
      // By node, the node that is charged with its own part: not a function that only hands memory on, but its caller.
      this.charged = new Int32Array(this.count);
      for (let node = 1; node < this.count; ++node)
        this.charged[node] = handingOn.has(nodes.frame[node]) && this.parent[node] > 0 ? this.charged[this.parent[node]] : node;
      this.childStarts = new Int32Array(this.count + 1);
      for (let node = 1; node < this.count; ++node) ++this.childStarts[this.parent[node] + 1];
      for (let node = 0; node < this.count; ++node) this.childStarts[node + 1] += this.childStarts[node];
      const place = this.childStarts.slice();
      this.children = new Int32Array(Math.max(0, this.count - 1));
      for (let node = 1; node < this.count; ++node) this.children[place[this.parent[node]]++] = node;
    }

    /// The part of a view, by weight, in frames "[other, N functions]", into which the report folds small calls (see
    /// cmtreport/report/fold.h). Sums by function lack this part.
    folded({width}) {
      this.foldedFunctions ??= this.functions.map((_, id) => this.isFolded(id));
      let sum = 0;
      for (let node = 1; node < this.count; ++node) if (this.foldedFunctions[this.functionOf[node]]) sum += width[node];
      return sum;
    }

    /// By function, whether the report made it of small calls.
    isFolded(id) { return id >= 0 && /^\[other, \d/.test(this.functions[id].name); }

    measure(key) { return this.measures.find((one) => one.key === key) ?? this.measures[0]; }

    /// By node, the sums of own parts with those of all callees. A parent has a lower number.
    withCallees(own) {
      const sums = own.slice();
      for (let node = this.count - 1; node > 0; --node) sums[this.parent[node]] += sums[node];
      return sums;
    }

    /// By node, whether it or a function above it matches.
    below(matches) {
      const keep = new Uint8Array(this.count);
      for (let node = 1; node < this.count; ++node) keep[node] = matches[this.functionOf[node]] || keep[this.parent[node]];
      return keep;
    }

    /// By function, whether a regular expression matches its name or library; null where the expression is not one.
    matching(text) {
      let pattern;
      try {
        pattern = new RegExp(text, "i");
      } catch {
        return null;
      }
      return Uint8Array.from(this.functions, ({name, library}) => pattern.test(name) || pattern.test(library));
    }

    /// Self and inclusive parts by function; of a function that calls itself, the outermost counts.
    byFunction({self, total, weight, sides}) {
      this.outermost ??= this.findOutermost();
      const sums = this.functions.map((_, id) => noSums(id, sides));
      for (let node = 1; node < this.count; ++node) {
        const sum = sums[this.functionOf[node]], charged = sums[this.functionOf[this.charged[node]]];
        charged.self += self[node];
        for (const side of sides) charged[side.key].self += side.self[node];
        if (!this.outermost[node]) continue;
        sum.total += total[node];
        sum.weight += weight[node];
        for (const side of sides) sum[side.key].total += side.total[node];
      }
      return sums.filter((sum) => sum.weight !== 0 && !(this.handsOn[sum.id] && sum.self === 0));
    }

    /// By node, whether no function above it is the same.
    findOutermost() {
      const outermost = new Uint8Array(this.count);
      for (let node = 1; node < this.count; ++node) {
        let above = this.parent[node];
        while (above > 0 && this.functionOf[above] !== this.functionOf[node]) above = this.parent[above];
        outermost[node] = above <= 0;
      }
      return outermost;
    }
  }

  class Model extends Tree {
    constructor(report) {
      super(report);
      this.last = report.moments.event.length - 1;
      this.deltas = {};
      for (const [key, columns] of Object.entries(report.deltas ?? {})) {
        if (columns?.node.length > 0) this.deltas[key] = byMoment(columns, this.last + 1);
      }
      this.measures = measures.filter(({needs}) => this.deltas[needs]);
      this.largest = this.findLargest();
    }

    /// The functions with most live bytes of their own at any moment, the largest first. Frames of folded calls are none.
    findLargest() {
      const live = new Float64Array(this.functions.length), most = new Float64Array(this.functions.length);
      this.eachLiveChange((id, value) => {
        live[id] += value;
        most[id] = Math.max(most[id], live[id]);
      });
      return [...most.keys()].filter((id) => most[id] > 0 && !this.isFolded(id)).sort((a, b) => most[b] - most[a]).slice(0, largestMax);
    }

    /// Calls change(function, bytes, moment) for each change of live bytes, by rising moments. The root's function is -1.
    eachLiveChange(change) {
      if (!this.deltas.live_bytes) return;
      const {starts, nodes, values} = this.deltas.live_bytes;
      for (let moment = 0; moment <= this.last; ++moment)
        for (let i = starts[moment]; i < starts[moment + 1]; ++i) change(this.functionOf[this.charged[nodes[i]]], values[i], moment);
    }

    /// The live bytes at each moment: [{id, values}…] of the largest functions, and of all others, whose id is -1. Their sum
    /// is moments.live_bytes. Exact at the moments, not between them.
    liveByFunction() {
      const rows = [...this.largest, -1].map((id) => ({id, values: new Float64Array(this.last + 1)}));
      const rowOf = new Map(rows.map((row) => [row.id, row]));
      this.eachLiveChange((id, value, moment) => { (rowOf.get(id) ?? rowOf.get(-1)).values[moment] += value; });
      for (const {values} of rows) for (let k = 1; k <= this.last; ++k) values[k] += values[k - 1];
      return rows.filter(({values}) => values.some((value) => value > 0));
    }

    /// The measure that the page opens on, the moment that shows it, and the rule in words. If half of the peak or more is
    /// never freed, that is shown; else the peak.
    opening() {
      const {peak, end_live_bytes: left = 0, processes = []} = this.report;
      const part = peak?.live_bytes > 0 ? left / peak.live_bytes : 0;
      // Processes that end at different times can leave more than they had at any one time.
      const percent = processes.length > 1 && part > 1 ? "more, since the processes ended at different times" : `${(100 * part).toFixed(0)} %`;
      if (part >= 0.5 && this.deltas.leaked_bytes) {
        const moment = processes.length > 1 ? this.peakOf([0, this.last]) : this.last;
        return {measure: "leaked_bytes", moment, rule: `The graph opens on what is never freed if that is half of the peak or more. Here it is ${percent}.`};
      }
      return {measure: "peak_bytes", moment: this.peakOf([0, this.last]), rule: `The graph opens on the peak if less than half of it is never freed. Here it is ${percent}.`};
    }

    isWhole([i, j]) { return i === 0 && j === this.last; }

    /// Peaks are exact for one process. For several, the common memory between two moments is not known.
    get hasExactPeaks() { return (this.report.processes ?? []).length < 2 && Boolean(this.deltas.interval_peak_bytes); }

    /// The moment of most live bytes in a span, or the end of the interval that has them.
    peakOf([i, j]) {
      const {peak_bytes: most, live_bytes: live} = this.report.moments;
      const [numbers, first] = this.hasExactPeaks ? [most, i + 1] : [live, i];
      let best = first;
      for (let k = first; k <= j; ++k) if (numbers[k] > numbers[best]) best = k;
      return best;
    }

    /// Each node's own part.
    own(measure, span) {
      const sums = new Float64Array(this.count);
      const add = (key, from, to) => {
        if (!this.deltas[key]) return;
        const {starts, nodes, values} = this.deltas[key];
        for (let i = starts[from + 1]; i < starts[to + 1]; ++i) sums[nodes[i]] += values[i];
      };
      const peak = this.peakOf(span);
      if (measure.exact && this.hasExactPeaks) {
        add(measure.needs, -1, peak - 1);
        add(measure.exact, peak - 1, peak);
      } else if (measure.exact) {
        add(measure.needs, -1, peak);
      } else {
        add(measure.needs, measure.from(...span), measure.to(...span));
      }
      return sums;
    }

    /// The nodes' own and inclusive parts in a span; `keep` (or null) says whose own parts count. A node's weight is its
    /// width: of a measure with negative numbers what was added and what went away.
    view(measure, span, keep) {
      const self = this.own(measure, span);
      if (keep) for (let node = 0; node < this.count; ++node) if (!keep[node]) self[node] = 0;
      const total = this.withCallees(self), width = self.map(Math.abs);
      const weight = measure.signed ? this.withCallees(width) : total;
      return {measure, span, self, total, width, weight, sum: total[0], gross: weight[0], sides: []};
    }
  }

  cmt.model = {read, noSums, Tree, Model};
})();
