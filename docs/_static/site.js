/* Names for readers of the screen that the theme and the gallery leave out. */
document.addEventListener("DOMContentLoaded", () => {
  const named = (element, name) => name && element.setAttribute("aria-label", name.trim().replace(/\s+/g, " "));
  document.querySelectorAll("button.search-button-field").forEach((button) => named(button, button.textContent));
  document.querySelectorAll("details > summary").forEach((summary) => {
    const link = summary.parentElement.parentElement.querySelector(":scope > a");
    if (!summary.textContent.trim() && link) named(summary, `Pages of ${link.textContent}`);
  });
  document.querySelectorAll(".sphx-glr-thumbcontainer a").forEach((link) => named(link, link.textContent));
});
