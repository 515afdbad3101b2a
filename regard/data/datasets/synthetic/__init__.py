"""Data sets that are generated: phrasebook, scenes, moving shapes, toys, tones."""
