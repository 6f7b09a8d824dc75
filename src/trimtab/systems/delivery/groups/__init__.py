"""Services that are released together: `release` is the life of a release, `orders` what it says to a member."""
