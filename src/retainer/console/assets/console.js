// Enhancements of the console: every page works without script.

// A preset selects its scopes in place. Without script, its button requests the form with them.
document.addEventListener("click", (event) => {
  const preset = event.target.closest("button[data-scopes]");
  if (!preset) return;
  event.preventDefault();
  const chosen = new Set(preset.dataset.scopes.split(" "));
  for (const box of document.querySelectorAll("input[name=scopes]")) box.checked = chosen.has(box.value);
});

// Choosing a day selects the option "On a date".
document.addEventListener("change", ({ target }) => {
  if (target.id === "expiry_day") document.querySelector("input[name=expiry][value=day]").checked = true;
});

// A form is sent once, however often its button is pressed. After five seconds it can be sent again.
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.method !== "post") return;
  if ("sent" in form.dataset) event.preventDefault();
  form.dataset.sent = "";
  setTimeout(() => { delete form.dataset.sent; }, 5000);
});

// The page of a new key polls for its first call, every two seconds for ten minutes.
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
