/** Pictures as files: SVG, and PNG drawn from it. */

import { button, element } from "./dom.js";

/** Attributes in which the styles of the page are written into a picture. */
const STYLES = ["fill", "stroke", "stroke-width", "stroke-opacity", "fill-opacity", "opacity", "font-size", "font-weight", "visibility"];

/** Resolution of a PNG: pixels per unit of the drawing. */
const SCALE = 2;

/**
 * Create the buttons that save a picture.
 *
 * @param {function(): ?SVGElement} find Returns the picture as it is shown.
 * @param {function(): string} name Returns the name of the file without its ending.
 */
export function exportButtons(find, name) {
  const save = async (make, ending) => {
    const picture = find();
    if (picture) download(await make(picture), `${name()}.${ending}`);
  };
  return element(
    "span.exports",
    {},
    button("SVG", () => save(toSvg, "svg"), { class: "plain small", title: "Save as SVG" }),
    button("PNG", () => save(toPng, "png"), { class: "plain small", title: "Save as PNG" }),
  );
}

/** Return a picture as a data URL of an SVG file with a background. */
async function toSvg(picture) {
  const text = new XMLSerializer().serializeToString(standalone(picture));
  return `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
}

/** Return a picture as a data URL of a PNG file. */
async function toPng(picture) {
  const image = new Image();
  image.src = await toSvg(picture);
  await image.decode();
  const canvas = element("canvas", { width: image.naturalWidth * SCALE, height: image.naturalHeight * SCALE });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return canvas.toDataURL("image/png");
}

/** Return a copy of a picture with its styles as attributes. */
function standalone(picture) {
  const copy = picture.cloneNode(true);
  if (picture.isConnected) writeStyles(picture, copy);
  const [width, height] = ["width", "height"].map((name) => Number(picture.getAttribute(name)));
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
