"""The parts of a run; `running` puts them together.

tools      what runs share, and what is remembered between them
asking     what the GitSync asks for
source     the revision: fetched, verified, read
checking   the whole of it, judged before the first write
drafting   what there is, and so what is to be done
writing    what changed in the system, committed and pushed
doing      what changed in Git, applied; what went from it, deleted
journal    what is written of the run in its GitSync
verdicts   how it ended, in words
"""
