// Returns the targets of the page that are smaller than 24 x 24 px (WCAG 2.2, 2.5.8), as text.
// A target in a sentence is exempt. A label is part of the target of its box; the browser's own spacing is not counted.
const SIZE = 24;
const found = [];
const isShown = (element) => element.checkVisibility({ visibilityProperty: true }) && element.getClientRects().length > 0;
const inSentence = (target) => {
  if (getComputedStyle(target).display !== "inline") return false;
  let block = target.parentElement;
  while (getComputedStyle(block).display === "inline") block = block.parentElement;
  const links = [...block.querySelectorAll("a, button, input, select")].map((other) => other.textContent).join("");
  const letters = (text) => text.replace(/[^\p{L}\p{N}]/gu, "").length;
  return letters(block.textContent) > letters(links);
};
for (const target of document.querySelectorAll("a[href], button, input:not([type=hidden]), select, textarea, summary")) {
  const whole = target.matches("[type=checkbox], [type=radio]") && target.labels.length ? target.labels[0] : target;
  if (!isShown(whole) || target.closest(".hidden, .skip") || target.matches(".hidden") || inSentence(whole)) continue;
  const boxes = [...whole.getClientRects(), ...[...whole.children].flatMap((child) => [...child.getClientRects()])];
  const width = Math.max(...boxes.map((box) => box.right)) - Math.min(...boxes.map((box) => box.left));
  const height = Math.max(...boxes.map((box) => box.bottom)) - Math.min(...boxes.map((box) => box.top));
  if (Math.round(width) < SIZE || Math.round(height) < SIZE) {
    found.push(`${Math.round(width)} x ${Math.round(height)}: ${target.outerHTML.slice(0, 160)}`);
  }
}
return found;
