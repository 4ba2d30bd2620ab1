// Enhancements of the console: every page works without script.

// A preset selects its scopes in place. Without script, its button requests the form with them.
document.addEventListener("click", (event) => {
  const preset = event.target.closest("button[data-scopes]");
  if (!preset) return;
  event.preventDefault();
  const chosen = new Set(preset.dataset.scopes.split(" "));
  for (const box of document.querySelectorAll("input[name=scopes]")) box.checked = chosen.has(box.value);
});

// A file that is too large is named before it is sent; the server names it too.
document.addEventListener("change", ({ target }) => {
  if (target.type !== "file") return;
  const isLarge = target.files[0]?.size > Number(target.dataset.most);
  target.setCustomValidity(isLarge ? "This file is too large. Choose a smaller one." : "");
  target.reportValidity();
});
document.addEventListener("submit", (event) => {
  if (event.target.querySelector("input[type=file]:invalid")?.reportValidity() === false) {
    event.preventDefault();
    event.stopImmediatePropagation();
  }
});

// A form is sent once, however often its button is pressed. After five seconds it can be sent again.
document.addEventListener("submit", (event) => {
  const form = event.target;
  if (form.method !== "post") return;
  if ("sent" in form.dataset) event.preventDefault();
  form.dataset.sent = "";
  setTimeout(() => { delete form.dataset.sent; }, 5000);
});

// A form with input that was not sent asks before its page is left.
const edited = new Set();
document.addEventListener("input", ({ target }) => {
  if (target.form?.matches(".record-form, #hours")) edited.add(target.form);
});
document.addEventListener("submit", ({ target }) => edited.delete(target));
window.addEventListener("beforeunload", (event) => { if (edited.size) event.preventDefault(); });

// Minutes as hours, `1:30`; and typed hours in minutes, 0 if they cannot be read.
const inHours = (minutes) => `${Math.floor(minutes / 60)}:${String(minutes % 60).padStart(2, "0")}`;
const inMinutes = (text) => {
  const compact = text.replace(/\s/g, "").toLowerCase();
  const clock = compact.match(/^(\d*):([0-5]\d)h?$/);
  if (clock) return 60 * Number(clock[1]) + Number(clock[2]);
  const number = compact.match(/^(\d*[.,]?\d*)h?$/);
  if (number) return Math.round(60 * Number(number[1].replace(",", "."))) || 0;
  const units = compact.match(/^(?:(\d+)h)?(?:(\d+)m?(?:in)?)?$/);
  return units ? 60 * Number(units[1] ?? 0) + Number(units[2] ?? 0) : 0;
};

// A running timer goes on while its page is open.
setInterval(() => {
  for (const part of document.querySelectorAll("[data-since]")) {
    part.textContent = inHours(Math.max(0, Math.round((Date.now() - Date.parse(part.dataset.since)) / 60000)));
  }
}, 10000);

// The totals of a week follow while somebody types.
const week = document.querySelector("table.week");
week?.addEventListener("input", () => {
  const inCell = (cell) => (cell.dataset.minutes ? Number(cell.dataset.minutes) : inMinutes(cell.querySelector(".hours")?.value ?? ""));
  const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);
  const show = (cell, minutes) => { cell.textContent = minutes ? inHours(minutes) : "–"; };
  const rows = [...week.tBodies[0].rows].map((row) => {
    const minutes = [...row.cells].slice(1, -1).map(inCell);
    show(row.cells[minutes.length + 1], sum(minutes));
    return minutes;
  });
  const { cells } = week.tFoot.rows[0];
  rows[0].forEach((_, day) => show(cells[day + 1], sum(rows.map((minutes) => minutes[day]))));
  show(cells[rows[0].length + 1], sum(rows.flat()));
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

// A form that limits a list leaves blank fields out of the address.
document.addEventListener("formdata", ({ target, formData }) => {
  if (target.method === "post") return;
  for (const name of new Set(formData.keys())) {
    if (formData.getAll(name).every((value) => value === "")) formData.delete(name);
  }
});

// Lines of a document are added and removed in place. Without script, the buttons request the form with other lines.
const lines = document.querySelector(".record-form .lines");
if (lines) {
  lines.addEventListener("click", (event) => {
    const button = event.target.closest("button[name=step]");
    if (!button) return;
    const all = [...lines.querySelectorAll(".line")];
    event.preventDefault();
    if (button.value !== "add") {
      if (all.length > 1) {
        const removed = button.closest(".line");
        (removed.nextElementSibling ?? removed.previousElementSibling).querySelector("textarea, button").focus();
        removed.remove();
        return;
      }
    }
    const last = all.at(-1);
    const line = last.cloneNode(true);
    const place = 1 + Number(last.querySelector("textarea").name.split(".")[1]);
    line.querySelectorAll("input[type=hidden], .error").forEach((part) => part.remove());
    for (const part of line.querySelectorAll("[name], [for]")) {
      for (const name of ["id", "name", "for"]) {
        if (part.hasAttribute(name)) part.setAttribute(name, part.getAttribute(name).replace(/\.\d+\./, `.${place}.`));
      }
      if (part.type === "checkbox") part.checked = false;
      else if (part.matches("input, textarea")) part.value = part.name.endsWith("quantity") ? "1" : "";
      part.removeAttribute("aria-invalid");
    }
    line.querySelector(".remove").ariaLabel = `Remove line ${place + 1}`;
    last.after(line);
    if (button.value !== "add") last.remove();
    line.querySelector("textarea").focus();
  });
}

// The subtotal of a document follows while somebody types its lines, in whole numbers of BigInt: amounts are exact.
const MILLION = 10n ** 6n;
const inMillionths = (text, mark) => {
  const marks = text.match(/[.,]/g) ?? [];
  const decimal = marks.length > 1 ? marks.at(-1) : marks[0];
  const isGroup = decimal && decimal !== mark && /^\D*\d{1,3}([.,]\d{3})+\D*$/.test(text);
  const [whole, part = ""] = isGroup || !decimal ? [text] : text.split(new RegExp(`\\${decimal}(?=[^.,]*$)`));
  const digits = whole.replace(/\D/g, "") + part.replace(/\D/g, "").slice(0, 6).padEnd(6, "0");
  return BigInt(digits || "0") * (text.trim().startsWith("-") || text.trim().startsWith("−") ? -1n : 1n);
};
if (lines) {
  const shown = document.createElement("p");
  const { mark } = lines.dataset;
  const add = () => {
    let cents = 0n;
    for (const line of lines.querySelectorAll(".line")) {
      const value = (name) => inMillionths(line.querySelector(`[name$=".${name}"]`)?.value ?? "", mark);
      if (line.querySelector('[type=checkbox][name$=".is_optional"]')?.checked) continue;
      const exact = value("quantity") * value("unit_price") * (100n * MILLION - value("discount_percent"));
      const unit = MILLION ** 3n;
      cents += (2n * (exact < 0n ? -exact : exact) + unit) / (2n * unit) * (exact < 0n ? -1n : 1n);
    }
    const whole = String((cents < 0n ? -cents : cents) / 100n).replace(/\B(?=(\d{3})+$)/g, mark === "," ? "." : ",");
    const rest = String((cents < 0n ? -cents : cents) % 100n).padStart(2, "0");
    shown.textContent = `Subtotal: ${cents < 0n ? "−" : ""}${whole}${mark}${rest}, before tax`;
  };
  shown.className = "subtotal";
  shown.setAttribute("role", "status");
  lines.append(shown);
  for (const type of ["input", "click"]) lines.addEventListener(type, add);
  add();
}

// What a form led to before it was changed is dimmed until its next preview.
document.querySelector(".record-form.action")?.addEventListener("input", ({ currentTarget }) => currentTarget.classList.add("edited"));

// A form offers the projects, contacts and sites of the chosen client.
const client = document.querySelector(".record-form select[name=client_id]");
if (client) {
  const limit = () => {
    for (const option of document.querySelectorAll(".record-form option[data-client]")) {
      const isOther = client.value !== "" && option.dataset.client !== client.value;
      option.hidden = option.disabled = isOther && !option.selected;
    }
  };
  client.addEventListener("change", limit);
  limit();
}

// A menu closes when somebody presses Escape, or clicks elsewhere.
document.addEventListener("click", ({ target }) => {
  for (const menu of document.querySelectorAll("details.additions[open]")) if (!menu.contains(target)) menu.open = false;
});
document.addEventListener("keydown", ({ key }) => {
  const menu = key === "Escape" && document.querySelector("details.additions[open]");
  if (!menu) return;
  menu.open = false;
  menu.querySelector("summary").focus();
});

// The search shows results while somebody types: arrow keys choose one, Enter opens it, Escape closes them.
const field = document.querySelector(".top [role=search] input");
if (field) {
  const box = document.createElement("div");
  const said = document.createElement("p");
  let timer;
  let request = new AbortController();
  let chosen = -1;
  Object.assign(box, { id: "search-results", role: "listbox", ariaLabel: "Results", hidden: true, className: "suggestions" });
  Object.assign(said, { role: "status", className: "hidden" });
  field.parentElement.append(box, said);
  for (const [name, value] of Object.entries({ role: "combobox", "aria-controls": box.id, "aria-expanded": "false", "aria-autocomplete": "list" })) {
    field.setAttribute(name, value);
  }
  const options = () => [...box.querySelectorAll("[role=option]")];
  const choose = (position) => {
    chosen = position;
    options().forEach((option, each) => {
      option.setAttribute("aria-selected", String(each === chosen));
      if (each === chosen) option.scrollIntoView({ block: "nearest" });
    });
    const option = options()[chosen];
    if (option) field.setAttribute("aria-activedescendant", option.id);
    else field.removeAttribute("aria-activedescendant");
  };
  const show = (isShown) => {
    box.hidden = !isShown;
    field.setAttribute("aria-expanded", String(isShown));
    choose(-1);
  };
  const ask = async () => {
    const text = field.value.trim();
    request.abort();
    request = new AbortController();
    if (text.length < 2) {
      show(false);
      return;
    }
    try {
      const answer = await fetch(`/console/search/results?q=${encodeURIComponent(text)}`, { redirect: "error", signal: request.signal });
      if (!answer.ok) throw new Error(answer.statusText);
      box.innerHTML = await answer.text();
      said.textContent = options().at(-1).textContent;
      show(true);
    } catch (error) {
      if (error.name !== "AbortError") show(false);
    }
  };
  field.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(ask, 180);
  });
  field.addEventListener("keydown", (event) => {
    const last = options().length - 1;
    if (event.key === "Escape") {
      clearTimeout(timer);
      request.abort();
      show(false);
    } else if (box.hidden) {
      return;
    } else if (event.key === "ArrowDown") {
      event.preventDefault();
      choose(chosen >= last ? 0 : chosen + 1);
    } else if (event.key === "ArrowUp") {
      event.preventDefault();
      choose(chosen <= 0 ? last : chosen - 1);
    } else if (event.key === "Enter" && chosen >= 0) {
      event.preventDefault();
      options()[chosen].click();
    }
  });
  field.form.addEventListener("focusout", ({ relatedTarget }) => {
    if (!field.form.contains(relatedTarget)) show(false);
  });
  box.addEventListener("mousedown", (event) => event.preventDefault());
}
