// Package http2test speaks HTTP/2 frame by frame, as no client does. A Conn is for one writer beside one
// reader.
package http2test

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"io"
	"net"
)

// Kinds of frames (RFC 9113, 6):
const (
	Data         = 0
	Headers      = 1
	Priority     = 2
	Reset        = 3
	Settings     = 4
	Ping         = 6
	GoAway       = 7
	Window       = 8
	Continuation = 9
)

// Flags of frames:
const (
	EndStream  = 1
	EndHeaders = 4
)

func Frame(kind, flags byte, stream uint32, payload string) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(payload))<<8|uint32(kind))
	return append(binary.BigEndian.AppendUint32(append(b, flags), stream), payload...)
}

// Fields returns a list of names and values as HPACK, without compression.
func Fields(namesAndValues ...string) string {
	var b []byte
	for i, text := range namesAndValues {
		if i%2 == 0 {
			b = append(b, 0) // a literal that is not indexed
		}
		if len(text) < 127 {
			b = append(b, byte(len(text)))
		} else { // an integer with a prefix of 7 bits
			b = binary.AppendUvarint(append(b, 127), uint64(len(text)-127))
		}
		b = append(b, text...)
	}
	return string(b)
}

// Request returns the fields of a request, and further ones.
func Request(method, path string, more ...string) string {
	return Fields(append([]string{":method", method, ":scheme", "http", ":authority", "localhost", ":path", path}, more...)...)
}

// GRPC returns the fields of a call of a procedure, and further ones.
func GRPC(procedure string, more ...string) string {
	return Request("POST", procedure, append([]string{"content-type", "application/grpc", "te", "trailers"}, more...)...)
}

// Conn is a connection of a client.
type Conn struct {
	net.Conn
	read   *bufio.Reader
	stream uint32
}

// Begin sends the preface.
func Begin(nc net.Conn) (*Conn, error) {
	_, err := nc.Write(append([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), Frame(Settings, 0, 0, "")...))
	return &Conn{Conn: nc, read: bufio.NewReader(nc)}, err
}

// Open returns the frame that begins the next request. Flags may end it.
func (c *Conn) Open(fields string, flags byte) (b []byte, stream uint32) {
	if stream = 1; c.stream > 0 {
		stream = c.stream + 2
	}
	c.stream = stream
	return Frame(Headers, EndHeaders|flags, stream, fields), stream
}

// Received is a frame of the server.
type Received struct {
	Kind, Flags byte
	Stream      uint32
	Payload     string
}

func (c *Conn) Next() (r Received, err error) {
	var h [9]byte
	if _, err := io.ReadFull(c.read, h[:]); err != nil {
		return r, fmt.Errorf("http2test: %w", err)
	}
	payload := make([]byte, binary.BigEndian.Uint32(h[:4])>>8)
	_, err = io.ReadFull(c.read, payload)
	return Received{h[3], h[4], binary.BigEndian.Uint32(h[5:]), string(payload)}, err
}

// Ends reports whether an answer ends with the frame.
func (r Received) Ends() bool { return r.Kind <= Headers && r.Flags&EndStream != 0 }

// Outlasts writes next 2,000 times, and reports whether the connection is still open.
func (c *Conn) Outlasts(next func() []byte) bool {
	for range 2000 {
		if _, err := c.Write(next()); err != nil {
			break
		}
	}
	const last = "the last"
	_, _ = c.Write(Frame(Ping, 0, 0, last))
	for {
		r, err := c.Next()
		if err != nil {
			return false
		}
		if r.Kind == Ping && r.Payload == last {
			return true
		}
	}
}
