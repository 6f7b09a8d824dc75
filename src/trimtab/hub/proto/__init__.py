"""Hub kinds as proto3 files, and back.

`loading.py` makes a kind of a message, `writing.py` a file of a class; `lock.py` keeps the numbers of fields for ever. Both
sides share the types of `common.py`, whose options say what proto3 has no words for: references, defaults, what is required.
"""
