// The numbers of a difference: the figures of each node's own allocations in both traces. Draws nothing.
"use strict";
(() => {
  /// [key, group, words, unit]
  const measures = [
    ["allocated_bytes", "Allocated", "allocated bytes", "bytes"],
    ["allocated_blocks", "Allocated", "allocations", "count"],
    ["peak_bytes", "Live", "live at the peak, bytes", "bytes"],
    ["leaked_bytes", "Live", "live at the end, bytes", "bytes"],
    ["temporary_blocks", "Allocated and freed", "temporary, blocks", "count"],
    ["short_lived_blocks", "Allocated and freed", "short-lived, blocks", "count"],
    ["other_thread_blocks", "Allocated and freed", "freed by another thread, blocks", "count"],
    ["reallocated_blocks", "Allocated and freed", "reallocated, blocks", "count"],
  ].map(([key, group, words, unit]) => ({key, group, words, unit, signed: true}));

  class DiffModel extends cmt.model.Tree {
    constructor(report) {
      super(report);
      this.last = 1;
      this.figures = {};
      for (const {key} of measures) {
        const {node, before, after} = report.figures[key];
        if (node.length === 0) continue;
        const sides = this.figures[key] = {before: new Float64Array(this.count), after: new Float64Array(this.count)};
        node.forEach((at, i) => { [sides.before[at], sides.after[at]] = [before[i], after[i]]; });
      }
      this.measures = measures.filter(({key}) => this.figures[key]);
      this.width = "change";
    }

    /// The measure that the page opens on: the one whose changes are the greatest part of its whole, which is, of live
    /// bytes, the peak.
    opening() {
      const {before, after} = this.report.total;
      const most = (key) => Math.max(before[key], after[key]);
      const wholeOf = {allocated_bytes: "allocated_bytes", peak_bytes: "peak_bytes", leaked_bytes: "peak_bytes"};
      let best = {measure: this.measures[0]?.key, part: -1};
      const order = [...this.measures].sort((a, b) => (b.key === "leaked_bytes") - (a.key === "leaked_bytes"));  // among equals
      for (const {key} of order) {
        const {before: was, after: is} = this.figures[key];
        const changed = is.reduce((sum, value, node) => sum + Math.abs(value - was[node]), 0);
        const whole = most(wholeOf[key] ?? "allocated_blocks");
        if (whole > 0 && changed / whole > best.part) best = {measure: key, part: changed / whole};
      }
      return {...best, rule: `The graph opens on the figure that has changed most, as a part of its whole: ${(100 * Math.max(0, best.part)).toFixed(1)} %. Live bytes are compared with the peak.`};
    }

    isWhole() { return true; }

    /// self and total are the changes. The user chooses the width of a frame. The first choice is the sum of the
    /// changes below it, each stack's change without its sign. The other is the figure of its stacks in the trace that
    /// has more.
    view(measure, span, keep) {
      const sides = ["before", "after"].map((key) => {
        const self = this.figures[measure.key][key].slice();
        if (keep) for (let node = 0; node < this.count; ++node) if (!keep[node]) self[node] = 0;
        return {key, self, total: this.withCallees(self)};
      });
      const [before, after] = sides;
      const self = after.self.map((value, node) => value - before.self[node]);
      const total = after.total.map((value, node) => value - before.total[node]);
      const changes = self.map(Math.abs);
      const width = this.width === "change" ? changes : after.self.map((value, node) => Math.max(value, before.self[node]));
      const weight = this.withCallees(width);
      const changed = this.width === "change" ? weight[0] : changes.reduce((a, b) => a + b, 0);
      return {measure, span, self, total, width, weight, sum: total[0], gross: weight[0], changed, sides};
    }
  }

  cmt.diff = {DiffModel};
})();
