"""Image discovery: which images registries hold, what is in them, and what is wrong with them.

registry/    the client of a registry and the listing of all its images
layers/      the layers of an image, read as they come and never unpacked to disk
packages/    the packages in them, by ecosystem
sbom/        what was found, as SPDX and CycloneDX
"""
