"""Network discovery: which devices exist, what they are, and how to reach them, as Targets.

    kinds/       what users write and read
    rule         what wakes the controller; keeper, one loop a rule; loop, run after run; run, one from end to end
    settings     all that a rule names, read together; problems and admission, what is wrong with it
    scope/       which addresses, at what cost, and when
    sweep/       the credential-free probe, in a thread of its own; sweeping, probing and asking together
    identify/    gNMI, NETCONF, SSH and SNMP: what a device says of itself; asking, one device by several of them
    vendors/     how to read what it says
    ledger/      what is remembered of each address, and which credential may be tried, so that nobody locks us out
    targets/     when two answers are one device, what the Targets should be, and how one disappears

`findings` has what these say to each other.
"""
