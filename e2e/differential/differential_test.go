package differential

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"cellserver/e2e/harness"
	"cellserver/internal/test/patience"
	"cellserver/internal/test/racetest"
	"cellserver/internal/test/randtest"
)

// TestAnswersAsRedis sends the same byte streams, valid and invalid, to redis-server and cellserver. The
// replies, errors up to their first comma, must be equal, and so must the closing of the connection.
func TestAnswersAsRedis(t *testing.T) {
	t.Parallel()
	const workers = 16
	streams := 2500
	if racetest.OmitsLong() {
		streams = 400
	}
	seed := randtest.Seed(t, 1)
	for password, args := range map[string][]string{"": nil, "sesame": {"--requirepass", "sesame"}} {
		t.Run("password "+password, func(t *testing.T) {
			t.Parallel()
			// Redis's limits, because generated numbers are not between ours and Redis's. Commands that share
			// a name with an argument are disabled: a broken stream may call them.
			d := &differential{
				ours:  harness.StartServer(t, append([]string{"--max-args", "2147483647", "--max-command-bytes", "536870912"}, args...)...),
				redis: harness.StartRedis(t, append([]string{"--rename-command", "GET", "", "--rename-command", "SYNC", ""}, args...)...),
			}
			var next, failures atomic.Int64
			var wg sync.WaitGroup
			for range workers {
				wg.Go(func() {
					for i := next.Add(1); i <= int64(streams) && failures.Load() < 10; i = next.Add(1) {
						if !d.try(t, i, newStream(rand.New(rand.NewPCG(seed, uint64(i))))) {
							failures.Add(1)
						}
					}
				})
			}
			wg.Wait()
			t.Logf("%d streams, %d replies, %d connections closed, %d streams ended by what we refuse on purpose, %d looked at again",
				streams, d.replies.Load(), d.closed.Load(), d.excused.Load(), d.again.Load())
			if d.closed.Load() < int64(streams)/20 || d.excused.Load() > int64(streams)/10 {
				t.Error("the streams are not what they should be")
			}
		})
	}
}

type differential struct {
	ours, redis                     *harness.Process
	replies, closed, excused, again atomic.Int64
}

// conversation is the output for a stream.
type conversation struct {
	replies []string
	closed  bool // by the server, before the client's half
	reset   bool // by a reset, which may lose replies
}

func (c conversation) equal(o conversation) bool {
	return c.closed == o.closed && slices.Equal(c.replies, o.replies)
}

func (d *differential) try(t *testing.T, number int64, s stream) bool {
	var ours, redis conversation
	// A difference must persist: a server may be about to close a connection.
	for _, within := range []time.Duration{10 * time.Millisecond, 200 * time.Millisecond, 5 * time.Second} {
		ours, redis = s.converse(t, d.ours, within), s.converse(t, d.redis, within)
		if d.excuse(s, &ours, &redis); ours.equal(redis) {
			break
		}
		d.again.Add(1)
	}
	d.replies.Add(int64(len(redis.replies)))
	if redis.closed {
		d.closed.Add(1)
	}
	if ours.equal(redis) {
		return true
	}
	at := 0
	for at < len(ours.replies) && at < len(redis.replies) && ours.replies[at] == redis.replies[at] {
		at++
	}
	t.Errorf("stream %d: %s\nreply %d: ours    %.200q\n         Redis's %.200q\nclosed: ours %t, Redis's %t", number,
		s, at, replyAt(ours.replies, at), replyAt(redis.replies, at), ours.closed, redis.closed)
	return false
}

func replyAt(replies []string, i int) string {
	if i < len(replies) {
		return replies[i]
	}
	return "(none)"
}

// excuse removes intended differences, where cellserver refuses what Redis accepts, or in other words: a bulk
// without CRLF, which Redis skips; a NUL in a header, after which Redis waits forever; limits before AUTH,
// which come first; and a protocol error during CLIENT REPLY OFF, after which Redis waits forever.
func (d *differential) excuse(s stream, ours, redis *conversation) {
	const protocol = "-ERR Protocol error: "
	if ours.closed && !redis.closed && s.mutes() {
		ours.closed = false // Redis closes after an error that it never sends
		d.excused.Add(1)
	}
	last := len(ours.replies) - 1
	if last < 0 || !ours.closed {
		return
	}
	reason, _ := strings.CutPrefix(ours.replies[last], protocol)
	invalid := strings.HasPrefix(reason, "invalid ")
	if reason == "expected CRLF after a bulk string" || invalid && len(redis.replies) == last && !redis.closed && s.hasNUL() {
		ours.replies, redis.replies = ours.replies[:last], redis.replies[:min(last, len(redis.replies))]
		ours.closed, redis.closed = false, false
		d.excused.Add(1)
	}
	if what, ok := strings.CutPrefix(reason, "unauthenticated "); ok && replyAt(redis.replies, last) == protocol+"invalid "+what {
		redis.replies[last] = ours.replies[last]
	}
	// Redis closes without reading the rest, so its last replies may be lost; cellserver drains the input.
	if n := len(redis.replies); redis.reset && !ours.equal(*redis) && n <= len(ours.replies) {
		if n--; n >= 0 && strings.HasPrefix(ours.replies[n], redis.replies[n]) {
			redis.replies[n] = ours.replies[n]
		}
		ours.replies = ours.replies[:n+1]
		d.excused.Add(1)
	}
}

// converse sends the stream on a new connection and reads all output. The server gets time to close before
// the client closes its half.
func (s stream) converse(t *testing.T, p *harness.Process, within time.Duration) (c conversation) {
	dialled, err := net.Dial("tcp", p.Addr)
	if err != nil {
		t.Error(err)
		return c
	}
	nc := patience.Conn{Conn: dialled}
	defer nc.Close()
	var got []byte
	var readErr error
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		got, readErr = io.ReadAll(nc)
	}()
	for _, piece := range s.pieces {
		if _, err := nc.Write(piece); err != nil {
			break // closed by the server
		}
		time.Sleep(time.Microsecond) // the pieces arrive separately
	}
	select {
	case <-ended:
	case <-time.After(within):
	}
	select { // after a suspension both are ready
	case <-ended:
		c.closed = true
	default:
	}
	_ = nc.CloseWrite()
	<-ended
	if errors.Is(readErr, patience.ErrIdle) {
		t.Errorf("%s does not end the conversation %s", p.Cmd.Path, s)
	}
	c.reset = errors.Is(readErr, syscall.ECONNRESET)
	c.replies = splitReplies(got)
	return c
}

// splitReplies splits output into replies and removes inevitable differences.
func splitReplies(b []byte) (replies []string) {
	for len(b) > 0 {
		n := replyLen(b)
		if n == 0 { // cut short
			return append(replies, string(b))
		}
		reply := string(b[:n])
		if reply[0] == '-' {
			reply, _, _ = strings.Cut(strings.TrimSuffix(reply, "\r\n"), ",")
			reply = blankUnprintable(reply)
		}
		replies, b = append(replies, ownAnswer().ReplaceAllString(reply, "${1}its own")), b[n:]
	}
	return replies
}

// ownAnswer matches replies that differ between the servers: HELLO from the version on, INFO, COMMAND
// and TIME.
func ownAnswer() *regexp.Regexp {
	return regexp.MustCompile(`(?s)^([%*]\d+\r\n\$6\r\nserver\r\n.*\$7\r\nversion|[$=]|\*)` +
		`(?:\r\n\$\d\r\n\d.*|\d+\r\n(?:txt:)?# Server\r\n.*|\d+\r\n\*10\r\n.*|2\r\n\$10\r\n\d{10}\r\n.*)$`)
}

// blankUnprintable replaces bytes by spaces that Redis prints raw or as spaces, and cellserver escapes.
func blankUnprintable(s string) string {
	s = regexp.MustCompile(`\\(x[0-9a-f]{2}|[rnt])`).ReplaceAllString(s, " ")
	return strings.Map(func(r rune) rune {
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, s)
}

// replyLen returns the length of the first reply in b, or 0 if it is incomplete.
func replyLen(b []byte) int {
	end := bytes.Index(b, []byte("\r\n")) + 2
	if end < 3 {
		return 0
	}
	count, _ := strconv.Atoi(string(b[1 : end-2]))
	switch b[0] {
	case '$', '=':
		if count >= 0 {
			end += count + 2
		}
	case '%', '*', '~':
		if b[0] == '%' {
			count *= 2
		}
		for range count {
			n := replyLen(b[min(end, len(b)):])
			if n == 0 {
				return 0
			}
			end += n
		}
	}
	if end > len(b) {
		return 0
	}
	return end
}

// TestAnswersNoWebPage covers an intended difference: Redis reads the rest of an HTTP request.
func TestAnswersNoWebPage(t *testing.T) {
	p := harness.StartServer(t)
	for _, line := range []string{"POST / HTTP/1.1\r\n", "host: localhost\r\n", "*1\r\n$4\r\nPost\r\n"} {
		nc := p.Dial(t)
		harness.Send(t, nc, "PING\r\n"+line+"CL.THROTTLE web 0 1 60\r\n")
		if got, _ := io.ReadAll(nc); string(got) != "+PONG\r\n" && len(got) > 0 {
			t.Errorf("%q got %q", line, got)
		}
	}
	if n := p.Metric(t, "cellserver_decisions_total"); n != 0 {
		t.Errorf("web pages had %.0f decisions", n)
	}
	if n := strings.Count(p.Logged(t, "possible attack"), "possible attack"); n != 1 { // not one for each
		t.Errorf("the log speaks of %d attacks, want 1", n)
	}
}
