package resp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"
	"sync/atomic"
	"syscall"
)

// ReplyBounds limit a server's replies. A client that trusts their headers allocates at once, and a number of
// ten digits would end the process.
type ReplyBounds struct {
	BulkBytes int64 // of a string
	Bytes     int64 // of all replies to the last write
	Elements  int64 // of all arrays, maps and sets to the last write
}

const (
	maxReplyLine  = 64 << 10
	maxReplyDepth = 16
	// headerBytes exceeds any valid number.
	headerBytes = 24
)

type Dial func(ctx context.Context, network, addr string) (net.Conn, error)

// Bounded returns a Dial whose connections fail when a server sends or announces too much, before the bytes
// are passed on.
func (b ReplyBounds) Bounded(dial Dial) Dial {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		nc, err := dial(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return b.bound(nc), nil
	}
}

func (b ReplyBounds) bound(nc net.Conn) net.Conn {
	c := &boundedConn{Conn: nc, replies: replies{bounds: b}}
	if socket, ok := nc.(syscall.Conn); ok { // lets a client check an idle connection
		return &boundedSocket{c, socket}
	}
	return c
}

// boundedConn is a connection for replies. One goroutine may read while another writes.
type boundedConn struct {
	net.Conn
	wrote   atomic.Bool // since replies were last counted
	replies replies     // the reader's
	err     error       // the reader's
}

type boundedSocket struct {
	*boundedConn
	syscall.Conn
}

func (c *boundedConn) Write(b []byte) (int, error) {
	c.wrote.Store(true)
	return c.Conn.Write(b)
}

func (c *boundedConn) Read(b []byte) (int, error) {
	if c.err != nil {
		return 0, c.err
	}
	n, err := c.Conn.Read(b)
	if c.wrote.Swap(false) {
		c.replies.received, c.replies.announced, c.replies.elements = 0, 0, 0
	}
	if c.err = c.replies.check(b[:n]); c.err != nil {
		return 0, c.err
	}
	return n, err
}

// replies follows a server's replies by their headers.
type replies struct {
	bounds                        ReplyBounds
	received, announced, elements int64

	skip   int64             // bytes of a string and its line end to come
	header [headerBytes]byte // of the beginning of a line
	length int               // of the line so far
	left   [maxReplyDepth]int64
	depth  int // of left, the elements to come of open arrays
}

// check reads the next bytes from the server.
func (r *replies) check(b []byte) error {
	if r.received += int64(len(b)); r.received > r.bounds.Bytes {
		return fmt.Errorf("the server sends more than %d bytes in reply", r.bounds.Bytes)
	}
	for len(b) > 0 {
		if r.skip > 0 {
			n := min(r.skip, int64(len(b)))
			b = b[n:]
			if r.skip -= n; r.skip == 0 {
				r.ended()
			}
			continue
		}
		end := bytes.IndexByte(b, '\n') + 1
		line := b[:end]
		if end == 0 {
			line = b
		}
		b = b[len(line):]
		if r.length < headerBytes {
			copy(r.header[r.length:], line)
		}
		if r.length += len(line); r.length > maxReplyLine {
			return fmt.Errorf("the server sends a line of more than %d bytes", maxReplyLine)
		}
		if end == 0 {
			break
		}
		if err := r.line(); err != nil {
			return err
		}
		r.length = 0
	}
	return nil
}

// line reads a whole line.
func (r *replies) line() error {
	switch kind := r.header[0]; kind {
	case '+', '-', ':', '_', ',', '#', '(':
		r.ended()
		return nil
	case '$', '=', '!':
		return r.bulk()
	case '*', '~', '>':
		return r.array(1)
	case '%':
		return r.array(2)
	}
	line := r.header[:min(r.length, headerBytes)]
	return fmt.Errorf("not a Redis reply from the server: %s", Printable(line))
}

func (r *replies) bulk() error {
	n, err := r.number()
	if err != nil {
		return err
	}
	if n < 0 {
		r.ended()
		return nil
	}
	if n > r.bounds.BulkBytes {
		return fmt.Errorf("the server announces a string of %d bytes; the maximum is %d", n, r.bounds.BulkBytes)
	}
	if r.announced += n; r.announced > r.bounds.Bytes {
		return fmt.Errorf("the server announces more than %d bytes in reply", r.bounds.Bytes)
	}
	r.skip = n + int64(len("\r\n"))
	return nil
}

// array reads the header of an array whose announced elements count each values.
func (r *replies) array(each int64) error {
	n, err := r.number()
	switch {
	case err != nil:
		return err
	case n <= 0:
		r.ended()
		return nil
	case n > r.bounds.Elements/each:
		return fmt.Errorf("the server announces an array of %d elements; the maximum is %d", n, r.bounds.Elements/each)
	case r.depth == maxReplyDepth:
		return fmt.Errorf("the server nests arrays more than %d deep", maxReplyDepth)
	}
	if r.elements += n * each; r.elements > r.bounds.Elements {
		return fmt.Errorf("the server announces more than %d array elements in reply", r.bounds.Elements)
	}
	r.left[r.depth] = n * each
	r.depth++
	return nil
}

// ended counts a finished value, and the arrays that end with it.
func (r *replies) ended() {
	for r.depth > 0 {
		if r.left[r.depth-1]--; r.left[r.depth-1] > 0 {
			return
		}
		r.depth--
	}
}

var errReplyLength = errors.New("the server announces an invalid length")

// number reads a line's number; -1 is a null.
func (r *replies) number() (int64, error) {
	if r.length > headerBytes || r.length < len("$0\r\n") || r.header[r.length-2] != '\r' {
		return 0, errReplyLength
	}
	n, err := strconv.ParseInt(string(r.header[1:r.length-2]), 10, 64)
	if err != nil || n < -1 {
		return 0, errReplyLength
	}
	return n, nil
}
