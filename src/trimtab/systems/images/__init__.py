"""Image discovery: which images registries hold, what is in them, and what is wrong with them.

Flow of a discovery: a trigger (a DiscoveryJob, a schedule, a push) → the controller claims the registry (runs/claim) and
asks for a catalogue (messages) → a worker lists the registry (worker/, registry/) and puts the catalogue into a blob → the
controller makes and marks Images by it (applying) and asks for SBOMs → workers read layers and write SBOMs → the controller
counts who of the run's members is settled, completes the job and frees the registry. Only the controller creates and
removes Images, and a worker's only word on a run is the status of its job, guarded by run and fence.

kinds/            Registry, DiscoveryJob, Image, SBOM, VulnerabilityReport, VEXSource
runs/             the claim of a registry, the states of a run, the catalogue
keeping           the registries' controller at work: schedules, claims freed
conducting        the jobs' controller at work: from the claim to the end of a run
settling          which members of a run are settled
applying, wanted  from a catalogue to Images
rescans           when an SBOM is scanned again
worker/           the handlers of messages; working is the worker in the controllers' own process
reach, filters    from a Registry to a client of it, and which of its tags are wanted
listening         what registries tell of pushes
databases         where the vulnerability database is; vex_sources and vex_store: the statements that count; pins: whose blobs
registry/         the client of a registry and the listing of all its images
layers/           the layers of an image, read as they come and never unpacked to disk
packages/         the packages in them, by ecosystem
sbom/             what was found, as SPDX and CycloneDX
vulnerabilities/  what is known to be wrong with packages: the database, matching, VEX
"""
