// Makes elements. Text only ever becomes text: no name from a trace is read as markup.
"use strict";
(() => {
  /// Makes an element: el("button", {class: "plain", onclick: f}, "Reset"). A function, "value" and "checked" become
  /// properties of the element. All others become attributes. null and false are left out.
  const el = (tag, attributes = {}, ...children) => {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (value == null || value === false) continue;
      if (typeof value === "function" || name === "value" || name === "checked") element[name] = value;
      else element.setAttribute(name, value === true ? "" : value);
    }
    element.append(...children.flat().filter((child) => child != null && child !== false));
    return element;
  };

  /// A table of rows of cells. A heading that begins with "#" makes a column of numbers, aligned to the right.
  const table = (caption, headings, rows) => {
    const numeric = headings.map((heading) => heading.startsWith("#"));
    const cell = (tag, text, i) => el(tag, {class: numeric[i] ? "number" : null, scope: tag === "th" ? "col" : null}, text);
    return el("table", {}, caption ? el("caption", {}, caption) : null,
      el("thead", {}, el("tr", {}, headings.map((heading, i) => cell("th", heading.replace(/^#/, ""), i)))),
      el("tbody", {}, rows.map((row) => el("tr", {}, row.map((text, i) => cell("td", text, i))))));
  };

  /// A group of buttons with one pressed: [[value, words]…].
  const choice = (name, values, current, choose) => el("span", {class: "choice", role: "group", "aria-label": name},
    values.map(([value, text]) => el("button", {
      type: "button", "aria-pressed": String(value === current), "data-value": value,
      onclick: (event) => {
        for (const other of event.target.parentElement.children) other.setAttribute("aria-pressed", String(other === event.target));
        choose(value);
      },
    }, text)));

  /// Replaces control characters, which a name from a hostile trace may contain, by U+FFFD.
  const plain = (text) => String(text).replace(/[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g, "\ufffd");

  /// A long text without its middle: templates differ at their ends.
  const shorten = (text, most) => (text.length <= most ? text : text.slice(0, most - 17) + "…" + text.slice(-16));

  cmt.elements = {el, table, choice, plain, shorten};
})();
