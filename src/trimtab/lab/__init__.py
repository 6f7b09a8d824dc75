"""Real peers on this machine, for demonstrations and tests. Nothing here sends anything to another machine."""
