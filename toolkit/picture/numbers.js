// Numbers with their units, as the tools write them, and the ticks of axes, by the rules of axis.cpp.
"use strict";
window.cmt = {};
(() => {
  const rules = JSON.parse(document.getElementById("tick_rules").textContent);
  const magnitude = (unit, number) => rules[unit].magnitudes.findLast(([size]) => Math.abs(number) >= size) ?? rules[unit].magnitudes[0];
  const withUnit = (number, [size, name], digits) => {
    const text = String(+(number / size).toFixed(digits));
    return text === "0" || name === "" ? text : text + " " + name;
  };
  const label = (unit, number) => {
    if (number == null) return "–";
    if (unit === "count") return number.toLocaleString("en-US", {maximumFractionDigits: 2}).replace("-", "−");
    if (unit === "one_in" && number >= 1) return `${+(100 - 100 / number).toFixed(Math.floor(Math.log10(number)) + 1)} %`;
    const [size, name] = magnitude(unit, number);
    const scaled = number / size, most = Math.abs(scaled);
    const digits = Number.isInteger(scaled) ? 0 : most < 9.995 ? 2 : most < 99.95 ? 1 : 0;
    return (scaled.toFixed(digits) + " " + name).replace("-", "−");
  };
  const toScale = (number, log) => (!log ? number : number >= 1 ? 1 + Math.log2(number) : number);
  const fromScale = (place, log) => (!log ? place : place >= 1 ? 2 ** (place - 1) : place);

  const roundStep = (unit, step) => {
    const {base, least_step: least, factors} = rules[unit];
    if (step <= least) return least;
    const power = base ** Math.floor(Math.log(step) / Math.log(base) + 1e-9);
    return power * [...factors, base].find((factor) => factor * power >= step * (1 - 1e-9));
  };
  const linearTicks = (unit, low, high, most) => {
    const step = roundStep(unit, (high - low) / (most - 1));
    const unitOfAll = magnitude(unit, high);
    const ticks = [];
    for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-6 && ticks.length <= most; ++i)
      ticks.push([i * step, withUnit(i * step, unitOfAll, 6)]);
    return ticks;
  };
  const logTicks = (unit, low, high, most) => {
    const {base} = rules[unit];
    const first = low < 1 ? 0 : Math.ceil(Math.log(low) / Math.log(base) - 1e-9);
    const last = Math.floor(Math.log(Math.max(high, 1)) / Math.log(base) + 1e-9);
    if (last <= first) return linearTicks(unit, low, high, most);
    const every = Math.max(1, Math.ceil((last - first + 1) / most));
    const ticks = low <= 0 ? [[0, "0"]] : [];
    for (let power = first; power <= last; power += every)
      ticks.push([base ** power, withUnit(base ** power, magnitude(unit, base ** power), 0)]);
    return ticks;
  };

  /// [[position, label]…] of the visible part of an axis.
  const ticksOf = (axis, low, high, pixels, distance) => {
    const most = Math.max(2, Math.floor(pixels / distance));
    const make = axis.log ? logTicks : linearTicks;
    const ticks = axis.ticks.length > 0 ? axis.ticks : make(axis.unit, fromScale(low, axis.log), fromScale(high, axis.log), most);
    const kept = [];
    for (const [number, text] of ticks) {
      const at = toScale(number, axis.log);
      const far = ([other]) => (Math.abs(other - at) / (high - low)) * pixels >= distance / 2;
      if (at >= low && at <= high && kept.every(far)) kept.push([at, text]);
    }
    return kept.sort((a, b) => a[0] - b[0]);
  };

  cmt.numbers = {label, toScale, fromScale, ticksOf};
})();
