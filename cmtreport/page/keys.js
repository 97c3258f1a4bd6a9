// The keys of both pages with their list, and the line about who made the page.
"use strict";
(() => {
  const {el, plain} = cmt.elements;
  const list = [
    ["/", "search for a function"], ["Escape", "clear the search, then the zoom, then the span"], ["?", "show or hide this list"],
    ["Tab", "go to the next control"], ["arrow keys", "in the graph: to the next frame; in a plot: move the cursor; on a slider: move an end of the span; in a tree: open and close"],
    ["Enter", "in the graph: zoom to the frame; on a finding: open it"], ["+ and −", "in a plot: zoom"],
  ];

  /// Returns the button that shows the keys, and obeys the keys from now on. Without call stacks there is no search.
  const obey = (state, hasSearch) => {
    const dialog = document.body.appendChild(el("dialog", {id: "keys", "aria-label": "keys"}, el("h2", {}, "Keys"),
      el("table", {}, el("tbody", {}, list.filter(([key]) => key !== "/" || hasSearch).map(([key, words]) => el("tr", {}, el("th", {scope: "row"}, el("kbd", {}, key)), el("td", {}, words))))),
      el("button", {type: "button", onclick: () => dialog.close()}, "Close")));
    const toggle = () => (dialog.open ? dialog.close() : dialog.showModal());
    const clear = () => {
      const {find, focus} = state.values;
      if (find) state.set({find: "", only: false});
      else if (focus.length > 0) state.set({focus: []});
      else state.set({span: state.whole});
    };
    addEventListener("keydown", (event) => {
      const isTyping = event.target.matches?.("input[type=search], select, textarea");
      if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey || (isTyping && event.key !== "Escape")) return;
      if (event.key === "?") toggle();
      else if (event.key === "/" && document.getElementById("find")) document.getElementById("find").focus();
      else if (event.key === "Escape" && !dialog.open) clear();
      else return;
      event.preventDefault();
    });
    return el("button", {type: "button", onclick: toggle, title: "the keys of this page: ?"}, "Keys");
  };

  /// "Made by cmtreport 0.3.0 at 2026-11-26T12:00:00Z: cmtreport app.cmt".
  const maker = () => {
    const {version, time, command} = JSON.parse(document.getElementById("maker")?.textContent ?? "{}");
    return el("footer", {}, el("p", {class: "hint"}, `Made by cmt ${plain(version || "of an unknown version")}${time ? " at " + plain(time) : ""}`, command ? [": ", el("code", {}, plain(command))] : ""));
  };

  cmt.keys = {obey, maker};
})();
