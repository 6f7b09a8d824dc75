"""What is remembered of each address: `records` in a blob, kept by `book`; `logins` says which credential may be tried,
`attempts` keeps that during a sweep; `why` explains it all to people."""
