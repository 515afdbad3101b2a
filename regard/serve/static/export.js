/** Plots as files: SVG, and PNG drawn from it. */

import { button, element } from "./dom.js";

/** Attributes in which the styles of the page are written into a image. */
const STYLES = ["fill", "stroke", "stroke-width", "stroke-opacity", "fill-opacity", "opacity", "font-size", "font-weight", "visibility"];

/** Resolution of a PNG: pixels per unit of the SVG. */
const SCALE = 2;

/**
 * Create the buttons that save a image.
 *
 * @param {function(): ?SVGElement} find Returns the image as it is shown.
 * @param {function(): string} name Returns the name of the file without its ending.
 */
export function exportButtons(find, name) {
  const save = async (make, ending) => {
    const image = find();
    if (image) download(await make(image), `${name()}.${ending}`);
  };
  return element(
    "span.exports",
    {},
    button("SVG", () => save(toSvg, "svg"), { class: "plain small", title: "Save as SVG" }),
    button("PNG", () => save(toPng, "png"), { class: "plain small", title: "Save as PNG" }),
  );
}

/** Return a image as a data URL of an SVG file with a background. */
async function toSvg(image) {
  const text = new XMLSerializer().serializeToString(standalone(image));
  return `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
}

/** Return a image as a data URL of a PNG file. */
async function toPng(image) {
  const loaded = new Image();
  loaded.src = await toSvg(image);
  await loaded.decode();
  const canvas = element("canvas", { width: loaded.naturalWidth * SCALE, height: loaded.naturalHeight * SCALE });
  canvas.getContext("2d").drawImage(loaded, 0, 0, canvas.width, canvas.height);
  return canvas.toDataURL("image/png");
}

/** Return a copy of a image with its styles as attributes. */
function standalone(image) {
  const copy = image.cloneNode(true);
  if (image.isConnected) writeStyles(image, copy);
  const [width, height] = ["width", "height"].map((name) => Number(image.getAttribute(name)));
  copy.setAttribute("viewBox", `0 0 ${width} ${height}`);
  copy.removeAttribute("tabindex");
  const background = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  background.setAttribute("width", width);
  background.setAttribute("height", height);
  background.setAttribute("fill", getComputedStyle(document.querySelector(".card") ?? document.body).backgroundColor);
  copy.prepend(background);
  return copy;
}

function writeStyles(from, to) {
  const style = getComputedStyle(from);
  for (const name of STYLES) to.setAttribute(name, style.getPropertyValue(name));
  [...from.children].forEach((child, index) => writeStyles(child, to.children[index]));
}

function download(url, name) {
  const link = element("a", { href: url, download: name });
  document.body.append(link);
  link.click();
  link.remove();
}
