/** Input of images, videos and recordings: chosen, dropped, pasted, or recorded here. */

import { ApiError } from "./api.js";
import { button, element, replace } from "./dom.js";
import { createRecorder } from "./recorder.js";

const NAMES = { image: "an image", "text+image": "an image", audio: "a recording", video: "a video" };
const TYPES = { image: "image/*", "text+image": "image/*", audio: "audio/*", video: "video/*,image/gif" };

/**
 * Create the input; it is hidden for models of texts.
 *
 * @param {Object} actions
 * @param {function(Object)} actions.onSource Called with an upload, `{data}` as a data URL.
 * @param {function(Error)} actions.onError Called with an error.
 */
export function createMediaInput({ onSource, onError }) {
  let modality = "text";
  let upload = null;
  const file = element("input", { type: "file", id: "file", class: "unseen", onchange: () => choose() });
  const preview = element("div.preview");
  const label = element("span");
  const record = button("Record", () => toggleRecording(), { hidden: true });
  const node = element(
    "div.drop",
    {
      hidden: true,
      ondragover: (event) => {
        event.preventDefault();
        node.classList.add("is-over");
      },
      ondragleave: () => node.classList.remove("is-over"),
      ondrop: (event) => {
        event.preventDefault();
        node.classList.remove("is-over");
        if (event.dataTransfer.files[0]) read(event.dataTransfer.files[0]);
      },
    },
    preview,
    element("p", {}, label, " "),
    element("p", {}, element("label.button", { for: "file" }, "Choose a file"), file, " ", record),
  );
  const recorder = createRecorder();

  function choose() {
    if (file.files[0]) read(file.files[0]);
    file.value = ""; // so that the same file can be chosen again
  }

  function read(blob) {
    const reader = new FileReader();
    reader.onload = () => use(reader.result, blob.name ?? "recording");
    reader.onerror = () => onError(new ApiError("The file cannot be read."));
    reader.readAsDataURL(blob);
  }

  function use(data, name) {
    upload = { data };
    replace(preview, modality.endsWith("image") ? element("img", { src: data, alt: name }) : element("span", {}, name));
    onSource(upload);
  }

  async function toggleRecording() {
    try {
      if (recorder.isRecording()) {
        showRecording(false);
        read(recorder.stop());
      } else {
        showRecording(await recorder.start());
      }
    } catch (error) {
      onError(new ApiError(`The microphone cannot be used: ${error.message}.`));
    }
  }

  function showRecording(isRecording) {
    replace(record, isRecording ? "Stop" : "Record");
    node.classList.toggle("is-recording", isRecording);
  }

  const onPaste = (event) => {
    const pasted = [...(event.clipboardData?.files ?? [])][0];
    if (pasted && !node.hidden) read(pasted);
  };
  document.addEventListener("paste", onPaste);

  return {
    node,
    upload: () => upload,
    /** Show the input that a model needs. */
    setModality(next) {
      if (next !== modality) {
        upload = null;
        replace(preview);
        recorder.cancel();
        showRecording(false);
      }
      modality = next;
      node.hidden = modality === "text";
      record.hidden = modality !== "audio";
      file.accept = TYPES[modality] ?? "";
      replace(label, `Drop or paste ${NAMES[modality] ?? "a file"} here`);
    },
    close() {
      document.removeEventListener("paste", onPaste);
      recorder.cancel();
    },
  };
}
