// Moves the four figures together with the γ slider, and sorts the table.
"use strict";
(() => {
  const view = JSON.parse(document.getElementById("view").textContent);
  const { curves, words, rules, places } = view;
  const slider = document.getElementById("gamma"), output = document.getElementById("gamma-words");
  const reads = [...document.querySelectorAll("[data-read]")];
  const steps = [...document.querySelectorAll("button[data-index]")];

  // A scale takes a value to its place between 0 and 1, as the figure's ticks are placed.
  function scale(text) {
    const [kind, low, high] = text.split(" "), ends = [Number(low), Number(high)];
    if (kind === "linear") return (value) => (value - ends[0]) / (ends[1] - ends[0]);
    return (value) => Math.log(value / ends[0]) / Math.log(ends[1] / ends[0]);
  }

  function figure(name) {
    const element = document.getElementById(`figure-${name}`), plot = element.querySelector(".plot");
    const parts = Object.fromEntries([...plot.querySelectorAll("[data-key]")].map((part) => [part.dataset.key, part]));
    return { image: element.querySelector(".frame"), plot, parts, x: scale(plot.dataset.x), y: scale(plot.dataset.y) };
  }

  const [errors, condition, spectrum, gain] = ["errors", "condition", "spectrum", "gain"].map(figure);

  function set(part, attributes) {
    for (const [name, value] of Object.entries(attributes)) part.setAttribute(name, value);
  }

  // The line at γ, and a dot on each curve; what lies above the plot is shown at its edge.
  function follow({ plot, parts, x, y }, i) {
    const across = `${100 * x(places[i])}%`;
    set(plot.querySelector("line.here"), { x1: across, x2: across });
    for (const [key, dot] of Object.entries(parts)) {
      const value = curves[key][i];
      dot.style.display = value === null ? "none" : "";
      if (value !== null) set(dot, { cx: across, cy: `${100 - 100 * Math.min(y(value), 1)}%` });
    }
  }

  const point = ({ x, y }, across, up) => `${(1000 * x(across)).toFixed(1)} ${(1000 - 1000 * y(up)).toFixed(1)}`;

  function redraw(gamma) {
    const height = 1000 - 1000 * spectrum.y(Math.sqrt(gamma));
    set(spectrum.parts.root, { d: gamma > 0 ? `M0 ${height.toFixed(1)}H1000` : "" });
    // Written as the sum of quotients so that σ² cannot underflow.
    const D = (value) => point(gain, value, 1 / (value + gamma / value));
    set(gain.parts.gain, { d: `M${view.fine.map(D).join("L")}` });
    set(gain.parts.gains, { d: view.sigma.map((value) => `M${D(value)}h0`).join("") });
  }

  function describe(i) {
    const named = rules.filter((rule) => rule.index === i).map((rule) => rule.rule);
    return `${words.gammas[i]}${named.length ? ` (${named.slice(0, 2).join(", ")}${named.length > 2 ? ", …" : ""})` : ""}`;
  }

  function show(i) {
    output.textContent = `γ = ${describe(i)}`;
    slider.setAttribute("aria-valuetext", `γ = ${describe(i)}; cross-validation error ${words.cv_error[i]}`);
    for (const read of reads) read.textContent = words[read.dataset.read][i];
    for (const button of steps) {
      const here = Number(button.dataset.index) === i;
      if (button.classList.contains("chip")) button.setAttribute("aria-pressed", String(here));
      else button.closest("tr").classList.toggle("here", here);
    }
    for (const { image } of [errors, condition, spectrum, gain]) {
      image.setAttribute("aria-label", `${image.dataset.caption} Now γ = ${words.gammas[i]}, condition number ${words.condition[i]}, cross-validation error ${words.cv_error[i]}.`);
    }
    follow(errors, i);
    follow(condition, i);
    redraw(curves.gammas[i]);
  }

  let waiting = false;
  function moveTo(i) {
    slider.value = i;
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; show(Number(slider.value)); });
  }

  // A click into a figure along γ moves the slider to the nearest γ.
  function clicked({ plot, x }, event) {
    const box = plot.getBoundingClientRect(), at = (event.clientX - box.left) / box.width;
    const away = places.map((place) => Math.abs(x(place) - at));
    moveTo(away.indexOf(Math.min(...away)));
  }

  function sortBy(header) {
    const column = [...header.parentNode.children].indexOf(header), body = document.querySelector("#rules tbody");
    const down = header.getAttribute("aria-sort") === "ascending", sign = down ? -1 : 1;
    for (const other of header.parentNode.children) other.removeAttribute("aria-sort");
    header.setAttribute("aria-sort", down ? "descending" : "ascending");
    const value = (row) => row.children[column].dataset.value;
    const compare = (a, b) => {
      // Unknown values come last in both directions.
      if (value(a) === "" || value(b) === "") return (value(a) === "") - (value(b) === "");
      return sign * (column === 0 ? value(a).localeCompare(value(b)) : Number(value(a)) - Number(value(b)));
    };
    body.append(...[...body.rows].sort(compare));
  }

  document.documentElement.classList.add("scripted");
  slider.addEventListener("input", () => moveTo(Number(slider.value)));
  for (const button of steps) button.addEventListener("click", () => moveTo(Number(button.dataset.index)));
  for (const one of [errors, condition]) one.plot.addEventListener("click", (event) => clicked(one, event));
  for (const button of document.querySelectorAll("#rules thead button")) button.addEventListener("click", () => sortBy(button.parentNode));
  show(view.start);
  document.documentElement.dataset.ready = "true";
})();
