/** Sends the samples of the first channel to the page. */

class Recorder extends AudioWorkletProcessor {
  process([[samples]]) {
    if (samples) this.port.postMessage(samples.slice());
    return true;
  }
}

registerProcessor("recorder", Recorder);
