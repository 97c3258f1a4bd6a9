// The flame graph or icicle of a view. flame-chart-js draws it on a canvas. This file adds four things that the library
// lacks. Frames too narrow to see are left out. A flame graph has its root at the bottom. The keyboard moves from frame
// to frame. A screen reader reads each frame.
"use strict";
(() => {
  const {el} = cmt.elements;
  const rowHeight = 18;
  const levelHeight = rowHeight + 1;
  const narrowest = 0.4;  // pixels of a frame that is drawn
  const narrowestLabel = 46;  // room for some four letters
  const hues = [206, 36, 152, 322, 262, 18, 100, 184];
  // In a report with functions of Python: blue and green ones are Python's, warm ones native.
  const pythonHues = [206, 160, 235, 182, 222, 140], nativeHues = [36, 12, 56, 350, 24, 46];
  const pythonHue = 206, nativeHue = 36;

  const hash = (text) => {
    let sum = 7;
    for (let i = 0; i < text.length; ++i) sum = (sum * 31 + text.charCodeAt(i)) | 0;
    return Math.abs(sum);
  };

  /// A strong colour for each of the largest functions, which memory over time has too. The others have a pale one for each
  /// library, in shades by function; in a report with functions of Python, one for these and one for native functions.
  /// Frames of a signed measure are red for more and blue for less.
  class Colours {
    constructor(model) {
      this.libraries = new Map();
      this.functions = model.functions;
      this.turns = model.functions.map(({name}) => hash(name) % 49);
      const ownHues = (id) => (!model.hasPython ? hues : this.functions[id].isPython ? pythonHues : nativeHues);
      this.largest = new Map((model.largest ?? []).map((id, i) => [id, ownHues(id)[i]]));
      this.hasPython = model.hasPython;
      for (const {library} of model.functions) this.libraries.set(library, (this.libraries.get(library) ?? 0) + 1);
      [...this.libraries].sort((a, b) => b[1] - a[1]).forEach(([library], i) => this.libraries.set(library, hues[i]));
      this.readScheme();
    }

    readScheme() {
      this.dark = cmt.theme.isDark();
      this.text = this.dark ? "#e6edf3" : "#1c2128";
      this.ground = this.dark ? "#0d1117" : "#ffffff";
    }

    /// `turn` from 0 to 48 varies the colour, so that neighbours differ.
    shade(hue, saturation, turn) {
      const [around, light] = [(turn % 7) - 3, Math.floor(turn / 7) - 3];
      return this.dark ? `hsl(${hue + 5 * around},${saturation * 0.75}%,${27 + light}%)` : `hsl(${hue + 5 * around},${saturation}%,${77 + 1.3 * light}%)`;
    }

    /// Without a measure's sign; -1: of no function.
    ofFunction(id, isFaint = false) {
      if (id < 0) return this.dark ? "#30363d" : "#d8dee4";
      const own = this.largest.get(id);
      if (own != null && !isFaint) return this.dark ? `hsl(${own},52%,38%)` : `hsl(${own},68%,68%)`;
      const hue = this.hasPython ? (this.functions[id].isPython ? pythonHue : nativeHue) : this.libraries.get(this.functions[id].library);
      const isPale = this.largest.size > 0 && !this.hasPython;
      return this.shade(hue ?? 210, hue == null || isFaint ? 9 : isPale ? 28 : 58, this.turns[id]);
    }

    /// `found`: whether the search matches it, or null without a search.
    of(node, signed, found) {
      if (found) return this.dark ? "#8f6a00" : "#ffd43b";
      if (node.id < 0) return this.ofFunction(-1);
      const turn = this.turns[node.id];
      if (signed) {
        if (node.total === 0) return this.shade(210, 9, turn);
        const share = Math.min(1, Math.abs(node.total) / (node.weight || 1));
        return this.shade(node.total < 0 ? 212 : 6, found === false ? 12 : 20 + 65 * share, turn - (turn % 7) + 3);
      }
      return this.ofFunction(node.id, found === false);
    }
  }

  /// Frames in the form of the library: the ancestors of the focus as wide as all, then what is below it.
  const layOut = (focus, width, colourOf, nameOf) => {
    const least = (focus.weight / Math.max(1, width)) * narrowest;
    let levels = 0;
    const make = (node, start, duration, parent) => {
      const frame = {node, start, duration, parent, name: nameOf(node), color: colourOf(node), children: []};
      levels = Math.max(levels, node.level + 1);
      return frame;
    };
    const fill = (frame) => {
      let at = frame.start;
      for (const child of frame.node.children(least)) {
        const below = make(child, at, child.weight, frame);
        frame.children.push(below);
        fill(below);
        at += child.weight;
      }
    };
    const line = [];
    for (let node = focus; node; node = node.parent) line.unshift(node);
    let top = null, last = null;
    for (const node of line) {
      const frame = make(node, 0, focus.weight, last);
      if (last) last.children.push(frame);
      top ??= frame;
      last = frame;
    }
    fill(last);
    return {top, focus: last, levels};
  };

  class Flame {
    /// `actions`: words(node), full words for a tooltip; enter(node), to focus it.
    constructor(place, model, actions) {
      Object.assign(this, {place, model, actions, colours: new Colours(model), current: null});
      this.tip = document.body.appendChild(el("div", {class: "tip", role: "tooltip"}));
      this.scroll = place.appendChild(el("div", {class: "flame"}));
      this.scroll.addEventListener("scroll", () => { this.scrolled = true; }, {passive: true});
      this.spoken = place.appendChild(el("p", {class: "spoken", "aria-live": "polite"}));
      this.mark = el("div", {class: "mark"});
      this.drawn = null;
    }

    /// `shown`: root, focus, signed, shape, found (by function, or null).
    show(shown) {
      this.shown = shown;
      const {focus, signed, shape, found} = shown;
      const width = (this.width ??= Math.max(200, this.place.clientWidth));
      this.laid = layOut(focus, width, (node) => this.colours.of(node, signed, found && node.id >= 0 ? Boolean(found[node.id]) : null), this.actions.name);
      this.up = shape === "flame";
      this.rows = Math.max(3, this.laid.levels);
      const height = this.rows * levelHeight + 2;
      if (this.drawn?.width !== width || this.drawn.height !== height) this.makeChart(width, height);
      else this.plugin.setData([this.laid.top]);
      if (this.up || this.scrolled) requestAnimationFrame(() => { this.scroll.scrollTop = this.up ? height : 0; });  // costs a layout
      this.scrolled = false;
      this.moveTo(this.laid.focus, false);
    }

    makeChart(width, height) {
      this.scroll.textContent = "";
      const canvas = this.canvas = el("canvas", {
        width, height, tabindex: 0, role: "application",
        "aria-label": "Call tree. Arrow keys move between frames, Enter focuses the frame, Escape goes back to all. The table beside it has the same numbers.",
      });
      this.scroll.append(canvas, this.mark);
      // The wheel scrolls the page; the library zooms by it only with Ctrl.
      canvas.addEventListener("wheel", (event) => { if (!event.ctrlKey) event.stopImmediatePropagation(); }, {capture: true});
      canvas.addEventListener("mouseleave", () => this.hideTip());
      canvas.addEventListener("keydown", (event) => this.key(event));
      canvas.addEventListener("focus", () => this.moveTo(this.current, true));
      canvas.addEventListener("blur", () => { this.mark.hidden = true; });
      const {FlameChartContainer, FlameChartPlugin} = flameChartJs;
      this.plugin = new FlameChartPlugin({data: [this.laid.top]});
      const place = this.plugin.calcRect.bind(this.plugin);
      this.plugin.calcRect = (start, duration, level) => place(start, duration, this.up ? this.rows - 1 - level : level);
      this.plugin.setPositionY = () => {};  // the canvas is as high as the tree, and its frame scrolls
      this.drawn = {width, height};
      this.plugin.on("select", ({node}) => { if (node) this.actions.enter(node.source.node); });
      this.chart = new FlameChartContainer({canvas, plugins: [this.plugin], settings: {
        options: {tooltip: (region, engine, mouse) => this.showTip(region, mouse)},
        styles: {
          main: {
            blockHeight: rowHeight, font: "12px system-ui, sans-serif", fontColor: this.colours.text,
            backgroundColor: this.colours.ground, blockPaddingLeftRight: 5,
          },
          timeGrid: {color: "rgba(0,0,0,0)"},
        },
      }});
      for (const engine of this.chart.renderEngine.children) engine.minTextWidth = narrowestLabel;
      canvas.style.opacity = 0;  // it is black until the library draws, in the next frame
      requestAnimationFrame(() => { canvas.style.opacity = ""; });
    }

    resize() {
      this.width = null;
      this.show(this.shown);
    }

    /// After a change between light and dark.
    redraw() {
      this.colours.readScheme();
      this.drawn = null;
      this.show(this.shown);
    }

    /// Moves the keyboard's frame; `visibly` where the canvas has the focus.
    moveTo(frame, visibly) {
      this.current = frame;
      this.mark.hidden = !visibly;
      if (!visibly || !frame) return;
      const {x, y, w} = this.plugin.calcRect(frame.start, frame.duration, frame.node.level);
      Object.assign(this.mark.style, {left: Math.max(0, x) + "px", top: y + "px", width: Math.max(3, w) + "px", height: rowHeight + "px"});
      this.mark.scrollIntoView({block: "nearest"});
      this.spoken.textContent = this.actions.words(frame.node).join(", ");
    }

    key(event) {
      const {current} = this;
      const beside = (step) => current.parent?.children[current.parent.children.indexOf(current) + step];
      const deeper = this.up ? "ArrowUp" : "ArrowDown", higher = this.up ? "ArrowDown" : "ArrowUp";
      const next = {
        [deeper]: () => current.children[0], [higher]: () => current.parent,
        ArrowLeft: () => beside(-1), ArrowRight: () => beside(1), Home: () => this.laid.top,
      }[event.key];
      if (next) {
        const frame = next();
        if (frame) this.moveTo(frame, true);
      } else if (event.key === "Enter" || event.key === " ") {
        this.actions.enter(current.node);
        this.canvas.focus();
      } else if (event.key === "Escape" || event.key === "Backspace") {
        this.actions.enter(this.shown.root);
        this.canvas.focus();
      } else {
        return;
      }
      event.preventDefault();
    }

    showTip(region, mouse) {
      if (!region || !mouse) return this.hideTip();
      const [name, ...lines] = this.actions.words(region.data.source.node);
      this.tip.replaceChildren(el("b", {}, name), ...lines.map((line) => el("div", {}, line)));
      const box = this.canvas.getBoundingClientRect();
      this.tip.style.display = "block";
      const left = Math.min(box.left + mouse.x + 14, innerWidth - this.tip.offsetWidth - 8);
      const below = box.top + mouse.y + 18, fits = below + this.tip.offsetHeight < innerHeight;
      this.tip.style.left = Math.max(4, left) + "px";
      this.tip.style.top = (fits ? below : box.top + mouse.y - this.tip.offsetHeight - 10) + "px";
    }

    hideTip() { this.tip.style.display = "none"; }
  }

  Object.assign(cmt, {Flame, Colours, hues});
})();
