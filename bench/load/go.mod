module trimtab.dev/bench/load

go 1.22
