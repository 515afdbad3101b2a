/** A small dialog beside an element: closed by Escape, by a click elsewhere, or by a choice. */

import { element, replace } from "./dom.js";

/** Create the popover; it belongs to one view. */
export function createPopover() {
  const title = element("h3");
  const content = element("div");
  const node = element("div.popover", { role: "dialog", hidden: true, tabindex: -1 }, title, content);
  let anchor = null;

  const onKey = (event) => event.key === "Escape" && close();
  const onPointer = (event) => !node.contains(event.target) && close(false);

  /** Open it below an element. */
  function open(beside, label, ...children) {
    close(false);
    anchor = beside;
    replace(title, label);
    replace(content, ...children);
    node.setAttribute("aria-label", label);
    node.hidden = false;
    arrange();
    content.querySelector("button:not(:disabled), input")?.focus({ preventScroll: true });
    node.scrollIntoView({ block: "nearest" });
    document.addEventListener("keydown", onKey);
    setTimeout(() => document.addEventListener("pointerdown", onPointer));
  }

  function arrange() {
    const box = anchor.getBoundingClientRect();
    const parent = node.parentElement.getBoundingClientRect();
    const left = Math.min(Math.max(box.left - parent.left, 0), Math.max(parent.width - node.offsetWidth, 0));
    node.style.left = `${left}px`;
    node.style.top = `${box.top - parent.top + Math.min(box.height, 60) + 6}px`;
  }

  /** Close it and return the focus. */
  function close(hasFocus = true) {
    if (node.hidden) return;
    document.removeEventListener("keydown", onKey);
    document.removeEventListener("pointerdown", onPointer);
    node.hidden = true;
    if (hasFocus && anchor?.isConnected) (anchor.tabIndex >= 0 ? anchor : anchor.querySelector("[tabindex='0']"))?.focus({ preventScroll: true });
  }

  return { node, open, close };
}
