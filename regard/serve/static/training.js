/** Trainings: progress, curves and samples of one or several runs, while they run and afterwards. */

import { errorLine, get, isCancelled } from "./api.js";
import { createChart } from "./chart.js";
import { announce, element, replace, select } from "./dom.js";
import { createSamples } from "./samples.js";
import { readState, writeState } from "./state.js";
import {
  createTraining,
  curve,
  describeStatus,
  formatInteger,
  formatNumber,
  formatSeconds,
  metricsOf,
  scoreOf,
  statusOf,
} from "./training_data.js";

/** Time between two updates while something runs, and while nothing does, in milliseconds. */
const POLL_MS = 1500;
const IDLE_MS = 10_000;
/** Number of colours of curves. */
const NUM_COLORS = 8;
/** Separator of names in the address: names of runs are paths without empty parts. */
const SEPARATOR = "//";

const AXES = [
  ["step", "Steps"],
  ["seconds", "Time"],
];

/** Create the view. */
export function createView() {
  const line = errorLine();
  const list = element("ul.runs", { "aria-label": "Trainings" });
  const summary = element("p.note");
  const charts = element("div.charts");
  const table = element("details.card.values");
  const samples = createSamples();
  const node = element(
    "div.view.training",
    {},
    element("section.card", { "aria-label": "Runs" }, element("div.card-head", {}, element("h2", {}, "Trainings"), summary, controls()), list),
    line.node,
    charts,
    samples.node,
    table,
  );
  const trainings = new Map();
  const shownCharts = new Map();
  let listed = [];
  let chosen = readState().runs?.split(SEPARATOR) ?? null;
  let x = AXES.some(([key]) => key === readState().x) ? readState().x : "step";
  let isLog = readState().log === "1";
  let pointed = null;
  let timer = null;
  let numTicks = 0;
  const controller = new AbortController();
  const colors = new Map();
  const statuses = new Map();

  function controls() {
    const log = element("input", {
      type: "checkbox",
      checked: readState().log === "1",
      onchange: () => {
        isLog = log.checked;
        writeState({ log: isLog ? "1" : "" });
        showCharts();
      },
    });
    return element(
      "div.controls",
      {},
      select("Horizontal axis", AXES, {
        value: readState().x ?? "step",
        onchange: (value) => {
          x = value;
          pointed = null;
          writeState({ x: value === "step" ? "" : value });
          showCharts();
        },
      }),
      element("label.check", {}, log, element("span", {}, "Logarithmic loss")),
    );
  }

  // Updates ------------------------------------------------------------------------------------

  /** Ask for what is new, and again later as long as the page is visible. */
  async function tick() {
    clearTimeout(timer);
    const number = ++numTicks;
    const { signal } = controller;
    let isRunning = false;
    try {
      listed = (await get("/v1/trainings", { signal })).trainings;
      chosen ??= firstChoice();
      const due = shownRuns().filter((run) => store(run.name).isDue(run));
      const changes = await Promise.all(due.map((run) => store(run.name).load(signal)));
      isRunning = listed.some((run) => run.is_running) || due.some((run) => !store(run.name).isLoaded);
      showRuns();
      if (changes.some(Boolean) || !shownCharts.size) showAll();
      line.clear();
    } catch (error) {
      if (isCancelled(error)) return;
      line.show(error);
    }
    if (number === numTicks && !document.hidden) timer = setTimeout(tick, isRunning ? POLL_MS : IDLE_MS);
  }

  const store = (name) => trainings.get(name) ?? trainings.set(name, createTraining(name)).get(name);

  const shownRuns = () => listed.filter((run) => chosen?.includes(run.name));

  /** Choose the runs that are trained now, or the last one that was. */
  function firstChoice() {
    const running = listed.filter((run) => run.is_running);
    const recent = [...listed].sort((a, b) => (a.updated ?? Infinity) - (b.updated ?? Infinity)).slice(0, 1);
    const names = (running.length ? running : recent).map((run) => run.name);
    return names.length ? names.slice(0, NUM_COLORS) : null;
  }

  function onVisibility() {
    if (!document.hidden) tick();
  }

  // Runs ---------------------------------------------------------------------------------------

  /** Return the number of the colour of a shown run, which stays while it is shown; others differ if there are enough. */
  function colorOf(name) {
    if (!colors.has(name)) {
      const used = new Set(shownRuns().map((run) => colors.get(run.name)));
      const free = [...Array(NUM_COLORS).keys()].find((color) => !used.has(color));
      colors.set(name, free ?? colors.size % NUM_COLORS);
    }
    return colors.get(name);
  }

  function choose(name, isChosen) {
    const others = (chosen ?? []).filter((one) => one !== name);
    chosen = isChosen ? [...others, name] : others;
    if (!isChosen) colors.delete(name);
    writeState({ runs: chosen.join(SEPARATOR) });
    showRuns();
    showAll();
    tick();
  }

  function showRuns() {
    const num = listed.filter((run) => run.is_running).length;
    replace(summary, listed.length ? `${formatInteger(listed.length)} ${listed.length === 1 ? "run" : "runs"}, ${num ? formatInteger(num) : "none"} running` : "");
    if (!listed.length) {
      replace(list, element("li.note", {}, "No training yet. It appears here when `regard train` has begun."));
      return;
    }
    const names = listed.map((run) => run.name);
    const items = new Map([...list.children].map((item) => [item.dataset.name, item]));
    if (names.length !== list.children.length || names.some((name) => !items.has(name))) {
      replace(list, listed.map((run) => items.get(run.name) ?? createItem(run)));
    }
    listed.forEach((run, number) => fillItem(list.children[number], run));
    for (const run of listed) {
      const status = statusOf(run);
      const before = statuses.get(run.name);
      if (before && before !== status) announce(`${run.name}: ${status}, ${describeStatus(run)}`);
      statuses.set(run.name, status);
    }
  }

  /** Create the line of a run; its check box stays, so that it keeps the focus. */
  function createItem(run) {
    const box = element("input", { type: "checkbox", onchange: () => choose(run.name, box.checked) });
    return element("li.run", { "data-name": run.name }, element("label.run-label", {}, box, element("span.run-text")));
  }

  function fillItem(item, run) {
    const status = statusOf(run);
    const isShown = chosen?.includes(run.name) ?? false;
    const color = isShown ? colorOf(run.name) : 0;
    const [box, text] = [item.querySelector("input"), item.querySelector(".run-text")];
    if (box.checked !== isShown) box.checked = isShown;
    const share = run.total_steps ? Math.min(run.step / run.total_steps, 1) : null;
    const progress = element("span.progress", { "aria-hidden": "true", "data-status": status, hidden: share === null });
    progress.style.setProperty("--share", share ?? 0);
    const best = run.best === null ? null : `best ${run.metric_label} ${formatNumber(run.best.value)} at step ${formatInteger(run.best.step)}`;
    replace(
      text,
      element(`span.swatch.series-${color}`, { "aria-hidden": "true", hidden: !isShown }),
      element("strong.run-name", {}, run.name),
      element("span.badge", { "data-status": status }, STATUS[status]),
      element("span.note.run-about", {}, [run.recipe ?? run.task, describeStatus(run), best].filter(Boolean).join(" · ")),
      progress,
    );
  }

  // Curves -------------------------------------------------------------------------------------

  function showAll() {
    showCharts();
    samples.update(loaded());
    showTable();
  }

  const loaded = () => shownRuns().map((run) => store(run.name)).filter((one) => one.about);

  function showCharts() {
    const runs = loaded();
    const metrics = [...new Set(runs.flatMap((run) => metricsOf(run.rows)))];
    const wanted = [
      ["loss", "Loss", formatNumber],
      ...metrics.map((metric) => [`metric ${metric}`, `Validation ${labelOf(runs, metric)}`, formatNumber]),
      ["rate", "Throughput", (value) => `${formatNumber(value)}/s`],
    ].filter(([key]) => key !== "rate" || runs.some((run) => run.rows.some((row) => row.tokens_per_second)));
    for (const [key, title, format] of wanted) {
      if (!shownCharts.has(key)) shownCharts.set(key, createChart({ title, format, onPoint }));
    }
    const nodes = runs.length ? wanted.map(([key]) => shownCharts.get(key).node) : [hint()];
    if (nodes.length !== charts.children.length || nodes.some((one, index) => one !== charts.children[index])) replace(charts, nodes);
    if (!runs.length) return;
    const range = [0, Math.max(...runs.map((run) => run.rows.at(-1)?.[x] ?? 0), x === "step" ? 1 : 0.1)];
    for (const [key] of wanted) {
      const series = key === "loss" ? lossSeries(runs) : key === "rate" ? rateSeries(runs) : scoreSeries(runs, key.slice("metric ".length));
      shownCharts.get(key).update({ series, x: x === "step" ? "step" : "time", formatX: x === "step" ? formatInteger : formatSeconds, isTime: x === "seconds", range, isLog: isLog && key === "loss" });
    }
  }

  const hint = () => element("p.note.hint", {}, listed.length ? "Choose a run to see its curves." : "");

  const labelOf = (runs, metric) => runs.find((run) => run.about.metric === metric)?.about.metric_label ?? metric;

  function lossSeries(runs) {
    return runs.flatMap((run) => {
      const prefix = runs.length > 1 ? `${run.name}: ` : "";
      const color = colorOf(run.name);
      const valid = curve(run.rows, "valid", x, (row) => row.loss);
      const best = run.about.metric === "loss" ? bestPoint(run, (row) => row.loss) : null;
      return [
        { label: `${prefix}training`, color, isThin: true, points: curve(run.rows, "train", x, (row) => row.loss) },
        ...(valid.length ? [{ label: `${prefix}validation`, color, isMarked: true, points: valid, best }] : []),
      ];
    });
  }

  function rateSeries(runs) {
    return runs.map((run) => ({ label: run.name, color: colorOf(run.name), points: curve(run.rows, "train", x, (row) => row.tokens_per_second) }));
  }

  function scoreSeries(runs, metric) {
    const find = (row) => ((row.metric ?? "value") === metric ? scoreOf(row) : undefined);
    return runs
      .map((run) => ({ label: run.name, color: colorOf(run.name), isMarked: true, points: curve(run.rows, "valid", x, find), best: bestPoint(run, find) }))
      .filter((one) => one.points.length);
  }

  /** Return the point of the best validation, if it has a value. */
  function bestPoint(run, find) {
    const row = run.rows.findLast((one) => one.kind === "valid" && one.is_best);
    const y = row && find(row);
    return Number.isFinite(y) ? [row[x], y] : null;
  }

  function onPoint(position) {
    pointed = position;
    shownCharts.forEach((chart) => chart.node.isConnected && chart.show(pointed));
  }

  /** Show the last values of all runs as a table, for those who cannot see the curves. */
  function showTable() {
    const runs = loaded();
    table.hidden = !runs.length;
    const columns = ["Run", "Status", "Step", "Training loss", "Validation loss", "Score", "Best score", "Throughput"];
    const rows = runs.map(({ about, rows: log }) => {
      const last = (kind, find) => formatNumber(curve(log, kind, "step", find).at(-1)?.[1]);
      const score = last("valid", scoreOf);
      return [
        about.name,
        STATUS[statusOf(about)],
        formatInteger(about.step),
        last("train", (row) => row.loss),
        last("valid", (row) => row.loss),
        about.metric_label ? `${about.metric_label} ${score}` : score,
        about.best ? formatNumber(about.best.value) : "–",
        last("train", (row) => row.tokens_per_second),
      ];
    });
    replace(
      table,
      element("summary", {}, "Last values as a table"),
      element(
        "div.scroll",
        { tabindex: 0, role: "region", "aria-label": "Last values" },
        element(
          "table",
          {},
          element("thead", {}, element("tr", {}, columns.map((name) => element("th", { scope: "col" }, name)))),
          element("tbody", {}, rows.map(([name, ...cells]) => element("tr", {}, element("th", { scope: "row" }, name), cells.map((cell) => element("td", {}, cell))))),
        ),
      ),
    );
  }

  return {
    node,
    start() {
      document.addEventListener("visibilitychange", onVisibility);
      tick();
    },
    close() {
      document.removeEventListener("visibilitychange", onVisibility);
      clearTimeout(timer);
      controller.abort();
      samples.close();
    },
  };
}

const STATUS = {
  running: "running",
  evaluating: "evaluating",
  finished: "finished",
  interrupted: "interrupted",
  ended: "not running",
};
