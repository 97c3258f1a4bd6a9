// The code that allocates more or less than before: the graph, and tables with both traces' figures.
"use strict";
(() => {
  const {el, choice} = cmt.elements;
  const {label} = cmt.numbers;
  const {Code, number, share} = cmt.code;

  /// "+35.2 %", or "new" if there was nothing before, or "gone" if there is nothing after.
  const relative = (before, after) => {
    if (before === after) return "±0 %";
    if (before <= 0) return "new";
    if (after === 0) return "gone";
    const percent = (100 * (after - before)) / before;
    return (percent > 0 ? "+" : "−") + Math.abs(percent).toFixed(Math.abs(percent) < 99.95 ? 1 : 0) + " %";
  };

  class DiffCode extends Code {
    get firstOrder() { return "self"; }

    ownChoices() {
      this.widthChoice = choice("width", [["change", "Wide as the change"], ["size", "Wide as the size"]], this.state.values.width, (width) => this.state.set({width}));
      return [this.widthChoice];
    }

    update(values, before) {
      this.model.width = values.width;
      for (const button of this.widthChoice.children) button.setAttribute("aria-pressed", String(button.dataset.value === values.width));
      super.update(values, before);
    }

    summaryOf(values, measure) {
      const {sum, changed, sides: [before, after]} = this.view;
      const through = values.only && this.matches ? ", in stacks through matches" : "";
      return [el("b", {}, number(measure, sum)), ` ${measure.words}${through}: ${label(measure.unit, before.total[0])} before, ${label(measure.unit, after.total[0])} after (${relative(before.total[0], after.total[0])}); `,
        `${label(measure.unit, (changed + sum) / 2)} more in some stacks `, el("span", {class: "key more-key"}), ` ${label(measure.unit, (changed - sum) / 2)} less in others `, el("span", {class: "key less-key"})];
    }

    words(node) {
      const {measure, changed} = this.view;
      const {before, after} = node;
      return [node.id < 0 ? this.name(node) : this.model.functions[node.id].name, node.id < 0 ? "" : this.placeOf(node.id),
        `${number(measure, node.total)} ${measure.words} (${relative(before.total, after.total)}), ${share(Math.abs(node.total), changed)} of all changes of this measure`,
        `${label(measure.unit, before.total)} before, ${label(measure.unit, after.total)} after`,
        node.self !== 0 && node.self !== node.total ? `${number(measure, node.self)} by itself` : ""].filter(Boolean);
    }

    /// The cells of a row: of a function's own allocations first, or with those of its callees first.
    figures({self, total, before, after}, isOwn = false) {
      const {measure, changed} = this.seen;
      const part = isOwn ? "self" : "total", change = isOwn ? self : total, other = isOwn ? total : self;
      const amount = (value) => (value === 0 ? "–" : label(measure.unit, value));
      const cell = el("td", {class: "number " + (change > 0 ? "rise" : change < 0 ? "fall" : "")}, change === 0 ? "–" : number(measure, change), this.bar(Math.abs(change), changed));
      return [
        el("td", {class: "number"}, amount(before[part])), el("td", {class: "number"}, amount(after[part])), cell,
        el("td", {class: "number share"}, share(Math.abs(change), changed)),
        el("td", {class: "number"}, other === 0 ? "–" : number(measure, other)),
      ];
    }

    functionHeadings() {
      const isOwn = this.order === "self";
      const plain = (text) => el("th", {class: "number", scope: "col"}, text);
      const own = this.sorting("self", isOwn ? "change" : "own change"), all = this.sorting("total", isOwn ? "with callees" : "change");
      return [el("th", {scope: "col"}, "function"), plain("before"), plain("after"), isOwn ? own : all, plain("share"), isOwn ? all : own];
    }

    headings(through) { return ["function", "before", "after", through ? "change through it" : "change", "share", "own change"].map((text, i) => el("th", {scope: "col", class: i > 0 ? "number" : null}, text)); }
  }

  Object.assign(cmt.diff, {DiffCode, relative});
})();
