"""Training loop, losses, optimisers, schedules, checkpoints and the training log."""
