package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"
)

// delivery is how long a change took to reach watchers, by the one clock that writer and watchers share.
type delivery struct {
	Watchers   int     `json:"watchers"`
	Writes     int     `json:"writes"`
	Events     int     `json:"events"`
	Missing    int     `json:"missing"`
	Seconds    float64 `json:"seconds"`
	P50Millis  float64 `json:"p50_ms"`
	P99Millis  float64 `json:"p99_ms"`
	LastMillis float64 `json:"last_p50_ms"`
}

var mark = []byte(`"sequence":"`)

// watch changes one object again and again; each time it waits until all watchers have seen the change.
func watch(o options) (any, error) {
	object, err := os.ReadFile(o.template)
	if err != nil {
		return nil, err
	}
	writer, err := o.connect()
	if err != nil {
		return nil, err
	}
	name := o.prefix + "-watched"
	change := func(sequence int) error {
		path := o.path + "/" + name + "?fieldManager=load&force=true"
		answer, err := writer.call("PATCH", path, "application/apply-patch+yaml", named(object, name, sequence))
		if err != nil {
			return err
		}
		want := http.StatusOK
		if sequence == 0 {
			want = answer.StatusCode
		}
		_, err = drain(answer, want)
		return err
	}
	if err := change(0); err != nil {
		return nil, err
	}
	since, err := revision(writer, o.path)
	if err != nil {
		return nil, err
	}

	receipts := make(chan receipt, 4*o.clients)
	opened := make(chan error, o.clients)
	dials := make(chan struct{}, 16)
	var watching sync.WaitGroup
	for range o.clients {
		watching.Add(1)
		go func() {
			defer watching.Done()
			dials <- struct{}{}
			lines, err := open(o, since)
			<-dials
			opened <- err
			if err == nil {
				follow(lines, receipts)
			}
		}()
	}
	for range o.clients {
		if err := <-opened; err != nil {
			return nil, fmt.Errorf("open a watch: %w", err)
		}
	}

	var all, lasts []time.Duration
	missing := 0
	begin := time.Now()
	writes := 0
	for sequence := 1; sequence <= o.count && time.Since(begin) < o.duration; sequence++ {
		start := time.Now()
		if err := change(sequence); err != nil {
			return nil, err
		}
		writes++
		deadline := time.After(10 * time.Second)
		var last time.Duration
	wait:
		for seen := 0; seen < o.clients; {
			select {
			case r := <-receipts:
				if r.sequence == sequence {
					seen++
					last = r.at.Sub(start)
					all = append(all, last)
				}
			case <-deadline:
				missing += o.clients - seen
				break wait
			}
		}
		lasts = append(lasts, last)
	}
	seconds := time.Since(begin).Seconds()
	p50, p99 := percentiles(all)
	lastP50, _ := percentiles(lasts)
	return delivery{o.clients, writes, len(all), missing, seconds, p50, p99, lastP50}, nil
}

type receipt struct {
	sequence int
	at       time.Time
}

func open(o options, since string) (*bufio.Reader, error) {
	connection, err := o.connect()
	if err != nil {
		return nil, err
	}
	answer, err := connection.call("GET", o.path+"?watch=true&timeoutSeconds=600&resourceVersion="+since, "", nil)
	if err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		_, err := drain(answer, http.StatusOK)
		return nil, err
	}
	return bufio.NewReaderSize(answer.Body, 8<<10), nil
}

func follow(lines *bufio.Reader, receipts chan<- receipt) {
	for {
		line, err := lines.ReadBytes('\n')
		now := time.Now()
		if err != nil {
			return
		}
		from := bytes.Index(line, mark)
		if from < 0 {
			continue
		}
		digits := line[from+len(mark):]
		sequence, err := strconv.Atoi(string(digits[:bytes.IndexByte(digits, '"')]))
		if err == nil {
			receipts <- receipt{sequence, now}
		}
	}
}

func revision(c caller, path string) (string, error) {
	answer, err := c.call("GET", path+"?limit=1", "", nil)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		return "", err
	}
	var collection struct {
		Metadata struct {
			ResourceVersion string `json:"resourceVersion"`
		} `json:"metadata"`
	}
	return collection.Metadata.ResourceVersion, json.Unmarshal(body, &collection)
}
