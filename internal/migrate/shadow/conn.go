package shadow

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"cellserver/internal/resp"
)

const (
	defaultTimeout = 10 * time.Second
	// maxLineBytes bounds a line; MONITOR shows calls in full.
	maxLineBytes = 16 << 20
	// keptBytes exceeds a TAT's digits; the rest of a longer value is dropped.
	keptBytes = 32
)

// Source is the server to follow.
type Source struct {
	Addr           string      // host:port
	TLS            *tls.Config // nil for none
	User, Password string
}

type conn struct {
	nc      net.Conn
	timeout time.Duration // of each exchange
	r       *bufio.Reader
	w       resp.Writer // unsent commands
}

// errReply is an error reply.
type errReply string

func (e errReply) Error() string { return string(e) }

func (s Source) dial(ctx context.Context, timeout time.Duration) (*conn, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	dial := (&net.Dialer{}).DialContext
	if s.TLS != nil {
		dial = (&tls.Dialer{Config: s.TLS}).DialContext
	}
	nc, err := dial(ctx, "tcp", s.Addr)
	if err != nil {
		return nil, err
	}
	c := &conn{nc: nc, timeout: timeout, r: bufio.NewReaderSize(nc, 64<<10)}
	if s.Password == "" {
		return c, nil
	}
	args := []string{"AUTH", s.Password}
	if s.User != "" {
		args = []string{"AUTH", s.User, s.Password}
	}
	// A needless password is no error, as in redis-cli.
	if err := c.call(ctx, args...); err != nil && !strings.Contains(err.Error(), "without any password configured") {
		_ = nc.Close()
		return nil, err
	}
	return c, nil
}

// add queues a command for the next flush.
func (c *conn) add(args ...string) {
	c.w.Array(len(args))
	for _, arg := range args {
		c.w.BulkString(arg)
	}
}

func (c *conn) flush() error {
	_ = c.nc.SetWriteDeadline(time.Now().Add(c.timeout))
	_, err := c.nc.Write(c.w.Buf)
	c.w.Buf = c.w.Buf[:0]
	return err
}

// call sends a command and returns its error reply. It closes the connection if ctx ends first.
func (c *conn) call(ctx context.Context, args ...string) error {
	defer context.AfterFunc(ctx, func() { _ = c.nc.Close() })()
	c.add(args...)
	if err := c.flush(); err != nil {
		return err
	}
	_ = c.nc.SetReadDeadline(time.Now().Add(c.timeout))
	defer func() { _ = c.nc.SetReadDeadline(time.Time{}) }()
	return c.reply().err
}

// reply is a text, none, or an error.
type reply struct {
	text  string
	found bool
	err   error // an errReply, or the connection's
}

var errLongLine = errors.New("it has sent a line longer than 16 MiB")

var errProtocol = errors.New("not the reply of a Redis server")

func (c *conn) reply() reply {
	line, err := c.line()
	if err != nil {
		return reply{err: err}
	}
	if len(line) == 0 {
		return reply{err: errProtocol}
	}
	text := string(line[1:])
	switch line[0] {
	case '+', ':':
		return reply{text: text, found: true}
	case '-':
		return reply{err: errReply(text)}
	case '$':
		return c.bulk(text)
	}
	return reply{err: errProtocol}
}

// replies passes on replies until the connection ends.
func (c *conn) replies(ctx context.Context, to chan<- reply) error {
	for {
		r := c.reply()
		if refused := errReply(""); r.err != nil && !errors.As(r.err, &refused) {
			return r.err
		}
		select {
		case to <- r:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

func (c *conn) bulk(length string) reply {
	n, err := strconv.ParseInt(length, 10, 32)
	if err != nil || n < -1 {
		return reply{err: errProtocol}
	}
	if n < 0 {
		return reply{}
	}
	kept := make([]byte, min(n, keptBytes))
	if _, err := io.ReadFull(c.r, kept); err != nil {
		return reply{err: err}
	}
	if _, err := io.CopyN(io.Discard, c.r, n-int64(len(kept))+2); err != nil {
		return reply{err: err}
	}
	return reply{text: string(kept), found: true}
}

// line returns a line without its end, valid until the next call. A line beyond maxLineBytes is skipped with
// errLongLine.
func (c *conn) line() ([]byte, error) {
	line, err := c.r.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		line, err = c.longLine(line)
	}
	if err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(line[:len(line)-1], []byte("\r")), nil
}

// longLine returns a line longer than the buffer.
func (c *conn) longLine(begin []byte) ([]byte, error) {
	long, tooLong := append([]byte(nil), begin...), false
	for {
		piece, err := c.r.ReadSlice('\n')
		if tooLong = tooLong || len(long)+len(piece) > maxLineBytes; tooLong {
			long = nil
		} else {
			long = append(long, piece...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err == nil && tooLong:
			return nil, errLongLine
		}
		return long, err
	}
}

// explain adds advice to an error.
func (s Source) explain(err error) error {
	text := err.Error()
	for _, known := range []struct{ part, hint string }{
		{"NOAUTH", "give its password by --password-file or REDISCLI_AUTH, and a user by --user or in the URL"},
		{"WRONGPASS", "check the user, and the password of --password-file or REDISCLI_AUTH"},
		{"NOPERM", "the user needs +monitor +get +select +ping, and the keys"},
		{"connection refused", "check the address, and that the server runs"},
		{"EOF", "it has closed the connection: was MONITOR read too slowly (client-output-buffer-limit), or was it stopped?"},
		{"MOVED", "the key is on another node of the cluster; follow each node"},
		{"LOADING", "wait until it has loaded"},
		{"DENIED", "it is in protected mode; set a password there"},
		{"i/o timeout", "it does not answer; with TLS give --tls"},
		{"first record does not look like a TLS handshake", "the port has no TLS"},
	} {
		if strings.Contains(text, known.part) {
			return fmt.Errorf("shadow: %s: %w", s.Addr, resp.Advised(err, known.hint))
		}
	}
	return fmt.Errorf("shadow: %s: %w", s.Addr, resp.OneLine(err))
}

const (
	queuedLines = 1 << 16 // beyond it the source buffers
	queuedBytes = 64 << 20
)

// lines queues MONITOR's lines from one goroutine to another.
type lines struct {
	c     chan []byte
	bytes atomic.Int64
	freed chan struct{} // signals free space
}

func newLines() *lines {
	return &lines{c: make(chan []byte, queuedLines), freed: make(chan struct{}, 1)}
}

// fill queues a stream's lines until it ends; nil stands for one that is too long.
func (q *lines) fill(ctx context.Context, stream *conn) error {
	for {
		line, err := stream.line()
		if err != nil && !errors.Is(err, errLongLine) {
			return err
		}
		if err == nil {
			line = append(make([]byte, 0, len(line)), line...)
		}
		for q.bytes.Load() > queuedBytes {
			select {
			case <-q.freed:
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		q.bytes.Add(int64(len(line)))
		select {
		case q.c <- line:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// noteTaken accounts for a line taken from c.
func (q *lines) noteTaken(line []byte) {
	if left := q.bytes.Add(-int64(len(line))); left <= queuedBytes {
		select {
		case q.freed <- struct{}{}:
		default:
		}
	}
}
