/** Recording from the microphone as a WAVE file, which every server reads. */

/** Create a recorder. */
export function createRecorder() {
  let session = null;
  let numStarts = 0;

  return {
    isRecording: () => session !== null,

    /** Ask for the microphone and start; return whether it records, and was not cancelled since. */
    async start() {
      if (!navigator.mediaDevices) throw new Error("browsers allow it on this machine and over https only");
      const start = ++numStarts;
      const media = await navigator.mediaDevices.getUserMedia({ audio: true });
      const context = new AudioContext();
      const started = { media, context, parts: [] };
      try {
        await context.audioWorklet.addModule("/static/recorder_worklet.js");
      } catch (error) {
        release(started);
        throw error;
      }
      if (start !== numStarts) {
        release(started);
        return session !== null;
      }
      const source = context.createMediaStreamSource(media);
      const worklet = new AudioWorkletNode(context, "recorder", { numberOfOutputs: 0 });
      worklet.port.onmessage = (event) => started.parts.push(event.data);
      source.connect(worklet);
      session = started;
      return true;
    },

    /** Stop and return the recording. */
    stop() {
      const { parts, context } = session;
      this.cancel();
      if (!parts.length) throw new Error("it has sent nothing");
      return toWave(parts, context.sampleRate);
    },

    /** Stop without a recording. */
    cancel() {
      numStarts++;
      if (session) release(session);
      session = null;
    },
  };
}

function release({ media, context }) {
  media.getTracks().forEach((track) => track.stop());
  context.close();
}

/** Return samples as a WAVE file of 16-bit integers with one channel. */
function toWave(parts, rate) {
  const number = parts.reduce((sum, part) => sum + part.length, 0);
  const view = new DataView(new ArrayBuffer(44 + 2 * number));
  const write = (offset, text) => [...text].forEach((letter, index) => view.setUint8(offset + index, letter.charCodeAt(0)));
  write(0, "RIFF");
  view.setUint32(4, 36 + 2 * number, true);
  write(8, "WAVEfmt ");
  view.setUint32(16, 16, true);
  view.setUint16(20, 1, true);
  view.setUint16(22, 1, true);
  view.setUint32(24, rate, true);
  view.setUint32(28, 2 * rate, true);
  view.setUint16(32, 2, true);
  view.setUint16(34, 16, true);
  write(36, "data");
  view.setUint32(40, 2 * number, true);
  let offset = 44;
  for (const part of parts) {
    for (const sample of part) {
      view.setInt16(offset, 32767 * Math.min(Math.max(sample, -1), 1), true);
      offset += 2;
    }
  }
  return new Blob([view], { type: "audio/wav" });
}
