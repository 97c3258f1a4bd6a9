// The state of the page, kept in the URL's fragment, so that a link shows the same:
//
//   #span=12-400&measure=growth_bytes&tree=bottom-up&shape=flame&focus=3.17&find=parse&only=1&function=5
//
// Only the page of a difference has width: frames are as wide as the change, or as the size.
"use strict";
(() => {
  class State {
    /// `last` is the last moment, `measures` the keys of those that can be shown, `first` the one to open on.
    constructor(last, measures, first) {
      this.last = last;
      this.measures = measures;
      this.first = measures.includes(first) ? first : measures[0];
      this.listeners = [];
      this.values = this.parse(location.hash);
      addEventListener("hashchange", () => {
        if (location.hash === this.text()) return;
        this.values = this.parse(location.hash);
        this.notify();
      });
    }

    get whole() { return [0, this.last]; }

    parse(hash) {
      const given = new URLSearchParams(hash.replace(/^#/, ""));
      const [i, j] = (given.get("span") ?? "").split("-").map(Number);
      const numbers = (key) => (given.get(key) ? given.get(key).split(".").map(Number).filter(Number.isInteger) : []);
      return {
        span: Number.isInteger(i) && Number.isInteger(j) && i >= 0 && i < j && j <= this.last ? [i, j] : this.whole,
        measure: this.measures.includes(given.get("measure")) ? given.get("measure") : this.first,
        tree: given.get("tree") === "bottom-up" ? "bottom-up" : "top-down",
        shape: given.get("shape") === "flame" ? "flame" : "icicle",
        table: ["top-down", "bottom-up", "callers"].includes(given.get("table")) ? given.get("table") : "functions",
        focus: numbers("focus"),
        chosen: numbers("function")[0] ?? null,
        find: given.get("find") ?? "",
        only: given.get("only") === "1",
        width: given.get("width") === "size" ? "size" : "change",
      };
    }

    text() {
      const {span, measure, tree, shape, table, focus, chosen, find, only, width} = this.values;
      const parts = new URLSearchParams();
      if (span[0] !== 0 || span[1] !== this.last) parts.set("span", span.join("-"));
      if (measure !== this.first) parts.set("measure", measure);
      if (tree !== "top-down") parts.set("tree", tree);
      if (shape !== "icicle") parts.set("shape", shape);
      if (table !== "functions") parts.set("table", table);
      if (focus.length > 0) parts.set("focus", focus.join("."));
      if (chosen != null) parts.set("function", chosen);
      if (find) parts.set("find", find);
      if (only) parts.set("only", "1");
      if (width !== "change") parts.set("width", width);
      const text = parts.toString();
      return text ? "#" + text : "";
    }

    /// Changes values, the fragment, and what is shown.
    set(changes) {
      const before = this.values;
      this.values = {...before, ...changes};
      const text = this.text();
      if (text !== location.hash) location.replace(text || "#");
      this.notify(before);
    }

    /// Calls listen(values, values before) now and after each change.
    listen(listen) {
      this.listeners.push(listen);
      listen(this.values, null);
    }

    notify(before = null) { for (const listen of this.listeners) listen(this.values, before); }
  }

  cmt.State = State;
})();
