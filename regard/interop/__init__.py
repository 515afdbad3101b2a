"""Import and export of models, and search by other libraries: Hugging Face, CTranslate2."""
