// Two trials beside each other: a reader picks them, and their plots show equal ranges and one cursor.

/** Adds the choice of trials to a section that holds one `.trial` for each. */
function pickTrials(section, figures) {
  const trials = [...section.querySelectorAll(":scope > .trial")];
  if (trials.length < 2) return;
  const panelsOf = new Map(trials.map((trial) => [trial, panelsWithin(trial, figures)]));
  const options = () => trials.map((trial, at) => new Option(trial.dataset.label || trial.dataset.trial, String(at)));
  const [a, b] = [made("select"), made("select")];
  a.append(...options());
  b.append(new Option("none", ""), ...options());
  const label = (name, select) => {
    const element = made("label", "", name);
    element.append(select);
    return element;
  };
  const picks = made("div", "trial-picks");
  picks.append(label("Trial ", a), label("beside ", b));
  trials[0].before(picks);

  const show = () => {
    const [one, other] = [trials[Number(a.value)], b.value === "" || b.value === a.value ? null : trials[Number(b.value)]];
    for (const option of b.options) option.disabled = option.value === a.value;
    if (b.value === a.value) b.value = "";
    for (const panels of panelsOf.values()) panels.forEach((panel) => panel.pair(null));
    for (const trial of trials) {
      trial.classList.toggle("trial-a", trial === one);
      trial.classList.toggle("trial-b", trial === other);
    }
    section.classList.toggle("beside", other !== null);
    if (!other) return;
    const twins = panelsOf.get(other);
    for (const [key, panel] of panelsOf.get(one)) {
      const twin = twins.get(key);
      if (!twin) continue;
      panel.pair(twin);
      twin.pair(panel);
    }
  };
  a.addEventListener("change", show);
  b.addEventListener("change", show);
  section.classList.add("picked");
  show();
}

/** The panels of a trial, by what they show. */
function panelsWithin(trial, figures) {
  const panels = new Map();
  for (const figure of figures.filter(({ element }) => trial.contains(element))) {
    const title = figure.element.querySelector("h2")?.textContent;
    figure.panels.forEach((panel, at) => panels.set(`${figure.element.className} ${title} ${at}`, panel));
  }
  return panels;
}
