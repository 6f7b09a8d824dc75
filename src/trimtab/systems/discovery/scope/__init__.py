"""What a rule sweeps: entries become addresses (`implementations`, `sources`, `addresses`), addresses and profiles become
probes (`probes`) with a cost (`plan`), and `windows` says when."""
