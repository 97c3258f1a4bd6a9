// Draws the panels of a picture, below each other and as high as fills the window.
"use strict";
(() => {
  const picture = JSON.parse(document.getElementById("picture").textContent);
  const main = document.getElementById("panels");
  const legendRoom = 44;  // below a plot: its legend or readout, and what is between panels

  const width = () => Math.max(320, main.clientWidth);
  /// The height of one plot, if all plots share the window.
  const height = () => {
    const taken = main.getBoundingClientRect().top + scrollY;
    const titles = picture.panels.reduce((sum, panel) => sum + (panel.title ? 34 : 0) + (panel.heat ? 28 : 0) + legendRoom, 0);
    const shares = Math.max(1, picture.panels.length);
    return Math.min(900, Math.max(280, Math.floor((innerHeight - taken - titles) / shares)));
  };

  let shown = null;  // the panel of details
  const drawAll = () => {
    main.textContent = "";
    const {x} = picture.panels[0] ?? {};
    const shared = picture.panels.length > 1 && picture.panels.every((panel) => panel.x.title === x.title && panel.x.unit === x.unit);
    const settings = {
      width: width(), height: height(), sync: shared ? "panels" : null, room: Math.max(0, ...picture.panels.map(cmt.panels.roomOfPanel)),
    };
    const place = document.createElement("section"), choice = document.createElement("select");
    const drawDetails = () => {
      place.textContent = "";
      if (shown == null) return;
      choice.selectedIndex = shown + 1;
      const panel = picture.details[shown];
      place.appendChild(document.createElement("h2")).textContent = panel.title;
      cmt.panels.drawPanel(panel, place.appendChild(document.createElement("div")), {...settings, sync: null});
    };
    settings.onDetails = (index) => {
      shown = index;
      drawDetails();
      place.scrollIntoView({block: "nearest"});
    };
    window.plots = picture.panels.map((panel) => {
      main.appendChild(document.createElement("h2")).textContent = panel.title;
      return cmt.panels.drawPanel(panel, main.appendChild(document.createElement("div")), settings);
    });
    main.appendChild(place);
    if (picture.details.length === 0) return;
    // A list of all details serves users of the keyboard.
    choice.setAttribute("aria-label", "show details of");
    choice.add(new Option("show details of …"));
    picture.details.forEach(({title}) => choice.add(new Option(title)));
    choice.addEventListener("change", () => { if (choice.selectedIndex > 0) settings.onDetails(choice.selectedIndex - 1); });
    main.insertBefore(choice, place);
    drawDetails();
  };

  drawAll();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  addEventListener("resize", () => window.plots.forEach((plot) => plot.setSize({width: width(), height: height()})));
})();
