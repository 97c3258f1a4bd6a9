// Light, dark, or as the system is. The choice is kept for all pages that the browser opens from the same place.
//
// The style sheets have the rules for dark within @media (prefers-color-scheme: dark). This file changes the conditions of
// these rules, so that no colour is written twice. Listeners of "themechange" draw again.
"use strict";
(() => {
  const key = "cmt-theme", themes = ["system", "light", "dark"];
  const system = matchMedia("(prefers-color-scheme: dark)");
  // A browser may refuse to keep anything for a file.
  const kept = () => { try { return localStorage.getItem(key); } catch { return null; } };
  const keep = () => { try { localStorage.setItem(key, theme); } catch { /* it is forgotten */ } };
  let theme = themes.includes(kept()) ? kept() : "system";

  const darkRules = [...document.styleSheets].flatMap((sheet) => [...sheet.cssRules]).filter((rule) => rule.media?.mediaText.includes("prefers-color-scheme"));
  const isDark = () => (theme === "system" ? system.matches : theme === "dark");
  const apply = () => {
    for (const {media} of darkRules) media.mediaText = {system: "(prefers-color-scheme: dark)", light: "not all", dark: "all"}[theme];
    dispatchEvent(new Event("themechange"));
  };
  const choose = (next) => {
    theme = next;
    keep();
    apply();
  };
  const choice = () => {
    const {el} = cmt.elements;
    const select = el("select", {id: "theme", "aria-label": "colours", onchange: ({target}) => choose(target.value)},
      [["system", "Colours of the system"], ["light", "Light"], ["dark", "Dark"]].map(([value, words]) => el("option", {value}, words)));
    select.value = theme;
    return select;
  };

  system.addEventListener("change", () => { if (theme === "system") dispatchEvent(new Event("themechange")); });
  if (theme !== "system") apply();
  cmt.theme = {isDark, choice};
})();
