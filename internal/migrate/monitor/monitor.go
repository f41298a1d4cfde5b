// Package monitor parses the lines of MONITOR, Redis's or this server's, and the limiter calls in them. A
// Line belongs to one goroutine.
package monitor

import (
	"bytes"
	"errors"
	"log/slog"
	"math"
	"strconv"
	"strings"

	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/funnel"
	"cellserver/internal/redis/argument"
	"cellserver/internal/redis/reply"
	"cellserver/internal/resp"
	"cellserver/internal/store"
	"cellserver/internal/wire/catalog"
	"cellserver/internal/wire/glob"
)

// Line is a call as MONITOR shows it.
type Line struct {
	AtNs   int64 // Unix nanoseconds, in whole microseconds
	DB     uint16
	Client string // its address; empty for a script's call
	Args   [][]byte

	buffer []byte // backs Args
}

// Errors have no position; the caller adds it.
var (
	errShape  = errors.New(`want a line of MONITOR, such as 1700000000.123456 [0 127.0.0.1:5000] "cl.throttle" "key" "15" "30" "60"`)
	errTime   = errors.New("the time does not fit in 64 bits of nanoseconds")
	errDB     = errors.New("the database is not from 0 to 65535")
	errQuotes = errors.New("unclosed quote: the line was cut")
)

// Parse reads a line without its line end into l, reusing its memory: the arguments are valid until the next
// call.
func (l *Line) Parse(line []byte) (err error) {
	line = bytes.TrimPrefix(line, []byte("+")) // redis-cli strips it, other tools may not
	stamp, rest, ok := bytes.Cut(line, []byte(" ["))
	if !ok {
		return errShape
	}
	if l.AtNs, err = parseStamp(stamp); err != nil {
		return err
	}
	db, rest, ok := bytes.Cut(rest, []byte(" "))
	if !ok {
		return errShape
	}
	number, err := strconv.ParseUint(string(db), 10, 16)
	if errors.Is(err, strconv.ErrRange) {
		return errDB
	}
	client, quoted, ok := bytes.Cut(rest, []byte(`] "`))
	if err != nil || !ok {
		return errShape
	}
	l.DB, l.Client = uint16(number), string(client)
	if l.Client == "lua" {
		l.Client = ""
	}
	l.buffer = append(append(l.buffer[:0], '"'), quoted...)
	// MONITOR's quotes are those of inline commands.
	if l.Args, ok = resp.SplitInline(l.buffer, l.Args[:0]); !ok {
		return errQuotes
	}
	return nil
}

// parseStamp parses seconds with exactly six decimals.
func parseStamp(stamp []byte) (atNs int64, err error) {
	const decimals = 6
	whole, fraction, ok := bytes.Cut(stamp, []byte("."))
	if !ok || len(fraction) != decimals || len(whole) == 0 {
		return 0, errShape
	}
	us, err := strconv.ParseUint(string(whole)+string(fraction), 10, 63)
	if errors.Is(err, strconv.ErrRange) || us > math.MaxInt64/1000 {
		return 0, errTime
	}
	if err != nil {
		return 0, errShape
	}
	return int64(us) * 1000, nil
}

// IsLine reports whether a line looks like MONITOR's rather than another format's.
func IsLine(line []byte) bool {
	stamp, rest, ok := bytes.Cut(bytes.TrimPrefix(line, []byte("+")), []byte(" ["))
	_, err := parseStamp(stamp)
	return ok && (err == nil || errors.Is(err, errTime)) && bytes.Contains(rest, []byte(`] "`))
}

// Text returns a call on one line, with words quoted as MONITOR does where necessary.
func Text(args [][]byte) string {
	var b []byte
	for i, arg := range args {
		if i > 0 {
			b = append(b, ' ')
		}
		if isWord(arg) {
			b = append(b, arg...)
		} else {
			b = appendQuoted(b, arg)
		}
	}
	return string(b)
}

func isWord(arg []byte) bool {
	for _, c := range arg {
		if c <= ' ' || c > '~' || c == '"' || c == '\'' || c == '\\' {
			return false
		}
	}
	return len(arg) > 0
}

func appendQuoted(b, arg []byte) []byte {
	const hex = "0123456789abcdef"
	b = append(b, '"')
	for _, c := range arg {
		switch {
		case c == '"' || c == '\\':
			b = append(b, '\\', c)
		case c < ' ' || c > '~':
			b = append(b, '\\', 'x', hex[c>>4], hex[c&15])
		default:
			b = append(b, c)
		}
	}
	return append(b, '"')
}

// Use is a command's effect on the keys of limiters.
type Use uint8

const (
	// Decides is a call whose arguments and time determine the new state; Request reads it.
	Decides Use = iota
	// Limits is another limiter's call, which depends on more than its arguments and the time.
	Limits
	// Reads is a call that changes no key, or only by calls that MONITOR shows as well, as in EXEC and EVAL.
	Reads
	// Writes is a call that may change the keys that it names.
	Writes
	// Flushes is a call that may change all keys.
	Flushes
)

// Calls classifies commands. It is safe for concurrent use.
type Calls struct {
	reading  funnel.Reading
	catalog  *catalog.Catalog
	requests map[string]argument.Request
	uses     map[string]Use // of this server's commands, by full name
}

// NewCalls returns Calls that read max_burst as given.
func NewCalls(reading funnel.Reading) *Calls {
	c := &Calls{reading: reading, catalog: catalog.New(), uses: map[string]Use{}}
	c.requests = argument.Requests(namedlimit.New(namedlimit.Config{Log: slog.New(slog.DiscardHandler)}))
	delete(c.requests, "cl.check")       // its limit is defined elsewhere
	delete(c.requests, "cl.bucket|take") // others fill the bucket
	c.catalog.Each(func(command *catalog.Command) {
		c.uses[command.FullName()] = useOf(command)
		if command.Flags&catalog.FlagModule == 0 {
			delete(c.requests, command.FullName()) // about values
		}
	})
	for name := range c.requests {
		c.uses[name] = Decides
	}
	for _, name := range []string{"flushall", "flushdb", "swapdb"} {
		c.uses[name] = Flushes
	}
	return c
}

func useOf(c *catalog.Command) Use {
	switch {
	case c.Flags&(catalog.FlagScript|catalog.FlagWrite) != catalog.FlagWrite:
		return Reads
	case c.Flags&catalog.FlagModule != 0 && c.Name != "cl.reset":
		return Limits
	}
	return Writes
}

// Use returns the effect of a call and its command's full name in lower case. Commands unknown to this server
// count as Writes.
func (c *Calls) Use(args [][]byte) (use Use, name string) {
	if len(args) == 0 {
		return Reads, ""
	}
	name = glob.Fold(args[0])
	if len(args) > 1 {
		full := name + "|" + glob.Fold(args[1])
		if use, ok := c.uses[full]; ok {
			return use, full
		}
	}
	use, ok := c.uses[name]
	if !ok {
		use = Writes
	}
	return use, name
}

// Request reads a call of use Decides. The key is a slice of the line's arguments.
func (c *Calls) Request(name string, line *Line) (q store.Request, err error) {
	if err := c.requests[name](&q, line.DB, line.Args, c.reading, nil); err != nil {
		return q, callError{name, reply.Of(c.catalog.LookupFull([]byte(name)), err)}
	}
	return q, nil
}

// callError is a server's error reply to the call.
type callError struct {
	name string
	err  error
}

func (e callError) Error() string {
	text := reply.Text(e.err)
	return e.name + ": " + strings.TrimPrefix(strings.TrimPrefix(text, "ERR "), "Cell error: Store error: ")
}

func (e callError) Unwrap() error { return e.err }
