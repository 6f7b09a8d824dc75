"""Git sync: a folder of a Git branch and a project of the system, kept the same, in one direction or in both.

Flow of a run: fetch the branch → read and judge the whole revision → look at what may differ → plan (a three-way merge against
what both sides were after the last run) → write to Git what changed in the system, as one commit → apply and prune → tell.
What the run did is the base of the next one, in an inventory that is written before the acts that depend on it.

kinds/               Repository, GitSync, SyncConflict
conducting           when a sync runs, and why; following: changes of the system that wake it
running, run/        one run, from the fetch to the status (telling)
reach, reading       from a Repository to a mirror of it, and from a commit to documents
served, knowing      what the API serves, with schemas; what classes of kinds tell besides
acting               as whom a sync acts, and what it may touch
deciding, looking    what has to be looked at, and the looking
applying, artifacts  acts in the system
exporting, authors   acts in Git
conflicts            SyncConflicts, made and obeyed
keeping              where inventories are
verifying            signatures, of others and our own
listening, webhooks/ what Git servers tell of pushes
previewing           plans for people; nothing is written
parsing/, ordering, layout, merging/, planning/, editing/, inventory   the algorithms, without I/O
"""
