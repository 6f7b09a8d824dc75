"""Network discovery: which devices exist, what they are, and how to reach them, as Targets.

kinds/       what users write and read
addresses    sets of addresses as intervals; plan, what a sweep of them costs; windows, when it may begin
sweep/       the credential-free probe, in a thread of its own
identify/    gNMI, NETCONF, SSH and SNMP: what a device says of itself; vendors, how to read it
logins       which credential may be tried now, so that no device locks us out
identity     when two answers are one device; settle, what the Targets should be; fading, how one disappears
ledger       what is known of each address, in a blob
rule, loop   the life of a rule, and of one sweep
"""
