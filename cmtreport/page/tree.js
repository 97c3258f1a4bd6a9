// The call tree of a view, node by node as it is looked at: top-down (who is called) or bottom-up (who calls).
//
// A TreeNode has a key (its name in the fragment) and an id (its function, or -1 for the root). It also has self,
// total, weight, parent and level. Its function children(least) returns the children of at least that weight, the
// heaviest first.
"use strict";
(() => {
  class TreeNode {
    constructor(key, id, parent) {
      Object.assign(this, {key, id, parent, level: parent ? parent.level + 1 : 0, self: 0, total: 0, weight: 0, kids: null});
    }

    children(least = 0) {
      const order = (a, b) => b.weight - a.weight || a.id - b.id;
      if (least > 0 && !this.kids) return this.makeChildren(least).sort(order);
      this.kids ??= this.makeChildren(0).sort(order);
      return least > 0 ? this.kids.filter(({weight}) => weight >= least) : this.kids;
    }

    /// The keys from below the root to this node.
    get path() { return this.parent ? [...this.parent.path, this.key] : []; }

    /// The node at the end of a path, or the last on the way to it that is there.
    at(path) {
      let node = this;
      for (const key of path) {
        const next = node.children().find((child) => child.key === key);
        if (!next) break;
        node = next;
      }
      return node;
    }
  }

  /// The key is the number of the report's node.
  class TopDown extends TreeNode {
    constructor(model, view, node = 0, parent = null) {
      super(node, model.functionOf[node], parent);
      Object.assign(this, {model, view, self: view.self[node], total: view.total[node], weight: view.weight[node]});
      for (const side of view.sides) this[side.key] = {self: side.self[node], total: side.total[node]};
    }

    makeChildren(least) {
      const {model, view} = this;
      const children = [];
      for (let at = model.childStarts[this.key]; at < model.childStarts[this.key + 1]; ++at) {
        const child = model.children[at];
        if (view.weight[child] > 0 && view.weight[child] >= least) children.push(new TopDown(model, view, child, this));
      }
      return children;
    }

    /// By node of the report, whether its own allocations are in this node.
    allocating() {
      const {model, key} = this, keep = new Uint8Array(model.count);
      keep[key] = 1;
      for (let node = key + 1; node < model.count; ++node) keep[node] = keep[model.parent[node]];
      return keep;
    }

    get isLeaf() { return this.model.childStarts[this.key] === this.model.childStarts[this.key + 1]; }

    /// The node of the report with this number: the path to it is known.
    static path(model, node) {
      const path = [];
      for (; node > 0; node = model.parent[node]) path.unshift(node);
      return path;
    }
  }

  /// Allocations by the function that made them, below it by its callers. The key is the number of the function.
  class BottomUp extends TreeNode {
    /// `places`: pairs of the node that allocated and the one reached on the way up from it.
    constructor(model, view, id = -1, parent = null, places = null) {
      super(id, id, parent);
      Object.assign(this, {model, view, places: places ?? []});
      for (const {key} of view.sides) this[key] = {self: 0, total: 0};
    }

    allocating() {
      const keep = new Uint8Array(this.model.count);
      for (let i = 0; i < this.places.length; i += 2) keep[this.places[i]] = 1;
      return keep;
    }

    get isLeaf() { return this.places.every((here, i) => i % 2 === 0 || this.model.parent[here] <= 0); }

    static root(model, view) {
      const root = new BottomUp(model, view);
      for (let node = 0; node < model.count; ++node) if (view.width[node] !== 0) root.places.push(node, model.charged[node]);
      Object.assign(root, {total: view.sum, weight: view.gross});
      for (const side of view.sides) root[side.key].total = side.total[0];
      return root;
    }

    makeChildren(least) {
      const {model, view, places} = this;
      const children = new Map();
      for (let i = 0; i < places.length; i += 2) {
        const allocating = places[i], here = this.parent ? model.parent[places[i + 1]] : places[i + 1];
        if (here <= 0) continue;
        const id = model.functionOf[here];
        let child = children.get(id);
        if (!child) children.set(id, (child = new BottomUp(model, view, id, this)));
        child.places.push(allocating, here);
        child.total += view.self[allocating];
        child.weight += view.width[allocating];
        if (!this.parent) child.self += view.self[allocating];
        for (const side of view.sides) {
          child[side.key].total += side.self[allocating];
          if (!this.parent) child[side.key].self += side.self[allocating];
        }
      }
      return [...children.values()].filter(({weight}) => weight >= least);
    }
  }

  const rootOf = (tree, model, view) => (tree === "bottom-up" ? BottomUp.root(model, view) : new TopDown(model, view));

  cmt.tree = {rootOf, TopDown, BottomUp};
})();
