/** Data of trainings: rows and samples as they arrive, series for curves, texts of the status. */

import { get } from "./api.js";

/** Requests per update; a long log is shown while the rest of it is loaded. */
const MAX_PAGES = 5;

/** Create the store of one training, which asks the server for rows that it does not have yet. */
export function createTraining(name) {
  let position = {};
  let hasMore = true;
  let loading = null;
  const training = { name, about: null, rows: [], samples: [], isLoaded: false, load, isDue };

  /** Return whether there may be something new, by the progress in the list of all trainings. */
  function isDue(listed) {
    const { about } = training;
    if (!about || hasMore || listed.is_running || about.is_running) return true;
    return listed.step !== about.step || listed.stopped !== about.stopped || listed.seconds !== about.seconds;
  }

  /** Load what is new, once for all that ask meanwhile; return whether something has changed. */
  function load(signal) {
    loading ??= loadPages(signal).finally(() => (loading = null));
    return loading;
  }

  async function loadPages(signal) {
    let isChanged = false;
    for (let page = 0; page < MAX_PAGES; page++) {
      const path = `/v1/trainings/${name.split("/").map(encodeURIComponent).join("/")}?${new URLSearchParams(position)}`;
      const { rows, samples, ...about } = await get(path, { signal });
      if (about.is_restarted) Object.assign(training, { rows: [], samples: [] });
      isChanged ||= about.is_restarted || rows.length > 0 || samples.length > 0;
      isChanged ||= describeStatus(about) !== (training.about && describeStatus(training.about));
      training.rows.push(...rows);
      training.samples.push(...samples);
      training.about = about;
      position = { after: about.next, samples_after: about.next_samples, version: about.version };
      hasMore = about.has_more;
      if (!hasMore) break;
    }
    training.isLoaded = !hasMore;
    return isChanged;
  }

  return training;
}

/** Return the points of a curve as `[x, y]`, in the order of the log. */
export function curve(rows, kind, x, find) {
  const points = [];
  for (const row of rows) {
    const y = row.kind === kind ? find(row) : undefined;
    if (Number.isFinite(y) && Number.isFinite(row[x])) points.push([row[x], y]);
  }
  return points;
}

/** Return the score of a validation, as it is spelled for people. */
export const scoreOf = (row) => row[row.metric] ?? row.value;

/** Return the metrics of the validations of a training, except the loss. */
export function metricsOf(rows) {
  const names = rows.filter((row) => row.kind === "valid").map((row) => row.metric ?? "value");
  return [...new Set(names)].filter((name) => name !== "loss");
}

/** Return the validations of an example, the oldest first. */
export function validationsOf(training, example) {
  return training.samples.filter((sample) => sample.example === example);
}

const REASONS = {
  steps: "all steps",
  epochs: "all epochs",
  minutes: "time limit",
  patience: "no further improvement",
};

/** Return one of `running`, `evaluating`, `finished`, `interrupted` and `ended`. */
export function statusOf(about) {
  if (about.is_running) return about.stopped && about.stopped !== "interrupted" ? "evaluating" : "running";
  if (about.stopped === "interrupted") return "interrupted";
  return about.stopped ? "finished" : "ended";
}

/** Return the status as text. */
export function describeStatus(about) {
  const status = statusOf(about);
  const total = about.total_steps ? ` of ${formatInteger(about.total_steps)}` : "";
  const parts = [`step ${formatInteger(about.step)}${total}`];
  if (status === "evaluating") parts.push("evaluation on the test set");
  if (status === "running" && about.seconds_left !== null) parts.push(`${formatSeconds(about.seconds_left)} left`);
  else if (about.seconds) parts.push(formatSeconds(about.seconds));
  if (status === "finished") parts.push(REASONS[about.stopped] ?? about.stopped);
  return parts.join(" · ");
}

/** Return an integer with separators. */
export const formatInteger = (value) => Math.round(value).toLocaleString("en");

/** Return a duration as minutes and seconds, or hours, minutes and seconds. */
export function formatSeconds(value) {
  const whole = Math.max(0, Math.round(value));
  const [hours, minutes, seconds] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  const padded = (number) => String(number).padStart(2, "0");
  return hours ? `${hours}:${padded(minutes)}:${padded(seconds)}` : `${minutes}:${padded(seconds)}`;
}

/** Return a number with about four significant digits. */
export function formatNumber(value) {
  if (!Number.isFinite(value)) return "–";
  if (value !== 0 && (Math.abs(value) < 0.001 || Math.abs(value) >= 1e7)) return value.toExponential(2);
  return Math.abs(value) >= 1000 ? formatInteger(value) : value.toLocaleString("en", { maximumSignificantDigits: 4 });
}
