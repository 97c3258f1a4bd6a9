// The code that allocated: the flame graph of the chosen span and measure, and the same numbers in tables.
"use strict";
(() => {
  const {el, choice, plain} = cmt.elements;
  const {label} = cmt.numbers;
  const rowsAtFirst = 40;

  /// "+1.20 MiB" of a signed measure, else "1.20 MiB".
  const number = (measure, value) => (measure.signed && value > 0 ? "+" : "") + label(measure.unit, value);
  const share = (value, whole) => (whole > 0 ? ((100 * value) / whole).toFixed(1) + " %" : "–");

  class Code {
    constructor(place, model, state, axis) {
      Object.assign(this, {place, model, state, axis, order: this.firstOrder});
      this.build();
      this.flame = new cmt.Flame(this.graph, model, {
        name: (node) => this.name(node), words: (node) => this.words(node), enter: (node) => this.enter(node),
      });
      state.listen((values, before) => this.update(values, before));
    }

    get firstOrder() { return "total"; }
    /// Choices beside that of the measure.
    ownChoices() { return []; }

    build() {
      const {state, model} = this;
      const {values} = state;
      const groups = [...new Set(model.measures.map(({group}) => group))];
      this.measureBox = el("select", {"aria-label": "measure", id: "measure", onchange: (event) => state.set({measure: event.target.value})},
        groups.map((group) => el("optgroup", {label: group}, model.measures.filter((one) => one.group === group).map(({key, words}) => el("option", {value: key}, words)))));
      this.findBox = el("input", {
        type: "search", placeholder: "find a function: regular expression", "aria-label": "find functions by a regular expression", id: "find",
        spellcheck: "false", oninput: (event) => state.set({find: event.target.value}),
      });
      this.onlyBox = el("input", {type: "checkbox", id: "only", onchange: (event) => state.set({only: event.target.checked, focus: []})});
      this.found = el("span", {class: "found", "aria-live": "polite"});
      this.treeChoice = choice("tree", [["top-down", "Top-down"], ["bottom-up", "Bottom-up"]], values.tree, (tree) => state.set({tree, focus: []}));
      this.shapeChoice = choice("shape", [["icicle", "Icicle"], ["flame", "Flame"]], values.shape, (shape) => state.set({shape}));
      this.back = el("button", {type: "button", class: "back", onclick: () => state.set({focus: []})}, "Show all");
      this.summary = el("p", {class: "summary"});
      this.languages = this.legend();
      this.graph = el("div", {class: "graph"});
      this.tableChoice = choice("table", [["functions", "Functions"], ["top-down", "Top-down"], ["bottom-up", "Bottom-up"], ["callers", "Callers and callees"]], values.table, (table) => state.set({table}));
      this.tablePlace = el("div", {class: "rows", tabindex: "-1"});
      // Without call stacks the tree has one level, of sizes: nothing to turn, to search or to fold.
      const isTree = model.report.has_stacks !== false;
      const ofTree = [this.treeChoice, this.shapeChoice, this.findBox, el("label", {}, this.onlyBox, " only stacks through matches"), this.found, this.back];
      this.place.append(
        el("div", {class: "controls"}, this.measureBox, this.ownChoices(), isTree ? ofTree : [],
          cmt.export.button("svg", () => this.fileName("graph"), () => cmt.export.ofFlame(this.flame, `${plain(this.model.report.name ?? "")}: ${this.summary.textContent}`))),
        this.summary, this.languages,
        el("div", {class: "split"}, this.graph, el("div", {class: "tables"}, el("div", {class: "controls"}, isTree ? this.tableChoice : null, cmt.export.button("csv", () => this.fileName(this.state.values.table), () => cmt.export.csv(this.csvRows()))), this.tablePlace)));
    }

    /// The colours of the graph and the marks of the tables. Frames of a signed measure have other colours.
    legend() {
      const part = (kind, words) => el("span", {class: `language ${kind}`}, words);
      return el("p", {class: "hint languages"}, part("python", "Python"), " ", part("native", "native code"));
    }

    fileName(what) { return `${plain(this.model.report.name || "report")}-${this.state.values.measure}-${what}`; }

    rootName() {
      const {processes = [], program, name} = this.model.report;
      return this.state.values.tree === "bottom-up" ? "all allocations" : plain((processes.length > 1 ? name : program) || "all");
    }

    name({id}) { return id < 0 ? this.rootName() : this.model.functions[id].short; }

    placeOf(id) {
      const {library, file, line} = this.model.functions[id];
      return [library, file && (line ? `${file}:${line}` : file)].filter(Boolean).join(", ");
    }

    words(node) {
      const {measure, gross} = this.view;
      const above = node.parent?.parent ? `, ${share(Math.abs(node.total), node.parent.weight)} of ${this.name(node.parent)}` : "";
      const weight = `, ${share(Math.abs(node.total), gross)}${measure.signed ? " of what came or went" : " of all"}${above}`;
      return [node.id < 0 ? this.name(node) : this.model.functions[node.id].name, node.id < 0 ? "" : this.placeOf(node.id), `${number(measure, node.total)} ${measure.words}${weight}`,
        node.self !== 0 && node.self !== node.total ? `${number(measure, node.self)} by itself` : ""].filter(Boolean);
    }

    enter(node) { this.state.set({focus: node.path, ...(node.id < 0 ? {} : {chosen: node.id})}); }
    choose(id) { this.state.set({chosen: id, table: "callers"}); }

    update(values, before) {
      const changed = (...keys) => !before || keys.some((key) => before[key] !== values[key]);
      const {model} = this;
      const measure = model.measure(values.measure);
      if (changed("find")) {
        this.matches = values.find ? model.matching(values.find) : null;
        this.findBox.setAttribute("aria-invalid", String(Boolean(values.find) && !this.matches));
      }
      if (changed("span", "measure", "only", "width") || (values.only && changed("find"))) {
        this.view = model.view(measure, values.span, values.only && this.matches ? model.below(this.matches) : null);
        this.roots = {};
      }
      this.showControls(values, measure);
      if (changed("span", "measure", "only", "width", "find", "tree", "shape", "focus")) this.showFlame(values);
      if (changed("span", "measure", "only", "width", "find", "table", "chosen", "tree", "focus")) this.showTableSoon();
    }

    /// The part of the view that the table has: what is below the graph's focus, and of a tree the stacks through matches.
    seenView({span, focus, find, only, table, tree}) {
      const {model, view, matches} = this;
      const at = focus.length > 0 && table !== "callers" ? this.root(tree).at(focus) : null;
      const isFound = find && matches && !only && table !== "functions" && table !== "callers";
      if (!at?.parent && !isFound) return view;
      const masks = [at?.parent ? at.allocating() : null, matches && (only || isFound) ? model.below(matches) : null].filter(Boolean);
      return model.view(view.measure, span, masks.reduce((one, other) => one.map((keeps, node) => keeps & other[node])));
    }

    /// Which part that is, in words; empty: all.
    seenWords({focus, find, table, tree}) {
      if (table === "callers") return "";
      const at = focus.length > 0 ? this.root(tree).at(focus) : null;
      const matches = find && this.matches ? (table === "functions" ? "functions that match" : "stacks through matches") : "";
      return at?.parent ? `${matches || "what is"} below ${this.name(at)}` : matches;
    }

    root(tree) { return (this.roots[tree] ??= cmt.tree.rootOf(tree, this.model, this.view)); }

    showControls(values, measure) {
      this.measureBox.value = measure.key;
      if (this.findBox.value !== values.find) this.findBox.value = values.find;
      this.onlyBox.checked = values.only;
      this.back.hidden = values.focus.length === 0;
      for (const [group, value] of [[this.treeChoice, values.tree], [this.shapeChoice, values.shape], [this.tableChoice, values.table]])
        for (const button of group.children) button.setAttribute("aria-pressed", String(button.dataset.value === value));
      this.showFound(values);
      this.languages.hidden = !this.model.hasPython || Boolean(measure.signed);
      this.summary.replaceChildren(...this.summaryOf(values, measure));
    }

    summaryOf(values, measure) {
      const [i, j] = values.span;
      const where = this.model.isWhole(values.span) ? "in the whole trace" : `from ${this.axis.words(i)} to ${this.axis.words(j)}`;
      const through = values.only && this.matches ? ` of ${number(measure, this.model.view(measure, values.span, null).sum)}` : "";
      return [el("b", {}, number(measure, this.view.sum)), `${through} ${measure.words}, ${where}${through ? ", in stacks through matches" : ""}`,
        measure.signed ? `; ${label(measure.unit, (this.view.gross + this.view.sum) / 2)} in stacks that grew (red), ${label(measure.unit, (this.view.gross - this.view.sum) / 2)} in stacks that shrank (blue)` : ""];
    }

    showFound({find}) {
      if (!find || !this.matches) {
        this.found.textContent = find ? "not a regular expression" : "";
        return;
      }
      const keep = this.model.below(this.matches);
      let sum = 0;
      const {width, measure, gross} = this.view;
      for (let node = 0; node < keep.length; ++node) if (keep[node]) sum += width[node];
      const count = this.matches.reduce((a, b) => a + b, 0);
      this.found.textContent = count === 0 ? "nothing matches" : `${label("count", count)} function${count === 1 ? "" : "s"}, ${share(sum, gross)}${measure.signed ? " of what came or went" : ""}`;
    }

    showFlame(values) {
      const root = this.root(values.tree);
      const focus = root.at(values.focus);
      this.flame.show({root, focus, signed: this.view.measure.signed, shape: values.shape, found: this.matches});
      this.tablePlace.style.maxHeight = Math.max(300, Math.min(560, this.flame.drawn.height) - 30) + "px";
    }

    /// In the frame after the one that paints the graph: laying out a table takes longer than the graph.
    showTableSoon() {
      if (this.pending) return;
      this.pending = true;
      requestAnimationFrame(() => requestAnimationFrame(() => {
        this.pending = false;
        this.showTable(this.state.values);
        performance.mark("table");
      }));
    }

    showTable(values) {
      this.seen = this.seenView(values);
      const kinds = {functions: () => this.functionsTable(values), callers: () => this.callersTable(values.chosen)};
      const folded = this.model.folded(this.seen), least = this.model.report.folded?.share ?? 0, words = this.seenWords(values);
      this.tablePlace.replaceChildren(words ? el("p", {class: "hint part-of"}, `Only ${words}.`) : "", (kinds[values.table] ?? (() => this.treeTable(values.table)))(), folded <= 0.01 * this.seen.gross ? "" : el("p", {class: "hint folded"},
        `${share(folded, this.seen.gross)} of it is in calls that each have less than ${+(100 * least).toFixed(4)} % of every measure: "[other, N functions]" below their caller. Sums by function are without these.`));
    }

    /// The rows of the table for a spreadsheet: headings, and numbers without units.
    csvRows() {
      const {measure, sides} = this.seen, {table, chosen} = this.state.values;
      const parts = [...sides.map(({key}) => key), ""];
      const columns = parts.flatMap((key) => ["inclusive", "self"].map((part) => [key || (sides.length > 0 ? "change" : ""), measure.key, part].filter(Boolean).join("_")));
      const row = (level, id, one) => {
        const {name = "(nobody above)", library, file, line} = this.model.functions[id] ?? {};
        return [level, name, library, file, line, ...parts.flatMap((key) => { const {total, self} = key ? one[key] : one; return [total, self]; })];
      };
      const rows = {
        functions: () => this.listed.map((one) => row(1, one.id, one)),
        callers: () => {
          if (chosen == null) return [];
          const {callers, callees, itself} = this.around(chosen);
          return [...callers.map((one) => row(-1, one.id, one)), row(0, chosen, itself), ...callees.map((one) => row(1, one.id, one))];
        },
      };
      const opened = () => [...this.tablePlace.querySelectorAll("tbody tr")].filter(({node}) => node).map(({node}) => row(node.level, node.id, node));
      return [["level", "function", "library", "file", "line", ...columns], ...(rows[table] ?? opened)()];
    }

    /// A long name loses its middle where it has no room, as in the graph: templates differ at their ends.
    functionButton(id) {
      const {name, short} = this.model.functions[id];
      const text = short.length > 24 ? [el("span", {class: "cut"}, short.slice(0, -18)), el("span", {class: "tail"}, short.slice(-18))] : short;
      const language = this.model.hasPython ? ` language ${this.model.functions[id].isPython ? "python" : "native"}` : "";
      return el("button", {type: "button", class: "name" + language + (this.matches?.[id] ? " found" : ""), title: `${name}\n${this.placeOf(id)}`, onclick: () => this.choose(id)}, text);
    }

    bar(weight, whole) {
      const meter = el("span", {class: "bar"});
      meter.style.setProperty("--share", whole > 0 ? Math.min(1, weight / whole) : 0);
      return meter;
    }

    figures(one) {
      const {measure, gross} = this.seen;
      return [
        el("td", {class: "number"}, number(measure, one.total), this.bar(Math.abs(one.total), gross)),
        el("td", {class: "number share"}, share(Math.abs(one.total), gross)),
        el("td", {class: "number"}, one.self === 0 ? "–" : number(measure, one.self)),
      ];
    }

    /// A table whose first rows are shown, and a button for more.
    growing(headings, rows, makeRow) {
      const body = el("tbody");
      const more = el("button", {type: "button", class: "more", onclick: () => add(1000)});
      let shown = 0;
      const add = (count) => {
        for (const row of rows.slice(shown, shown + count)) body.append(makeRow(row));
        shown = Math.min(rows.length, shown + count);
        more.hidden = shown === rows.length;
        more.textContent = `Show ${label("count", Math.min(1000, rows.length - shown))} of ${label("count", rows.length - shown)} more`;
      };
      add(rowsAtFirst);
      return el("div", {}, el("table", {class: "wide"}, el("thead", {}, el("tr", {}, headings)), body), more);
    }

    /// A heading that sorts the table of functions.
    sorting(key, text) {
      const isChosen = this.order === key;
      return el("th", {class: "number", scope: "col", "aria-sort": isChosen ? "descending" : "none"},
        el("button", {type: "button", class: "name", onclick: () => { this.order = key; this.showTable(this.state.values); }}, text + (isChosen ? " ▾" : "")));
    }

    functionHeadings() { return [el("th", {scope: "col"}, this.model.report.has_stacks === false ? "size" : "function"), this.sorting("total", "inclusive"), el("th", {class: "number", scope: "col"}, "share"), this.sorting("self", "self")]; }
    headings(through) { return ["function", through ?? "inclusive", "share", "self"].map((text, i) => el("th", {scope: "col", class: i > 0 ? "number" : null}, text)); }

    functionsTable({find}) {
      const size = (one) => Math.abs(this.order === "self" ? one.self : one.total);
      this.listed = this.model.byFunction(this.seen).filter(({id}) => !find || !this.matches || this.matches[id]).sort((a, b) => size(b) - size(a));
      return this.growing(this.functionHeadings(), this.listed, (one) => el("tr", {}, el("td", {class: "function"}, this.functionButton(one.id)), this.figures(one, this.order === "self")));
    }

    treeTable(tree) {
      const body = el("tbody");
      const root = this.seen === this.view ? this.root(tree) : cmt.tree.rootOf(tree, this.model, this.seen);
      body.append(...this.treeRows(root, 0));
      this.openHeaviest(body.firstChild);
      return el("table", {class: "wide", role: "treegrid", "aria-label": tree, onkeydown: (event) => this.treeKey(event, body)}, el("thead", {}, el("tr", {}, this.headings())), body);
    }

    /// Opens rows that nearly all goes through.
    openHeaviest(row) {
      for (let level = 1; row?.open && level < 30; ++level) {
        if (row.node.weight < 0.6 * this.seen.gross) break;
        row.open();
        row = Number(row.nextSibling?.getAttribute("aria-level")) > level ? row.nextSibling : null;
      }
    }

    /// The children's rows from the one of index `from` on, and where there are more, a row that shows them.
    treeRows(node, from) {
      const children = node.children();
      const rows = children.slice(from, from + rowsAtFirst).map((child) => this.treeRow(child));
      const left = children.length - from - rows.length;
      if (left > 0) {
        const more = el("tr", {"aria-level": node.level + 1}, el("td", {colspan: this.headings().length}, el("button", {
          type: "button", class: "more", onclick: () => more.replaceWith(...this.treeRows(node, from + rowsAtFirst)),
        }, `${label("count", left)} more`)));
        rows.push(more);
      }
      return rows;
    }

    treeRow(node) {
      const leaf = node.isLeaf;
      const twist = el("button", {type: "button", class: "twist", tabindex: "-1", "aria-hidden": "true"}, leaf ? "·" : "▸");
      const name = el("td", {class: "function"}, twist, this.functionButton(node.id));
      name.style.paddingLeft = Math.min(node.level - 1, 24) * 10 + "px";
      const row = el("tr", {"aria-level": node.level, "aria-expanded": leaf ? null : "false", tabindex: "0"}, name, this.figures(node));
      row.node = node;
      row.open = () => {
        if (leaf || row.getAttribute("aria-expanded") === "true") return;
        row.setAttribute("aria-expanded", "true");
        twist.textContent = "▾";
        row.after(...this.treeRows(node, 0));
      };
      row.close = () => {
        if (leaf) return;
        row.setAttribute("aria-expanded", "false");
        twist.textContent = "▸";
        while (row.nextSibling && Number(row.nextSibling.getAttribute("aria-level")) > node.level) row.nextSibling.remove();
      };
      twist.onclick = () => (row.getAttribute("aria-expanded") === "true" ? row.close() : row.open());
      return row;
    }

    treeKey(event, body) {
      const row = event.target.closest("tr");
      if (!row || row.parentElement !== body) return;
      const moves = {
        ArrowRight: () => row.open?.(), ArrowLeft: () => row.close?.(),
        ArrowDown: () => row.nextSibling?.focus(), ArrowUp: () => row.previousSibling?.focus(),
      };
      if (!moves[event.key]) return;
      moves[event.key]();
      event.preventDefault();
    }

    /// The memory that a function's callers asked for through it, and the functions that it called.
    callersTable(id) {
      if (id == null || !this.model.functions[id]) return el("p", {class: "hint"}, "Choose a function in the graph or in the table of functions.");
      const {callers, callees, itself} = this.around(id);
      const rows = (title, list) => [
        el("tr", {class: "part"}, el("th", {colspan: this.headings().length, scope: "rowgroup"}, title)),
        ...list.sort((a, b) => b.weight - a.weight).slice(0, 200).map((one) => el("tr", {}, el("td", {class: "function"}, one.id < 0 ? "(nobody above)" : this.functionButton(one.id)), this.figures(one))),
      ];
      const headings = this.headings("through it");
      return el("div", {}, el("table", {class: "wide"}, el("thead", {}, el("tr", {}, headings)),
        el("tbody", {}, rows(callers.length === 1 ? "its caller" : `its ${callers.length} callers`, callers)),
        el("tbody", {class: "itself"}, rows("the function", [itself])),
        el("tbody", {}, rows(callees.length === 1 ? "calls one function that allocates" : `calls ${callees.length} functions that allocate`, callees))),
      el("p", {class: "hint"}, this.placeOf(id)));
    }

    around(id) {
      const {model, seen: view} = this;
      const callers = new Map(), callees = new Map(), itself = cmt.model.noSums(id, view.sides);
      const addSelf = (sum, node) => {
        sum.self += view.self[node];
        for (const side of view.sides) sum[side.key].self += side.self[node];
      };
      const addTotal = (sum, node) => {
        sum.total += view.total[node];
        sum.weight += view.weight[node];
        for (const side of view.sides) sum[side.key].total += side.total[node];
      };
      const add = (map, key, node, ownPart) => {
        if (!map.has(key)) map.set(key, cmt.model.noSums(key, view.sides));
        const sum = map.get(key);
        addTotal(sum, node);
        if (ownPart) addSelf(sum, node);
      };
      model.outermost ??= model.findOutermost();
      for (let node = 1; node < model.count; ++node) {
        if (view.weight[node] === 0) continue;
        const above = model.parent[node];
        if (model.functionOf[model.charged[node]] === id) addSelf(itself, node);
        if (model.functionOf[node] === id) {
          if (model.outermost[node]) {
            addTotal(itself, node);
            add(callers, model.functionOf[above], node, false);
          }
        }
        if (model.functionOf[above] === id && model.charged[node] === node && model.functionOf[node] !== id && !this.repeats(node, id)) add(callees, model.functionOf[node], node, true);
      }
      return {callers: [...callers.values()], callees: [...callees.values()], itself};
    }

    /// Whether the same call, of this node's function by `id`, is also further up its stack.
    repeats(node, id) {
      const {model} = this;
      for (let up = model.parent[node]; up > 0; up = model.parent[up])
        if (model.functionOf[up] === model.functionOf[node] && model.functionOf[model.parent[up]] === id) return true;
      return false;
    }

    resize() { this.flame.resize(); }
    redraw() { this.flame.redraw(); }
  }

  cmt.code = {Code, number, share};
})();
