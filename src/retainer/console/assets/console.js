// Comforts of the console: every page works without.

// A preset ticks its scopes in place; without script the button asks the server for the form with them.
document.addEventListener("click", (event) => {
  const preset = event.target.closest("button[data-scopes]");
  if (!preset) return;
  event.preventDefault();
  const chosen = new Set(preset.dataset.scopes.split(" "));
  for (const box of document.querySelectorAll("input[name=scopes]")) box.checked = chosen.has(box.value);
});

// The day of expiry is asked for where it counts; whoever picks one means it.
document.addEventListener("change", ({ target }) => {
  if (target.id === "expiry_day") document.querySelector("input[name=expiry][value=day]").checked = true;
});

// A form is sent once, however often its button is pressed; after five seconds again, for whoever has stopped the page.
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.method !== "post") return;
  if ("sent" in form.dataset) event.preventDefault();
  form.dataset.sent = "";
  setTimeout(() => { delete form.dataset.sent; }, 5000);
});

// The line below a new key turns green when its first call has arrived: asked every two seconds, for ten minutes.
const line = document.querySelector(".first-call:not(.arrived)");
if (line) {
  let turns = 300;
  const ask = async () => {
    const answer = await fetch(line.dataset.ask, { redirect: "error" }).then((response) => response.json()).catch(() => ({}));
    if (answer.has_arrived) {
      line.classList.add("arrived");
      line.querySelector(".dot").classList.add("good");
      line.querySelector(".sentence").textContent = "First call received. The key works.";
      line.querySelector("a").remove();
    } else if (turns-- > 0) {
      setTimeout(ask, 2000);
    }
  };
  setTimeout(ask, 1000);
}
