"""What a model computes, made visible: embeddings, neighbours, probes, attention."""
