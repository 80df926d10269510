"use strict";
// The list of runs: it searches while one types, follows what goes on, and keeps what is ticked. Without this script the
// same page works by its forms and links.
(() => {
  const list = document.getElementById("list");
  const search = document.getElementById("q");
  const SETTLED_MS = 200, FOLLOW_MS = 2000, QUIET_MS = 10000, KEY = "kendall-ticked";
  const address = new URL(location.href);
  address.searchParams.delete("token");
  history.replaceState(null, "", address);

  const ticked = new Set(JSON.parse(sessionStorage.getItem(KEY) || "[]"));
  const boxes = () => [...list.querySelectorAll("input[name=run]")];

  // Those that are ticked on other pages of the list are sent along.
  const show = () => {
    for (const box of boxes()) box.checked = ticked.has(box.value);
    const button = list.querySelector(".compare");
    if (!button) return;
    button.disabled = ticked.size !== 2;
    button.textContent = ticked.size === 0 ? "Tick two to compare" : ticked.size === 2 ? "Compare two" : `${ticked.size} ticked; compare takes two`;
  };
  list.addEventListener("change", (event) => {
    if (event.target.name !== "run") return;
    ticked[event.target.checked ? "add" : "delete"](event.target.value);
    sessionStorage.setItem(KEY, JSON.stringify([...ticked]));
    show();
  });
  list.addEventListener("submit", (event) => {
    event.preventDefault();
    const asked = new URLSearchParams([...ticked].slice(0, 2).map((run) => ["run", run]));
    ticked.clear();
    sessionStorage.removeItem(KEY);
    location.assign("/compare?" + asked);
  });

  let shown = list.innerHTML, asking = null, timer = 0;
  const refresh = async () => {
    clearTimeout(timer);
    asking?.abort();
    asking = new AbortController();
    const asked = address.searchParams;
    try {
      const answer = await fetch("/list?" + asked, { signal: asking.signal });
      if (answer.ok) {
        const text = await answer.text();
        if (text.trim() !== shown.trim()) {
          const focused = document.activeElement?.closest?.(".run input")?.value;
          list.innerHTML = shown = text;
          show();
          if (focused) boxes().find((box) => box.value === focused)?.focus();
        }
      }
    } catch (error) {
      if (error.name === "AbortError") return;
    }
    follow();
  };
  const follow = () => {
    clearTimeout(timer);
    if (document.hidden) return;
    const goesOn = list.querySelector("[data-state=running]");
    timer = setTimeout(refresh, goesOn ? FOLLOW_MS : QUIET_MS);
  };
  document.addEventListener("visibilitychange", () => (document.hidden ? clearTimeout(timer) : refresh()));

  let settling = 0;
  search.addEventListener("input", () => {
    clearTimeout(settling);
    settling = setTimeout(() => {
      address.searchParams.set("q", search.value);
      address.searchParams.delete("page");
      history.replaceState(null, "", address);
      refresh();
    }, SETTLED_MS);
  });
  show();
  follow();
})();
