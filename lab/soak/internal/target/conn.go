package target

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"strconv"
)

func Networks() []string { return []string{"tcp", "tls", "unix"} }

// Conn is a connection to a server.
type Conn struct {
	net.Conn
	raw net.Conn // below TLS
	in  *bufio.Reader
}

// Dial connects; the connection is closed when ctx is done.
func (s *Server) Dial(ctx context.Context, network string) (*Conn, error) {
	c, err := s.DialRaw(ctx, network)
	if err != nil || network != "tls" {
		return c, err
	}
	secured := tls.Client(c.raw, s.tlsConfig)
	if err := secured.HandshakeContext(ctx); err != nil {
		_ = c.raw.Close()
		return nil, err
	}
	c.Conn, c.in = secured, bufio.NewReader(secured)
	return c, nil
}

// DialRaw connects without a TLS handshake.
func (s *Server) DialRaw(ctx context.Context, network string) (*Conn, error) {
	socket, addr := "tcp", s.TCP
	switch network {
	case "tls":
		addr = s.TLS
	case "unix":
		socket, addr = "unix", s.Unix
	case "metrics":
		addr = s.Metrics
	case "http":
		addr = s.HTTP
	case "grpc":
		addr = s.GRPC
	}
	nc, err := new(net.Dialer).DialContext(ctx, socket, addr)
	if err != nil {
		return nil, err
	}
	context.AfterFunc(ctx, func() { _ = nc.Close() })
	return &Conn{Conn: nc, raw: nc, in: bufio.NewReaderSize(nc, 16<<10)}, nil
}

// Reset ends a TCP connection by RST, which drops data in flight.
func (c *Conn) Reset() {
	if nc, ok := c.raw.(*net.TCPConn); ok {
		_ = nc.SetLinger(0)
	}
	_ = c.raw.Close()
}

// HalfClose sends a FIN, or TLS's alert.
func (c *Conn) HalfClose() error {
	if nc, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return nc.CloseWrite()
	}
	return nil
}

// Reply reads a whole reply and returns its first line, or the first error inside it.
func (c *Conn) Reply() (string, error) {
	var first string
	for left := 1; left > 0; left-- {
		line, err := c.in.ReadString('\n')
		if err != nil {
			return first, err
		}
		line = line[:max(len(line)-2, 0)]
		if line == "" {
			return first, fmt.Errorf("an empty line in a reply that begins with %q", first)
		}
		if first == "" || line[0] == '-' && first[0] != '-' {
			first = line
		}
		n, _ := strconv.Atoi(line[1:])
		switch line[0] {
		case '$', '=':
			if n >= 0 {
				_, err = io.CopyN(io.Discard, c.in, int64(n)+2)
			}
		case '*', '~', '>':
			left += max(n, 0)
		case '%':
			left += 2 * n
		}
		if err != nil {
			return first, err
		}
	}
	return first, nil
}

// TLSConfig returns what clients need to trust the server.
func (s *Server) TLSConfig() *tls.Config { return s.tlsConfig.Clone() }
