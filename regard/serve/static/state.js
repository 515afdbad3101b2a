/** State of the view in the fragment of the address, so that a link opens the same view again. */

const watchers = [];

/** Return the state: text values by name. */
export function readState() {
  return Object.fromEntries(new URLSearchParams(location.hash.slice(1)));
}

/**
 * Change values of the state; empty ones are removed.
 *
 * @param {Object} changes Values by name.
 * @param {boolean} [isStep] Whether the back button returns to the state before.
 */
export function writeState(changes, isStep = false) {
  const state = { ...readState(), ...changes };
  const kept = Object.entries(state).filter(([, value]) => value !== undefined && value !== null && value !== "");
  const hash = `#${new URLSearchParams(kept)}`;
  if (hash === (location.hash || "#")) return;
  history[isStep ? "pushState" : "replaceState"](null, "", hash);
}

/** Replace the whole state and notify the watchers. */
export function goTo(state) {
  history.pushState(null, "", `#${new URLSearchParams(state)}`);
  watchers.forEach((watcher) => watcher());
}

/** Call a function when the state is changed by a link or by the back button. */
export function onNavigate(watcher) {
  watchers.push(watcher);
}

addEventListener("popstate", () => watchers.forEach((watcher) => watcher()));
