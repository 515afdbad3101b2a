"""Recipe of a very small image autoencoder for tests."""

RECIPE = """
task = "image_to_image"
[data.source]
kind = "image"
size = 8
channels = CHANNELS
[data.target]
size = 8
channels = CHANNELS
[model.encoder]
kind = "bottleneck"
[model.encoder.encoder]
kind = "resnet"
widths = [4, 8]
blocks = [1, 1]
[model.encoder.bottleneck]
kind = "KIND"
dim = WIDTH
[model.generator]
kind = "convolution"
widths = [8, 4]
blocks = [1, 1]
[train]
max_epochs = 0
max_steps = 3
validate_every = 3
precision = "fp32"
"""


def recipe(kind: str, *, width: int = 3, channels: int = 1) -> str:
    """Return the recipe of an autoencoder with latents of a given size."""
    text = RECIPE.replace("KIND", kind).replace("WIDTH", str(width))
    return text.replace("CHANNELS", str(channels))
