"""Documents that say what is in an image: SPDX 2.3 and CycloneDX 1.6, from one inventory."""
