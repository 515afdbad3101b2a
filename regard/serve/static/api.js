/** Requests to the server: JSON, streams of events, and errors in one sentence. */

import { element, replace } from "./dom.js";

const TOKEN = "regard-token";

/** The message if a reply ends too early. */
export const BROKEN = "The connection to the server broke off before the reply was complete. Try again.";

/** A request that has failed; its message is a sentence for people. */
export class ApiError extends Error {
  constructor(message, status = 0) {
    super(message);
    this.status = status;
  }
}

/** Whether an error only means that a request was cancelled. */
export const isCancelled = (error) => error?.name === "AbortError";

/** Return the reply of a GET request. */
export async function get(path, options = {}) {
  return read(await send(path, { method: "GET", ...options }));
}

/** Return the reply of a POST request with a JSON body. */
export async function post(path, body, options = {}) {
  return read(await send(path, { ...withBody(body), ...options }));
}

/** Yield the server-sent events of a POST request as `[name, data]`. */
export async function* stream(path, body, options = {}) {
  const reply = await send(path, { ...withBody(body), ...options });
  const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  for (;;) {
    const { value, done } = await complete(reader.read());
    text += value ?? "";
    const events = text.split("\n\n");
    text = events.pop();
    for (const event of events) {
      const found = /^event: (\w+)\ndata: (.*)$/s.exec(event);
      if (!found) continue;
      const data = JSON.parse(found[2]);
      if (found[1] === "error") throw new ApiError(data.error);
      yield [found[1], data];
    }
    if (done) return;
  }
}

const read = (reply) => complete(reply.json());

/** Return what a promise of a part of a reply returns. */
async function complete(part) {
  try {
    return await part;
  } catch (error) {
    throw isCancelled(error) ? error : new ApiError(BROKEN);
  }
}

function withBody(body) {
  return { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
}

async function send(path, options) {
  for (;;) {
    const token = sessionStorage.getItem(TOKEN);
    const headers = { ...options.headers, ...(token ? { Authorization: `Bearer ${token}` } : {}) };
    const reply = await reach(path, { ...options, headers });
    if (reply.ok) return reply;
    if (reply.status !== 401) throw new ApiError(await explain(reply), reply.status);
    sessionStorage.setItem(TOKEN, await askForToken(token !== null));
  }
}

async function reach(path, options) {
  try {
    return await fetch(path, options);
  } catch (error) {
    if (isCancelled(error)) throw error;
    throw new ApiError("The server does not answer. Does it still run, and is the network up?");
  }
}

async function explain(reply) {
  const wait = reply.headers.get("Retry-After");
  const later = wait && reply.status === 429 ? ` It asks to wait ${wait} seconds.` : "";
  try {
    return `${(await reply.json()).error}${later}`;
  } catch {
    return `The server has answered with status ${reply.status}, without an explanation.`;
  }
}

let asking;

/** Ask for the token of the server, once for all requests that need it. */
function askForToken(isWrong) {
  asking ??= new Promise((resolve) => {
    const input = element("input", { type: "password", id: "token", required: true, autocomplete: "off" });
    const form = element(
      "form",
      {
        method: "dialog",
        onsubmit: (event) => {
          event.preventDefault();
          dialog.close();
          dialog.remove();
          asking = undefined;
          resolve(input.value.trim());
        },
      },
      element("h2", {}, "Token"),
      element("p", {}, isWrong ? "The token is wrong." : "This server needs a token (`--token-file`)."),
      element("label.field", { for: "token" }, element("span", {}, "Token"), input),
      element("button.primary", {}, "Continue"),
    );
    const dialog = element("dialog", { oncancel: (event) => event.preventDefault() }, form);
    document.body.append(dialog);
    dialog.showModal();
  });
  return asking;
}

/** A line for errors that screen readers announce. */
export function errorLine() {
  const node = element("p.error", { role: "alert", hidden: true });
  return {
    node,
    show(error) {
      if (isCancelled(error)) return;
      if (!(error instanceof ApiError)) console.error(error);
      replace(node, error instanceof ApiError ? error.message : `The page has failed: ${error.message}`);
      node.hidden = false;
    },
    clear() {
      node.hidden = true;
    },
  };
}
