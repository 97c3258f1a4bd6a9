// Findings as cards: one line each, with the figure first. A click opens the whole text, and a link to what it is about.
"use strict";
(() => {
  const {el, plain} = cmt.elements;
  const shownFirst = 12;

  /// A headline that has no room loses the words after the function's name first, then those before it, which say what the
  /// card's kind says too: "of all allocations are temporary, in main, thr…", then "in main, thr…".
  const headlineOf = (text) => {
    const [, before, where, after] = /^(.*? )(in .+?)((?: for [\d.]+ %)?(?:, through .+)?)$/.exec(text) ?? [null, "", text, ""];
    const part = (name, words) => (words ? el("span", {class: name}, words) : null);
    return el("span", {class: "headline"}, part("before", before), el("span", {class: "name-part"}, part("where", where), part("after", after)));
  };

  /// follow(finding) shows what a finding is about; words(kind) names the kind. A finding has a headline, and may have a
  /// figure and urgent, which is what one must look at.
  const cards = (list, words, follow) => {
    if (list.length === 0) return el("p", {class: "hint"}, "Nothing stands out.");
    const card = (finding) => {
      const headline = plain(finding.headline);
      const link = el("a", {
        href: "#" + finding.part,
        onclick: (event) => {
          event.preventDefault();
          for (const other of document.querySelectorAll(".findings a")) other.toggleAttribute("aria-current", other === event.currentTarget);
          follow(finding);
        },
      }, "Show it");
      return el("li", {"data-kind": finding.kind, class: finding.urgent === true ? "urgent" : null}, el("details", {},
        el("summary", {title: headline}, el("b", {class: "figure"}, plain(finding.figure)), headlineOf(headline), el("span", {class: "kind"}, plain(words(finding.kind)))),
        el("p", {class: "text"}, plain(finding.text)), link));
    };
    const items = list.map(card);
    const more = el("button", {type: "button", class: "more", onclick: () => { for (const item of items) item.hidden = false; more.remove(); }}, `Show ${items.length - shownFirst} more findings`);
    for (const item of items.slice(shownFirst)) item.hidden = true;
    return el("div", {}, el("ol", {class: "findings"}, items), items.length > shownFirst ? more : null);
  };

  cmt.findings = {cards};
})();
