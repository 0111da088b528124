// Comfort for those whose browser runs scripts. Every page works without it.
(() => {
  "use strict";
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];

  // Times in the zone of this browser, where that is not the server's. Lists of one day keep the zone they were made in.
  const here = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const parts = (date, options) =>
    Object.fromEntries(new Intl.DateTimeFormat("en-US", options).formatToParts(date).map((part) => [part.type, part.value]));
  function localise(within) {
    const said = within.querySelector("[data-zone]");
    if (!said || !here || said.dataset.zone === here) return;
    for (const time of all("time[datetime*=T]", within)) {
      if (time.closest("[data-fixed]")) continue;
      const date = new Date(time.dateTime);
      if (Number.isNaN(date.getTime())) continue;
      const short = parts(date, { day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit", hourCycle: "h23" });
      const full = parts(date, { weekday: "long", month: "long", second: "2-digit", timeZoneName: "longOffset" });
      const seconds = full.second.padStart(2, "0");
      time.textContent = `${short.day} ${short.month} ${short.year}, ${short.hour}:${short.minute}`;
      time.title = `${full.weekday}, ${short.day} ${full.month} ${short.year}, ${short.hour}:${short.minute}:${seconds} ${full.timeZoneName}`;
    }
    said.textContent = here;
  }

  // A button beside what is meant to be copied.
  function copyable(within) {
    if (!navigator.clipboard) return;
    for (const text of all("[data-copy]", within)) {
      const button = Object.assign(document.createElement("button"), { type: "button", className: "copy", textContent: "Copy" });
      button.addEventListener("click", async () => {
        await navigator.clipboard.writeText(text.textContent.trim());
        button.textContent = "Copied";
        setTimeout(() => { button.textContent = "Copy"; }, 2000);
      });
      text.after(button);
    }
  }

  // Filters a list while one types. What is ticked stays in sight.
  function filter(field) {
    const list = document.getElementById(field.dataset.filter);
    if (!list) return;
    const has = (element, words) => element.textContent.toLowerCase().includes(words);
    const ticked = (element) => element.querySelector("input:checked") !== null;
    const narrow = () => {
      const words = field.value.trim().toLowerCase();
      for (const source of all(".source", list)) {
        const named = !words || has(source.querySelector("summary"), words);
        let left = 0;
        for (const stream of all(".stream", source)) {
          stream.hidden = !named && !has(stream, words) && !ticked(stream);
          left += stream.hidden ? 0 : 1;
          const part = stream.querySelector("details");
          if (part) part.open = Boolean(words) && all(".fields .tick", part).some((one) => has(one, words));
        }
        source.hidden = !named && left === 0;
        source.open = words ? left > 0 : ticked(source);
      }
    };
    field.addEventListener("input", narrow);
    field.addEventListener("keydown", (event) => { if (event.key === "Enter") event.preventDefault(); });
  }

  // A ticked field ticks its stream, as the server does.
  function tickStream(event) {
    const { name, checked } = event.target;
    const stream = name === "field" && checked && event.target.closest(".stream");
    if (stream) stream.querySelector("input[name=stream]").checked = true;
  }

  // Files may be dropped anywhere on the page that takes them.
  function droppable(form) {
    const input = form.querySelector("input[type=file]");
    if (!input) return;
    const mark = (is) => form.classList.toggle("over", is);
    addEventListener("dragover", (event) => { event.preventDefault(); mark(true); });
    addEventListener("dragleave", (event) => { if (!event.relatedTarget) mark(false); });
    addEventListener("drop", (event) => {
      event.preventDefault();
      mark(false);
      if (event.dataTransfer.files.length > 0) {
        input.files = event.dataTransfer.files;
        form.requestSubmit();
      }
    });
    form.addEventListener("submit", () => {
      const button = form.querySelector("button");
      button.textContent = "Sending …";
      button.disabled = true;
    });
  }

  // A page about something that goes on is read again until it is over.
  async function follow() {
    const main = document.getElementById("main");
    if (!main.querySelector("[data-live]")) return;
    setTimeout(async () => {
      try {
        const answer = await fetch(location.href, { headers: { accept: "text/html" }, redirect: "error" });
        const page = new DOMParser().parseFromString(await answer.text(), "text/html");
        const fresh = document.adoptNode(page.getElementById("main"));
        const status = main.querySelector("[data-live] [role=status]");
        const said = fresh.querySelector("[data-live] [role=status]");
        if (status && said && main.querySelectorAll("progress").length === fresh.querySelectorAll("progress").length) {
          // The parts that change alone, so that what one reads or has opened stays.
          all("progress", fresh).forEach((bar, at) => { all("progress", main)[at].replaceWith(bar); });
          all("[data-now]", fresh).forEach((text, at) => { const old = all("[data-now]", main)[at]; if (old) old.textContent = text.textContent; });
        } else {
          main.replaceWith(fresh);
          document.title = page.title;
          begin(fresh);
        }
      } catch { /* The next time may succeed. */ }
      follow();
    }, 1000);
  }

  function begin(within) {
    localise(within);
    copyable(within);
    all("input[data-filter]", within).forEach(filter);
    all("form.drop", within).forEach(droppable);
    all("#choices", within).forEach((choices) => choices.addEventListener("change", tickStream));
  }
  begin(document);
  follow();
})();
