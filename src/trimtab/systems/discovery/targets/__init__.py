"""From findings to Targets.

identity   when two answers are one device; devices, one for each identity
matching   which Target a device is; drafting, what it then says; settle, both for a whole sweep; all of it pure
dressing   names, labels and connection of a Target, by templates and naming
settler    settling with its effects; writing, the writes themselves
fading     how a Target disappears, purely; parting, carried out
"""
