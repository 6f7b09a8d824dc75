// Load sends one kind of load to a Kubernetes API server and prints what it saw as one line of JSON.
//
// Both servers of a comparison get the same requests from this same program. It speaks HTTP/1.1 on one kept connection
// per client, written by hand so that the generator takes as little as possible of the machine that it shares with the
// server; -http2 goes through net/http instead, as client-go does.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"time"
)

type options struct {
	target
	path     string
	template string
	prefix   string
	clients  int
	count    int
	objects  int
	duration time.Duration
}

func main() {
	log.SetFlags(0)
	var o options
	operation := flag.String("op", "", "create, get, list, apply or watch")
	flag.StringVar(&o.url, "server", "", "URL of the server")
	flag.StringVar(&o.ca, "ca", "", "PEM file of the server's authority")
	flag.StringVar(&o.certificate, "cert", "", "PEM file of a client certificate")
	flag.StringVar(&o.key, "key", "", "PEM file of its key")
	flag.StringVar(&o.token, "token", "", "bearer token")
	flag.BoolVar(&o.http2, "http2", false, "HTTP/2 by net/http, instead of HTTP/1.1")
	flag.BoolVar(&o.gzip, "gzip", false, "accept compressed answers")
	flag.StringVar(&o.path, "path", "", "path of the collection")
	flag.StringVar(&o.template, "object", "", "JSON file of an object; NAME and SEQUENCE in it are replaced")
	flag.StringVar(&o.prefix, "prefix", "object", "what names begin with")
	flag.IntVar(&o.clients, "clients", 1, "concurrent clients, or watchers")
	flag.IntVar(&o.count, "count", 0, "stop after so many operations; 0 is no limit")
	flag.IntVar(&o.objects, "objects", 1000, "how many objects there are to read or apply")
	flag.DurationVar(&o.duration, "duration", time.Minute, "stop after so long")
	flag.Parse()

	run, known := map[string]func(options) (any, error){
		"create": create, "get": get, "list": list, "apply": apply, "watch": watch,
	}[*operation]
	if !known {
		log.Fatalf("no such operation: %q", *operation)
	}
	result, err := run(o)
	if err != nil {
		log.Fatal(err)
	}
	if err := json.NewEncoder(os.Stdout).Encode(result); err != nil {
		log.Fatal(fmt.Errorf("print the result: %w", err))
	}
}
