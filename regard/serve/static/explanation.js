/** Maps of a prediction: attention weights by layer and head, and attributions by other methods. */

import { post } from "./api.js";

export const METHODS = [
  ["attention", "Attention"],
  ["gradients", "Gradients"],
  ["integrated_gradients", "Integrated gradients"],
  ["erasure", "Erasure"],
];

const LABELS = {
  gradients: "gradient × input",
  integrated_gradients: "integrated gradients",
  erasure: "loss of log p without it:",
};

/** Return whether an inspected prediction has attention weights. */
export const hasAttention = (inspected) => Boolean(inspected?.attention?.weights.length);

/** Return the number of layers and of heads. */
export function attentionSize(inspected) {
  const weights = inspected?.attention?.weights ?? [];
  return [weights.length, weights[0]?.length ?? 0];
}

/**
 * Return the attention weights of a layer and head, or the mean where they are not chosen.
 *
 * @param {Object} inspected A reply of `/v1/inspect`.
 * @param {?number} layer Index of the layer.
 * @param {?number} head Index of the head.
 */
export function attentionMap(inspected, layer = null, head = null) {
  const { source, target, weights, kind } = inspected.attention;
  const layers = layer === null ? weights : [weights[layer]];
  const maps = layers.flatMap((heads) => (head === null ? heads : [heads[head]]));
  const mean = target.map((_, row) =>
    source.map((_, column) => maps.reduce((sum, map) => sum + map[row][column], 0) / maps.length),
  );
  const largest = Math.max(1e-6, ...mean.map((row) => Math.max(...row)));
  // Weights of many cells are small; saliencies have no upper bound.
  const scale = largest > 1 ? largest : Math.max(largest, 0.35);
  return { source, target, weights: mean, scale, isSigned: false, label: kind };
}

/**
 * Return the attributions of the source by a method.
 *
 * @param {Object} asked
 * @param {string} asked.model Name of the model.
 * @param {string|Object} asked.source The source of the request.
 * @param {string} asked.target The prediction.
 * @param {string} asked.method The method.
 * @param {AbortSignal} [asked.signal]
 */
export async function attributionMap({ model, source, target, method, signal }) {
  const found = await post("/v1/attribution", { model, source, target, methods: [method] }, { signal });
  const [{ source: weights }] = found.attributions;
  const scale = Math.max(1e-6, ...weights.flat().map(Math.abs));
  return {
    source: found.source_tokens,
    target: found.target_tokens,
    weights,
    scale,
    isSigned: true,
    label: LABELS[method] ?? method,
    logProbs: found.token_log_probs,
  };
}
