"""Image-to-image: super-resolution, colouring, next frame, image autoencoders."""
