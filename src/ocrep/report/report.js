// Draws the four figures, moves them together with the γ slider, and sorts the table.
"use strict";
(() => {
  const view = JSON.parse(document.getElementById("view").textContent);
  const { curves, words, rules, percent } = view;
  const sigma = view.singular_values.slice(0, view.rank);
  const BLUE = "#0072B2", GREEN = "#009E73", GREY = "#8a8a8a", VERMILION = "#D55E00", PURPLE = "#A65F8E";
  const SYMBOLS = [["circle", "○"], ["diamond", "◇"], ["square", "□"], ["triangle-up", "△"], ["star", "☆"], ["triangle-down", "▽"], ["pentagon", "⬠"], ["hexagon", "⬡"]];
  const SMALL = 1e-300;

  // A logarithmic axis has no zero: γ = 0 is drawn to the left of the other γ.
  const places = curves.gammas.map((gamma, i) => (i === 0 ? curves.gammas[1] / 8 : gamma));
  const first = Math.log10(places[0]), last = Math.log10(places[places.length - 1]);

  const powerOfTen = (exponent) => `10<sup>${String(exponent).replace("-", "−")}</sup>`;

  function gammaAxis() {
    const step = Math.max(1, Math.ceil((last - first) / 7));
    const tickvals = [places[0]], ticktext = ["0"];
    for (let k = Math.ceil(first + 0.5 * step); k <= last; k += 1) {
      if (k % step === 0) { tickvals.push(10 ** k); ticktext.push(powerOfTen(k)); }
    }
    return { ...axis("regularization γ"), type: "log", range: [first - 0.3, last + 0.1], tickvals, ticktext };
  }

  function axis(title) {
    return { title: { text: title, standoff: 8 }, fixedrange: true, zeroline: false, automargin: true, gridcolor: "#ddd" };
  }

  // Whole powers of ten, at most about six of them; within two powers also numbers between.
  function logAxis(title, [low, high]) {
    const step = Math.max(1, Math.ceil((high - low) / 6)), tickvals = [], ticktext = [];
    const between = high - low > 2 ? [1] : high - low > 0.9 ? [1, 2, 5] : high - low > 0.45 ? [1, 1.5, 2, 3, 4, 5, 7] : [1, 1.2, 1.4, 1.6, 1.8, 2, 2.3, 2.6, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9];
    for (let k = Math.floor(low); k <= high; k += 1) {
      for (const digit of between) {
        if (k % step === 0) { tickvals.push(digit * 10 ** k); ticktext.push(between.length > 1 && k >= -3 && k < 4 ? String(Number((digit * 10 ** k).toPrecision(3))) : `${digit === 1 ? "" : `${digit}·`}${powerOfTen(k)}`); }
      }
    }
    return { ...axis(title), type: "log", range: [low, high], tickvals, ticktext };
  }

  function layout(xaxis, yaxis) {
    return {
      xaxis, yaxis, showlegend: false, dragmode: false, hovermode: "closest", paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
      margin: { l: 10, r: 10, t: 6, b: 10 }, font: { family: "system-ui, sans-serif", size: 12.5 },
      hoverlabel: { bgcolor: "#30363c", font: { color: "#fff" } },
    };
  }

  const line = (name, x, y, color, more = {}) =>
    ({ name, x, y, mode: "lines", type: "scatter", hoverinfo: "skip", ...more, line: { color, width: 2.4, ...(more.line || {}) } });
  const dots = (name, x, y, color, more = {}) =>
    ({ name, x, y, mode: "markers", type: "scatter", hoverinfo: "skip", ...more, marker: { color, size: 7, ...(more.marker || {}) } });
  const moving = { line: { color: "#777", width: 1.4 } };
  const known = (values) => values.filter((value) => value !== null && Number.isFinite(value));

  // A huge error at one end of the grid must not flatten the curves.
  function errorRange() {
    const judged = [curves.cv_error, curves.test_error].filter(Boolean).map(known).filter((values) => values.length);
    const all = known([curves.train_error, ...judged].flat());
    const least = Math.max(...judged.map((values) => Math.min(...values)), percent ? 0 : SMALL);
    const most = Math.max(...all, SMALL);
    if (percent) return [-0.02 * Math.min(most, least + 0.3), Math.min(1.06 * most, Math.max(4 * least, least + 0.25))];
    const top = Math.min(1.1 * most, 5 * least), bottom = Math.max(0.9 * Math.min(...all), least / 3);
    return [Math.log10(Math.max(bottom, SMALL)), Math.log10(Math.max(top, 1.5 * bottom, 2 * SMALL))];
  }

  const hover = (name, key) => ({ hoverinfo: "text", text: words[key].map((word, i) => `${name} ${word}<br>γ = ${words.gammas[i]}`) });

  function errors() {
    const range = errorRange();
    const [low, high] = percent ? range : range.map((exponent) => 10 ** exponent);
    const shown = (error) => (error === null ? null : Math.min(error, high));
    const yaxis = percent ? { ...axis(view.error_name), range, tickformat: ".0%" } : logAxis(view.error_name, range);
    const series = [["training", "train_error", GREY, "dot"], ["cross-validation", "cv_error", BLUE, "solid"], ["test", "test_error", GREEN, "dash"]];
    const lines = series.filter(([, key]) => curves[key]);
    const legend = lines.map(([name, , color, dash]) => ({ name, color, dash }));
    const traces = lines.map(([name, key, color, dash]) => line(name, places, curves[key], color, { line: { dash }, ...hover(name, key) }));
    const mark = (name, those, more) => dots(name, those.map((rule) => places[rule.index]), those.map((rule) => shown(rule.cv_error)), VERMILION,
      { hoverinfo: "text", text: those.map((rule) => `${rule.rule}<br>γ = ${words.gammas[rule.index]}<br>CV ${words.cv_error[rule.index]}`), cliponaxis: false, ...more });
    const others = rules.filter((rule) => !rule.main);
    if (others.length) {
      traces.push(mark("other rules", others, { marker: { symbol: "cross-thin-open", size: 8, color: PURPLE, line: { width: 1.5 } } }));
    }
    rules.filter((rule) => rule.main).forEach((rule, k) => {
      const [symbol, glyph] = SYMBOLS[k % SYMBOLS.length];
      traces.push(mark(rule.rule, [rule], { marker: { symbol: `${symbol}-open`, size: 12, line: { width: 2 } } }));
      legend.push({ name: rule.rule, color: VERMILION, glyph });
    });
    if (others.length) legend.push({ name: "other rules", color: PURPLE, glyph: "+" });
    const at = traces.length;
    traces.push(line("γ", [], [], "#777", moving), dots("errors at γ", [], [], lines.map(([, , color]) => color), { marker: { size: 9 } }));
    const update = (i) => [{
      x: [[places[i], places[i]], lines.map(() => places[i])],
      y: [[low, high], lines.map(([, key]) => shown(curves[key][i]))],
    }, [at, at + 1]];
    return { traces, legend, layout: layout(gammaAxis(), yaxis), update };
  }

  function condition() {
    const values = known(curves.condition);
    const low = Math.min(...values, 1e300) / 1.6, high = Math.max(...values, 1) * 1.6;
    const yaxis = logAxis("condition number μ(Hʳᵉᵍ)", [Math.log10(Math.min(low, high / 3)), Math.log10(high)]);
    const traces = [line("μ(Hʳᵉᵍ)", places, curves.condition, BLUE, hover("μ", "condition"))];
    const ocrep = rules.find((rule) => rule.rule === "ocrep");
    if (ocrep) traces.push(dots("OCReP", [places[ocrep.index]], [curves.condition[ocrep.index]], VERMILION, { marker: { symbol: "circle-open", size: 12, line: { width: 2 } } }));
    if (view.condition_number) traces.push(line("without regularization", [places[0], places[places.length - 1]], [view.condition_number, view.condition_number], GREY, { line: { dash: "dot", width: 1.5 } }));
    const at = traces.length;
    traces.push(line("γ", [], [], "#777", moving), dots("μ at γ", [], [], BLUE, { marker: { size: 9 } }));
    const update = (i) => [{ x: [[places[i], places[i]], [places[i]]], y: [[low, high], [curves.condition[i]]] }, [at, at + 1]];
    const legend = [{ name: "condition number", color: BLUE, dash: "solid" }, { name: "without regularization", color: GREY, dash: "dot" }];
    if (ocrep) legend.push({ name: "ocrep", color: VERMILION, glyph: "○" });
    return { traces, legend, layout: layout(gammaAxis(), yaxis), update };
  }

  function spectrum() {
    const all = view.singular_values, ends = [0.5, all.length + 0.5];
    const level = (name, y, color, more) => line(name, ends, [y, y], color, { line: { width: 1.6, ...more } });
    const traces = [
      dots("kept (σ ≥ √γ)", [], [], BLUE, { hoverinfo: "x+y", marker: { size: 5 } }),
      dots("damped (σ < √γ)", [], [], VERMILION, { hoverinfo: "x+y", marker: { size: 5, symbol: "x-thin-open" } }),
      line("√γ", [], [], VERMILION),
      level("precision floor", view.floor, GREY, { dash: "dash" }), level("rank tolerance", view.tolerance, GREY, { dash: "dot" }),
    ];
    const tallest = Math.max(view.tolerance, ...all.slice(0, 1), SMALL), deepest = Math.max(Math.min(view.tolerance, ...known(all).filter((value) => value > 0)), tallest * 1e-18, SMALL);
    const yaxis = logAxis("singular value σ", [Math.log10(deepest) - 0.5, Math.log10(tallest) + 1]);
    const update = (i) => {
      const root = Math.sqrt(curves.gammas[i]), x = [[], []], y = [[], []];
      all.forEach((value, k) => { const side = value >= root ? 0 : 1; x[side].push(k + 1); y[side].push(value); });
      return [{ x: [...x, ends], y: [...y, root > 0 ? [root, root] : [null, null]] }, [0, 1, 2]];
    };
    const legend = [
      { name: "kept, σ ≥ √γ", color: BLUE, glyph: "●" }, { name: "damped, σ < √γ", color: VERMILION, glyph: "×" }, { name: "√γ", color: VERMILION, dash: "solid" },
      { name: "precision floor", color: GREY, dash: "dash" }, { name: "rank tolerance", color: GREY, dash: "dot" },
    ];
    return { traces, legend, layout: layout({ ...axis("direction"), range: ends }, yaxis), update };
  }

  function gain() {
    const top = sigma.length ? sigma[0] : 1, bottom = sigma.length ? sigma[sigma.length - 1] : 0.1, fine = [];
    for (let k = 0; k <= 160; k += 1) fine.push((bottom / 1.5) * ((2.25 * top) / bottom) ** (k / 160));
    // Written as the sum of quotients so that σ² cannot underflow.
    const D = (values, gamma) => values.map((value) => 1 / (value + gamma / value));
    const yaxis = logAxis("gain D(σ)", [Math.log10(1 / top) - 2.5, Math.log10(1 / bottom) + 0.5]);
    const xaxis = logAxis("singular value σ", [Math.log10(fine[0]), Math.log10(fine[160])]);
    const traces = [
      line("γ = 0: 1/σ", fine, D(fine, 0), GREY, { line: { dash: "dot", width: 1.5 } }), line("D(σ) = σ/(σ² + γ)", fine, [], BLUE),
      dots("the singular values of H", sigma, [], BLUE, { marker: { size: 5 } }),
    ];
    const update = (i) => [{ y: [D(fine, curves.gammas[i]), D(sigma, curves.gammas[i])] }, [1, 2]];
    const legend = [
      { name: "D(σ) = σ/(σ² + γ)", color: BLUE, dash: "solid" }, { name: "the singular values of H", color: BLUE, glyph: "●" }, { name: "without regularization, 1/σ", color: GREY, dash: "dot" },
    ];
    return { traces, legend, layout: layout(xaxis, yaxis), update };
  }

  const figures = Object.entries({ errors, condition, spectrum, gain }).map(([name, draw]) => ({ element: document.getElementById(`figure-${name}`), ...draw() }));
  const slider = document.getElementById("gamma"), output = document.getElementById("gamma-words");
  const reads = [...document.querySelectorAll("[data-read]")];
  const steps = [...document.querySelectorAll("button[data-index]")];

  // Outside the plot: on a phone a legend inside would cover the data.
  function writeLegend(element, legend) {
    const list = document.createElement("ul");
    list.className = "legend";
    list.setAttribute("aria-hidden", "true");
    for (const { name, color, dash, glyph } of legend) {
      const item = document.createElement("li"), swatch = document.createElement("span");
      swatch.className = dash ? `swatch ${dash}` : "glyph";
      swatch.style.color = color;
      swatch.textContent = glyph || "";
      item.append(swatch, name);
      list.append(item);
    }
    element.parentNode.after(list);
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
    for (const { element, update } of figures) {
      const image = element.parentNode;
      image.setAttribute("aria-label", `${image.dataset.caption} Now γ = ${words.gammas[i]}, condition number ${words.condition[i]}, cross-validation error ${words.cv_error[i]}.`);
      Plotly.restyle(element, ...update(i));
    }
  }

  let waiting = false;
  function moved() {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; show(Number(slider.value)); });
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
  for (const { element, legend } of figures) writeLegend(element, legend);
  slider.addEventListener("input", moved);
  for (const button of steps) button.addEventListener("click", () => { slider.value = button.dataset.index; moved(); });
  for (const button of document.querySelectorAll("#rules thead button")) button.addEventListener("click", () => sortBy(button.parentNode));
  Promise.all(figures.map(({ element, traces, layout: own }) => Plotly.newPlot(element, traces, own, { displayModeBar: false, responsive: true })))
    .then(() => {
      // Plotly measures text in a separate picture, which screen readers must skip.
      document.getElementById("js-plotly-tester")?.setAttribute("aria-hidden", "true");
      show(Number(slider.value));
      document.documentElement.dataset.ready = "true";
    });
})();
