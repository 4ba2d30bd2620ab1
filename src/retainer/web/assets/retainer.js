// Comforts only: every page works without.

// A button that copies a block of code; browsers offer a clipboard to secure pages only.
if (navigator.clipboard) {
  for (const block of document.querySelectorAll("pre")) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "Copy";
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(block.textContent);
      button.textContent = "Copied";
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
    block.before(button);
  }
}

// Whoever chooses a language in one sample reads all of them in it; the chosen one stays where it is on the screen.
document.addEventListener("change", ({ target }) => {
  if (!target.matches(".tabs > input")) return;
  const before = target.getBoundingClientRect().top;
  for (const other of document.querySelectorAll(`.tabs > input[value="${target.value}"]`)) other.checked = true;
  scrollBy(0, target.getBoundingClientRect().top - before);
});

// The menu of a narrow screen closes when the screen becomes wide, like a tablet that is turned.
matchMedia("(min-width: 56rem)").addEventListener("change", () => document.getElementById("side")?.hidePopover());

// A slash goes to the search.
document.addEventListener("keydown", (event) => {
  const search = document.querySelector("[role=search] input, [type=search]");
  const isTyping = event.target.matches("input, textarea, select, [contenteditable]");
  if (event.key !== "/" || isTyping || event.ctrlKey || event.metaKey || event.altKey || !search) return;
  event.preventDefault();
  search.focus();
});
