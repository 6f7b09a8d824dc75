"""The sweep: which addresses answer, found without credentials by a thread of its own.

job          what is asked, and what comes back
permutation  in which order; budget, how fast; attention, by which clock
syscalls     the kernel, without giving up the interpreter's lock
tcp, udp     one probe of one job, by connections or datagrams
task         one job in the thread; thread, all of them
sweeper      the door for asyncio; once, for a few addresses
"""

from trimtab.systems.discovery.sweep.job import Answer, Batch, Job, Probe, Quality
from trimtab.systems.discovery.sweep.once import probe_once
from trimtab.systems.discovery.sweep.sweeper import Limits, Sweep, Sweeper

__all__ = ["Answer", "Batch", "Job", "Limits", "Probe", "Quality", "Sweep", "Sweeper", "probe_once"]
