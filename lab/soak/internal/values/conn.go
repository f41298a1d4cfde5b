// Package values calls the commands of values: at two servers, whose replies it compares, and as a flood.
package values

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"

	"cellserver/internal/test/patience"
	"cellserver/internal/test/resptest"
)

// conn is a connection that pipelines.
type conn struct {
	nc net.Conn
	in *bufio.Reader
}

func dial(ctx context.Context, addr string) (*conn, error) {
	nc, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	nc = patience.Conn{Conn: nc}
	return &conn{nc, bufio.NewReaderSize(nc, 64<<10)}, nil
}

// do makes calls at once and returns their replies.
func (c *conn) do(calls ...[]string) ([]reply, error) {
	var b []byte
	for _, call := range calls {
		b = resptest.Append(b, call...)
	}
	var writing sync.WaitGroup
	defer writing.Wait()
	writing.Go(func() { _, _ = c.nc.Write(b) }) // an error is the reader's, too
	replies := make([]reply, len(calls))
	for i := range replies {
		var err error
		if replies[i], err = c.read(); err != nil {
			return nil, fmt.Errorf("%.100q: %w", calls[i], err)
		}
	}
	return replies, nil
}

type reply struct {
	line  string // the first, without its end
	text  string // of a bulk
	elems []reply
}

func (c *conn) read() (r reply, err error) {
	line, err := c.in.ReadString('\n')
	if err != nil {
		return r, err
	}
	r.line = strings.TrimSuffix(line, "\r\n")
	if len(r.line) < 1 || len(line) != len(r.line)+2 {
		return r, fmt.Errorf("a reply's line is %q", line)
	}
	n, _ := strconv.Atoi(r.line[1:])
	switch r.line[0] {
	case '$':
		if n >= 0 {
			b := make([]byte, n+2)
			_, err = io.ReadFull(c.in, b)
			r.text = string(b)
		}
	case '*':
		for range n {
			elem, err := c.read()
			if err != nil {
				return r, err
			}
			r.elems = append(r.elems, elem)
		}
	}
	return r, err
}

func (r reply) String() string {
	if r.elems == nil {
		return fmt.Sprintf("%.200q", r.line+r.text)
	}
	return fmt.Sprintf("%s%.500v", r.line, r.elems)
}

func equal(a, b reply) bool {
	if a.line != b.line || a.text != b.text || len(a.elems) != len(b.elems) {
		return false
	}
	for i := range a.elems {
		if !equal(a.elems[i], b.elems[i]) {
			return false
		}
	}
	return true
}
