package actions

import (
	"bytes"
	"errors"
	"strconv"
	"sync"
	"time"

	"cellserver/internal/resp"
	"cellserver/internal/wire/acl"
	"cellserver/internal/wire/peer"
)

// answerTime bounds the wait for a command, which may wait for the disk or for other servers.
const answerTime = 6 * time.Second

// errUnknown reports a command without an answer, which may be executed all the same.
var errUnknown = errors.New("no answer")

// run executes the calls of a client until one fails, and returns the last reply.
func (h *Handler) run(p peer.Peer, user *acl.User, calls ...[]string) (reply []byte, err error) {
	conn := &conn{woken: make(chan struct{}, 1), ended: make(chan struct{})}
	s := h.config.NewSession(p, conn, user)
	defer s.Close()
	late := time.NewTimer(answerTime)
	defer late.Stop()
	for _, call := range calls {
		var w resp.Writer
		w.Array(len(call))
		for _, word := range call {
			w.BulkString(word)
		}
		if reply, err = conn.feed(s, w.Buf, late.C); err != nil || failure(reply) != "" {
			break
		}
	}
	return reply, err
}

// conn is the connection of a session. It implements peer.Conn.
type conn struct {
	woken chan struct{} // holds one wake-up
	once  sync.Once
	ended chan struct{} // closed by Kill
}

func (c *conn) feed(s Session, in []byte, late <-chan time.Time) (out []byte, err error) {
	for {
		n, appended, status := s.Feed(in, out)
		in, out = in[n:], appended
		switch {
		case status == peer.Waiting:
			select {
			case <-c.woken:
			case <-c.ended:
				return nil, errUnknown
			case <-late:
				return nil, errUnknown
			}
		case status == peer.More:
		case len(out) == 0:
			return nil, errUnknown
		default:
			return out, nil
		}
	}
}

func (c *conn) Wake() {
	select {
	case c.woken <- struct{}{}:
	default:
	}
}

func (c *conn) Kill()  { c.once.Do(func() { close(c.ended) }) }
func (c *conn) Evict() { c.Kill() }

// failure returns the text of an error reply, or "".
func failure(reply []byte) string {
	text, is := bytes.CutPrefix(reply, []byte("-"))
	if !is {
		return ""
	}
	return string(bytes.TrimRight(text, "\r\n"))
}

// integers returns the integers of a reply that is one, or a list of them.
func integers(reply []byte) (all []int64) {
	for line := range bytes.SplitSeq(reply, []byte("\r\n")) {
		if digits, is := bytes.CutPrefix(line, []byte(":")); is {
			n, _ := strconv.ParseInt(string(digits), 10, 64) // a session writes it
			all = append(all, n)
		}
	}
	return all
}
