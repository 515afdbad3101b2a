"""Generated data sets: phrasebook, scenes, moving shapes, toy tasks, tones."""
