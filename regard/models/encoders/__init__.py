"""Encoders: values → Memory."""

from regard.models.encoders.rnn import RnnEncoder, RnnEncoderConfig

EncoderConfig = RnnEncoderConfig
"""The settings of any encoder; more kinds join as a union told apart by `kind`."""

__all__ = ["EncoderConfig", "RnnEncoder", "RnnEncoderConfig"]
