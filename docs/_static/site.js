document.addEventListener("DOMContentLoaded", () => {
  // Names for readers of the screen that the theme and the gallery leave out.
  const named = (element, name) => name && element.setAttribute("aria-label", name.trim().replace(/\s+/g, " "));
  document.querySelectorAll("button.search-button-field").forEach((button) => named(button, button.textContent));
  document.querySelectorAll("details > summary").forEach((summary) => {
    const link = summary.parentElement.parentElement.querySelector(":scope > a");
    if (!summary.textContent.trim() && link) named(summary, `Pages of ${link.textContent}`);
  });
  document.querySelectorAll(".sphx-glr-thumbcontainer a").forEach((link) => named(link, link.textContent));

  // Long names in tables may break between their words.
  document.querySelectorAll("td code.literal .pre").forEach((code) => {
    const words = code.textContent.split(/(?<=[a-z])(?=[A-Z])|(?<=[_.(=])/);
    code.replaceChildren(...words.flatMap((word) => [word, document.createElement("wbr")]));
  });

  // What is wider than the page fades at its right edge until it is scrolled to its end.
  const wide = document.querySelectorAll("article :is(.pst-scrollable-table-container, .wide-picture, pre, p:has(> img))");
  const faded = (box) => box.classList.toggle("more-behind", box.scrollWidth - box.clientWidth - box.scrollLeft > 8);
  wide.forEach((box) => box.addEventListener("scroll", () => faded(box)));
  const all = () => wide.forEach(faded);
  window.addEventListener("load", all);
  window.addEventListener("resize", all);
});
