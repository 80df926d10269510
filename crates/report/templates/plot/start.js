// Begins: every panel with data becomes a plot when it comes near the view.

const figures = [...document.querySelectorAll("figure.chart")].map((element) => new Figure(element));
const panels = new Map(figures.flatMap((figure) => figure.panels.map((panel) => [panel.element, panel])));
const nearby = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    if (!isIntersecting) continue;
    nearby.unobserve(target);
    panels.get(target).build();
  }
}, { rootMargin: "300px" });
for (const element of panels.keys()) nearby.observe(element);
for (const section of document.querySelectorAll(".trial-views")) pickTrials(section, figures);

const restyle = () => figures.forEach((figure) => figure.restyle());
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", restyle);
matchMedia("(prefers-contrast: more)").addEventListener("change", restyle);
