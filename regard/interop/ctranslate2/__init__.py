"""Search of translation runs by CTranslate2."""
