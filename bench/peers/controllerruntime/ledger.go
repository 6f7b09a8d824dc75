package main

import (
	"encoding/binary"
	"os"
	"sync"
	"syscall"
	"time"
)

// ledger is the file, mapped into memory, in which each program under test writes what it did: see ledger.py.
type ledger struct {
	sync.Mutex
	memory []byte
}

const (
	header = 32
	record = 16
)

func openLedger(path string) (*ledger, error) {
	file, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	about, err := file.Stat()
	if err != nil {
		return nil, err
	}
	memory, err := syscall.Mmap(int(file.Fd()), 0, int(about.Size()), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
	return &ledger{memory: memory}, err
}

func (l *ledger) add(word int) {
	l.Lock()
	defer l.Unlock()
	at := l.memory[8*word:]
	binary.LittleEndian.PutUint64(at, binary.LittleEndian.Uint64(at)+1)
}

func (l *ledger) setReady() { l.add(3) }

// called counts a reconcile, whether it has work or not.
func (l *ledger) called() { l.add(1) }

func (l *ledger) collected() { l.add(2) }

// done notes a reconcile that had work, once the work is done.
func (l *ledger) done(changed int64, started time.Time) {
	l.Lock()
	defer l.Unlock()
	count := binary.LittleEndian.Uint64(l.memory)
	at := l.memory[header+record*count:]
	binary.LittleEndian.PutUint64(at, uint64(changed))
	binary.LittleEndian.PutUint64(at[8:], uint64(started.UnixNano()))
	binary.LittleEndian.PutUint64(l.memory, count+1)
}
