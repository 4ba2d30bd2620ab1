// The sidebar follows the reader: it marks the section on the screen, and scrolls to it. Without script, it stays as it is.
const side = document.getElementById("side");
const links = new Map([...document.querySelectorAll(".sections a")].map((link) => [link.hash.slice(1), link]));

// Scroll the sidebar, and never the page, so that a link is visible.
function reveal(link) {
  const bounds = side.getBoundingClientRect();
  const place = link.getBoundingClientRect();
  if (place.top < bounds.top + 40 || place.bottom > bounds.bottom - 40) {
    side.scrollTop += place.top - bounds.top - bounds.height / 3;
  }
}

// Mark the last section whose heading is above the middle of the screen.
function mark() {
  let current;
  for (const [id, link] of links) {
    const heading = document.getElementById(id);
    if (heading && heading.getBoundingClientRect().top < innerHeight / 3) current = link;
  }
  for (const link of links.values()) {
    if (link !== current) link.removeAttribute("aria-current");
  }
  if (current && !current.hasAttribute("aria-current")) {
    current.setAttribute("aria-current", "location");
    reveal(current);
  }
}

if (side) {
  const page = side.querySelector("[aria-current=page]");
  if (page) reveal(page);
  side.addEventListener("toggle", () => {
    const current = side.querySelector("[aria-current=location]") || page;
    if (current) reveal(current);
  });
  side.addEventListener("click", ({ target }) => {
    if (target.closest("a[href^='#']") && side.matches(":popover-open")) side.hidePopover();
  });
  let isAsked = false;
  addEventListener("scroll", () => {
    if (isAsked) return;
    isAsked = true;
    requestAnimationFrame(() => { isAsked = false; mark(); });
  }, { passive: true });
  mark();
}
