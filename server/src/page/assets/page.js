// What a page does by itself: it follows the events that its body names. Everything works without it.
//
// Texts are set as text, never as markup; regions are taken out of pages that this server made, by their ids.
"use strict";

(() => {
  const events = document.body.dataset.events;
  if (!events || !window.EventSource) return;

  const news = document.getElementById("news");
  const say = (text) => {
    if (news) news.textContent = text;
  };

  let loading = false;
  let again = false;

  // Put what is new into the regions that live; what is around them, and where the focus is, stays.
  async function refresh() {
    if (loading) {
      again = true;
      return;
    }
    loading = true;
    try {
      const answer = await fetch(location.href, { credentials: "same-origin", redirect: "error" });
      if (!answer.ok) {
        source.close();
        say("This page is not live any more; reload it.");
        return;
      }
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
      for (const region of document.querySelectorAll("[data-live]")) {
        const other = fresh.getElementById(region.id);
        if (!other) continue;
        const open = new Set([...region.querySelectorAll("details[open] > summary")].map((s) => s.textContent));
        const focus = region.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
        region.replaceChildren(...[...other.childNodes].map((node) => document.importNode(node, true)));
        for (const summary of region.querySelectorAll("details > summary")) {
          if (open.has(summary.textContent)) summary.parentElement.open = true;
        }
        if (focus) [...region.querySelectorAll("a[href]")].find((a) => a.getAttribute("href") === focus)?.focus();
      }
    } catch {
      // The server went away; the events come back with it.
    } finally {
      loading = false;
      if (again) {
        again = false;
        refresh();
      }
    }
  }

  const source = new EventSource(events);

  // One score.
  source.addEventListener("progress", (event) => {
    const { line, done, most } = JSON.parse(event.data);
    for (const place of document.querySelectorAll("[data-line]")) place.textContent = line;
    for (const bar of document.querySelectorAll("[data-progress]")) {
      if (most > 0) {
        bar.max = most;
        bar.value = done;
      } else {
        bar.removeAttribute("value");
      }
    }
  });
  source.addEventListener("over", (event) => {
    source.close();
    say("The score is over: " + JSON.parse(event.data).line);
    refresh();
  });

  // Many scores: which are open, and how far they are.
  source.addEventListener("scores", (event) => {
    const open = new Map(Object.entries(JSON.parse(event.data).open));
    const rows = new Map([...document.querySelectorAll("[data-open]")].map((row) => [row.dataset.open, row]));
    for (const [id, row] of rows) {
      const line = row.querySelector("[data-line]");
      const how = open.get(id);
      if (line && how && how.line) line.textContent = how.line;
    }
    const first = !new URLSearchParams(location.search).has("before");
    const ended = [...rows.keys()].some((id) => !open.has(id));
    const begun = [...open.keys()].some((id) => !rows.has(id) && !known.has(id));
    for (const id of open.keys()) known.add(id);
    if (ended || (begun && first)) {
      say("The list of scores has changed.");
      refresh();
    }
  });
  const known = new Set([...document.querySelectorAll("[data-open]")].map((row) => row.dataset.open));

  source.addEventListener("closed", () => {
    source.close();
    say("This page is not live any more; reload it.");
  });
  addEventListener("pagehide", () => source.close());
})();
