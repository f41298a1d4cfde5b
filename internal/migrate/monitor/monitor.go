// Package monitor parses the lines of MONITOR, Redis's or this server's, and the limiter calls in them. A
// Line belongs to one goroutine.
package monitor

import (
	"bytes"
	"errors"
	"math"
	"strconv"

	"cellserver/internal/resp"
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
