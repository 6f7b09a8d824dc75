package main

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
)

// target is a server and the way in.
type target struct {
	url, ca, certificate, key, token string
	http2, gzip                      bool
}

// caller makes one request at a time; the body of its answer must be read to the end before the next.
type caller interface {
	call(method, path, contentType string, body []byte) (*http.Response, error)
}

func (t target) connect() (caller, error) {
	config, err := t.tls()
	if err != nil {
		return nil, err
	}
	if t.http2 {
		transport := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true, DisableCompression: !t.gzip}
		return &multiplexed{t, &http.Client{Transport: transport}}, nil
	}
	address, err := url.Parse(t.url)
	if err != nil {
		return nil, err
	}
	connection, err := tls.Dial("tcp", address.Host, config)
	if err != nil {
		return nil, err
	}
	return &kept{target: t, host: address.Host, writer: connection, reader: bufio.NewReaderSize(connection, 16<<10)}, nil
}

func (t target) tls() (*tls.Config, error) {
	authority, err := os.ReadFile(t.ca)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{RootCAs: x509.NewCertPool()}
	if !config.RootCAs.AppendCertsFromPEM(authority) {
		return nil, fmt.Errorf("%s holds no certificate", t.ca)
	}
	if t.certificate != "" {
		pair, err := tls.LoadX509KeyPair(t.certificate, t.key)
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// kept is one HTTP/1.1 connection that stays open.
type kept struct {
	target
	host   string
	writer io.Writer
	reader *bufio.Reader
	buffer bytes.Buffer
}

func (k *kept) call(method, path, contentType string, body []byte) (*http.Response, error) {
	k.buffer.Reset()
	fmt.Fprintf(&k.buffer, "%s %s HTTP/1.1\r\nHost: %s\r\nAccept: application/json\r\n", method, path, k.host)
	if k.token != "" {
		k.buffer.WriteString("Authorization: Bearer " + k.token + "\r\n")
	}
	if k.gzip {
		k.buffer.WriteString("Accept-Encoding: gzip\r\n")
	}
	if body != nil {
		k.buffer.WriteString("Content-Type: " + contentType + "\r\nContent-Length: " + strconv.Itoa(len(body)) + "\r\n")
	}
	k.buffer.WriteString("\r\n")
	k.buffer.Write(body)
	if _, err := k.writer.Write(k.buffer.Bytes()); err != nil {
		return nil, err
	}
	return http.ReadResponse(k.reader, nil)
}

// multiplexed leaves the connections to net/http.
type multiplexed struct {
	target
	client *http.Client
}

func (m *multiplexed) call(method, path, contentType string, body []byte) (*http.Response, error) {
	request, err := http.NewRequest(method, m.url+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json")
	if body != nil {
		request.Header.Set("Content-Type", contentType)
	}
	if m.token != "" {
		request.Header.Set("Authorization", "Bearer "+m.token)
	}
	return m.client.Do(request)
}
