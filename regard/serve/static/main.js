/** The page: its views, its theme, and the models of the server. */

import { ApiError, errorLine, get } from "./api.js";
import { element, replace } from "./dom.js";
import { goTo, onNavigate, readState } from "./state.js";

const VIEWS = [
  ["model", "Model", () => import("./model_view.js")],
  ["compare", "Compare", () => import("./compare_view.js")],
  ["training", "Training", () => import("./training.js")],
];

const THEMES = { auto: "◐ Auto", light: "☀ Light", dark: "☾ Dark" };
const THEME = "regard-theme";

const content = document.getElementById("content");
let shown = { close() {} };
let numShown = 0;
let models = [];

/** Show the view that the address names. */
async function show() {
  const needsModels = models.length ? "model" : "training";
  const name = VIEWS.some(([key]) => key === readState().view) ? readState().view : needsModels;
  document.title = `regard: ${VIEWS.find(([key]) => key === name)[1]}`;
  for (const link of document.querySelectorAll("#views a")) {
    if (link.dataset.view === name) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  shown.close();
  shown = { close() {} };
  const number = ++numShown;
  let view;
  try {
    view = await VIEWS.find(([key]) => key === name)[2]();
  } catch {
    if (number === numShown) fail(new ApiError("The page cannot be loaded completely. Does the server still run?"));
    return;
  }
  if (number !== numShown) return; // another one was chosen while this one was loaded
  shown = view.createView(models);
  replace(content, shown.node);
  shown.start?.();
}

function chosenTheme() {
  const theme = localStorage.getItem(THEME);
  return Object.hasOwn(THEMES, theme) ? theme : "auto";
}

function showTheme() {
  const theme = chosenTheme();
  document.documentElement.dataset.theme = theme;
  const control = document.getElementById("theme");
  replace(control, THEMES[theme]);
  control.setAttribute("aria-label", `Colours: ${THEMES[theme].slice(2)}`);
  document.dispatchEvent(new Event("themechange"));
}

function switchTheme() {
  const names = Object.keys(THEMES);
  const theme = chosenTheme();
  localStorage.setItem(THEME, names[(names.indexOf(theme) + 1) % names.length]);
  showTheme();
}

/** Link to a view, which takes the source; the rest of the view that is left stays in the history. */
function viewLink([key, label]) {
  const onclick = (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    const { view, source } = readState();
    if (view !== key) goTo(source && key !== "training" ? { view: key, source } : { view: key });
  };
  return element("a", { href: `#view=${key}`, "data-view": key, onclick }, label);
}

function fail(error) {
  const line = errorLine();
  replace(content, line.node);
  line.show(error);
}

async function start() {
  showTheme();
  document.getElementById("theme").addEventListener("click", switchTheme);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", showTheme);
  try {
    models = (await get("/v1/models")).data;
  } catch (error) {
    fail(error);
    return;
  }
  const views = models.length ? VIEWS : VIEWS.slice(-1);
  replace(document.getElementById("views"), views.map(viewLink));
  onNavigate(show);
  await show();
}

start();
