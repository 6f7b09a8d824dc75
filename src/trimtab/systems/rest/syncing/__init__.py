"""The algebra of a reconcile, pure: no I/O and no clock.

paths        names of fields, and reading and changing a value by them
leaves       what of a body is compared and owned one by one, and what is known of each
comparing    when two values are the same
aligning     one spelling for names that ARM spells as it likes
known        what a service answered instead of what it was given
difference   wanted, applied and live: intent, removals, drift
adopting     the first sight of what exists already
stripping    what of a body a call takes
removing     the ways in which services forget a field
writing      the body of the next write
settling     what a settled write came to
secrets      what may be remembered and shown
"""
