"""How each ecosystem orders versions: one module each, one function `key`, whose values sort as the versions do.

Every `key` raises ValueError, with what is wrong, for a text that is no version there. Texts are bounded by the caller.
"""
