package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"os"
	"sort"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// throughput is what many clients did together.
type throughput struct {
	Operations int     `json:"operations"`
	Seconds    float64 `json:"seconds"`
	PerSecond  float64 `json:"per_second"`
	Bytes      int64   `json:"bytes"`
	P50Millis  float64 `json:"p50_ms"`
	P99Millis  float64 `json:"p99_ms"`
}

func create(o options) (any, error) {
	object, err := os.ReadFile(o.template)
	if err != nil {
		return nil, err
	}
	return repeat(o, http.StatusCreated, func(c caller, client, turn int) (*http.Response, error) {
		return c.call("POST", o.path, "application/json", named(object, fmt.Sprintf("%s-%d", o.prefix, turn), turn))
	})
}

func get(o options) (any, error) {
	return repeat(o, http.StatusOK, func(c caller, client, turn int) (*http.Response, error) {
		return c.call("GET", fmt.Sprintf("%s/%s-%d", o.path, o.prefix, turn*7919%o.objects), "", nil)
	})
}

func list(o options) (any, error) {
	return repeat(o, http.StatusOK, func(c caller, client, turn int) (*http.Response, error) {
		return c.call("GET", o.path, "", nil)
	})
}

// apply gives each client objects of its own, and each apply changes one field.
func apply(o options) (any, error) {
	object, err := os.ReadFile(o.template)
	if err != nil {
		return nil, err
	}
	own := max(1, o.objects/o.clients)
	return repeat(o, http.StatusOK, func(c caller, client, turn int) (*http.Response, error) {
		name := fmt.Sprintf("%s-%d", o.prefix, client*own+turn%own)
		path := o.path + "/" + name + "?fieldManager=load&force=true"
		return c.call("PATCH", path, "application/apply-patch+yaml", named(object, name, turn))
	})
}

// repeat has every client call in turn until the count or the time is used up. The first wrong answer stops the run.
func repeat(o options, want int, call func(caller, int, int) (*http.Response, error)) (any, error) {
	callers := make([]caller, o.clients)
	for i := range callers {
		var err error
		if callers[i], err = o.connect(); err != nil {
			return nil, err
		}
	}
	var turns, received atomic.Int64
	latencies := make([][]time.Duration, o.clients)
	failures := make(chan error, o.clients)
	var running sync.WaitGroup
	start := time.Now()
	end := start.Add(o.duration)
	for client, c := range callers {
		running.Add(1)
		go func() {
			defer running.Done()
			for {
				begin := time.Now()
				turn := int(turns.Add(1)) - 1
				if begin.After(end) || o.count > 0 && turn >= o.count {
					return
				}
				answer, err := call(c, client, turn)
				if err == nil {
					var size int64
					size, err = drain(answer, want)
					received.Add(size)
				}
				if err != nil {
					failures <- err
					return
				}
				latencies[client] = append(latencies[client], time.Since(begin))
			}
		}()
	}
	running.Wait()
	seconds := time.Since(start).Seconds()
	select {
	case err := <-failures:
		return nil, err
	default:
	}
	var all []time.Duration
	for _, own := range latencies {
		all = append(all, own...)
	}
	p50, p99 := percentiles(all)
	return throughput{len(all), seconds, float64(len(all)) / seconds, received.Load(), p50, p99}, nil
}

func drain(answer *http.Response, want int) (int64, error) {
	defer answer.Body.Close()
	if answer.StatusCode != want {
		body, _ := io.ReadAll(answer.Body)
		return 0, fmt.Errorf("%s: %s", answer.Status, body)
	}
	return io.Copy(io.Discard, answer.Body)
}

func named(object []byte, name string, sequence int) []byte {
	object = bytes.ReplaceAll(object, []byte("NAME"), []byte(name))
	return bytes.ReplaceAll(object, []byte("SEQUENCE"), []byte(strconv.Itoa(sequence)))
}

func percentiles(all []time.Duration) (p50, p99 float64) {
	if len(all) == 0 {
		return 0, 0
	}
	sort.Slice(all, func(i, j int) bool { return all[i] < all[j] })
	at := func(share float64) float64 { return all[int(share*float64(len(all)-1))].Seconds() * 1000 }
	return at(0.50), at(0.99)
}
