// Package resp is the wire protocol: it decodes commands in RESP and inline form, and encodes replies in
// RESP2 and RESP3. Complete commands as clients write them are decoded in one pass. For others the codec is
// redcon's, behind a guard that checks all framing first. Nothing in the package is safe for concurrent use;
// every connection has its own Decoder and Writer.
package resp

import (
	"bytes"
	"math"
	"slices"
	"strconv"

	"github.com/tidwall/redcon"
)

const (
	// maxLineBytes bounds an inline command and a header, as in Redis (PROTO_INLINE_MAX_SIZE).
	maxLineBytes = 64 << 10

	// Bounds for clients that must authenticate and have not yet, as in Redis since CVE-2021-32675.
	unauthenticatedArgs      = 10
	unauthenticatedBulkBytes = 16 << 10
)

// Limits bounds one command.
type Limits struct {
	MaxArgs         int
	MaxCommandBytes int // including framing; the buffer may have to hold maxLineBytes more
}

// ProtocolError is malformed input. After the error reply the connection must be closed.
type ProtocolError struct{ reason string }

func (e *ProtocolError) Error() string { return "Protocol error: " + e.reason }

func protocolError(reason string) error { return &ProtocolError{reason} }

// Decoder finds the commands of a stream. It remembers the checked part of an incomplete command, so that
// many pieces take linear time.
type Decoder struct {
	Limits Limits
	// Unauthenticated applies the bounds for unauthenticated clients before all others.
	Unauthenticated bool

	checked  int  // checked bytes of the first command
	line     int  // start of an incomplete line in them
	args     int  // of the current or last command
	argsLeft int  // remaining bulks; 0 before the command's first header
	bulk     int  // length of the current bulk, -1 before its header
	hasNUL   bool // an inline command contains a NUL: as in Redis, no newline ends it
}

// LongArgs is the number of arguments decoded at once. More take milliseconds.
const LongArgs = 1024

// headArgs is the number of arguments that Next returns of a longer command, enough for its name and an
// error.
const headArgs = 64

// Next decodes the first command of buf. It returns its length, 0 if it is incomplete, and its arguments,
// none if there is nothing to execute. The arguments are parts of buf, valid until buf changes, and reuse
// args. The next call must begin with the remaining bytes as Next left them: it may modify them. Of a RESP
// command with more than LongArgs arguments it returns the first few; Long returns their number.
func (d *Decoder) Next(buf []byte, args [][]byte) (n int, cmd [][]byte, err error) {
	args = args[:0]
	if len(buf) == 0 {
		return 0, args, nil
	}
	if buf[0] != '*' {
		d.args = 0
		return d.inline(buf, args)
	}
	if d.line == 0 && d.checked == 0 && !d.Unauthenticated {
		if n, args := d.plain(buf, args); n > 0 {
			d.args = len(args)
			return n, args, nil
		}
	}
	n, empty, err := d.frame(buf)
	if n == 0 || err != nil {
		return 0, args, err
	}
	d.reset()
	if empty {
		return n, args, nil
	}
	if d.args > LongArgs {
		args, _ = appendBulks(buf, bulksBegin(buf), headArgs, slices.Grow(args, headArgs))
		return n, args, nil
	}
	complete, args, _, _, err := redcon.ReadNextCommand(buf[:n], args)
	if err != nil || !complete { // impossible: the guard has checked all that redcon reads
		return 0, args[:0], protocolError("invalid request")
	}
	return n, args, nil
}

// Long returns the number of arguments if Next returned only the first of them; else 0.
func (d *Decoder) Long() int {
	if d.args > LongArgs {
		return d.args
	}
	return 0
}

// Split returns all count arguments of a long command, as parts of it or of a copy, as Next has left it. It
// calls pause after every LongArgs of them.
func Split(command []byte, count int, pause func()) [][]byte {
	args, at := make([][]byte, 0, count), bulksBegin(command)
	for len(args) < count {
		args, at = appendBulks(command, at, min(LongArgs, count-len(args)), args)
		pause()
	}
	return args
}

// bulksBegin returns the start of the first bulk of a checked command.
func bulksBegin(command []byte) int { return bytes.IndexByte(command, '\n') + 1 }

// appendBulks appends the next n bulks of a checked command from at on, and returns their end.
func appendBulks(command []byte, at, n int, args [][]byte) ([][]byte, int) {
	for range n {
		from := at + bytes.IndexByte(command[at:], '\n') + 1
		length, _ := ParseInt(command[at+1 : from-2])
		end := from + int(length)
		args, at = append(args, command[from:end:end]), end+2
	}
	return args, at
}

// reset forgets a finished command.
func (d *Decoder) reset() { d.checked, d.line, d.hasNUL = 0, 0, false }

// plain decodes a command that is complete, short as most and written as clients write it. It leaves any
// other, by 0, to frame and redcon, which read every header twice and take more than twice as long.
func (d *Decoder) plain(buf []byte, args [][]byte) (n int, _ [][]byte) {
	buf = buf[:min(len(buf), d.Limits.MaxCommandBytes)]
	count, at := plainHeader(buf, 0, '*')
	if count == 0 || count > min(LongArgs, d.Limits.MaxArgs) {
		return 0, args
	}
	for range count {
		length, from := plainHeader(buf, at, '$')
		end := from + length
		if from == 0 || end+1 >= len(buf) || buf[end] != '\r' || buf[end+1] != '\n' {
			return 0, args
		}
		args = append(args, buf[from:end:end])
		at = end + 2
	}
	return at, args
}

// plainHeader reads a header with few digits at a position, and returns the next position, 0 for any other.
func plainHeader(buf []byte, at int, marker byte) (n, next int) {
	const maxDigits = 7
	line := buf[at:]
	if len(line) < 4 || line[0] != marker {
		return 0, 0
	}
	n = int(line[1] - '0')
	if n > 9 || n == 0 && line[2] != '\r' {
		return 0, 0
	}
	if line[2] == '\r' && line[3] == '\n' {
		return n, at + 4
	}
	for i := 2; i < min(len(line)-1, 1+maxDigits+1); i++ {
		c := line[i] - '0'
		if c > 9 {
			if line[i] != '\r' || line[i+1] != '\n' {
				return 0, 0
			}
			return n, at + i + 2
		}
		n = n*10 + int(c)
	}
	return 0, 0
}

// frame is the guard: it returns the length of the multibulk command at the front of buf once it is complete
// and well formed.
func (d *Decoder) frame(buf []byte) (n int, empty bool, err error) {
	if d.argsLeft == 0 {
		count, ok, err := d.argCount(buf)
		if !ok || err != nil {
			return 0, false, err
		}
		d.args = int(count)
		if count <= 0 {
			return d.line, true, nil
		}
		d.argsLeft, d.bulk = d.args, -1
	}
	for ; d.argsLeft > 0; d.argsLeft-- {
		if d.bulk < 0 {
			if ok, err := d.bulkHeader(buf); !ok || err != nil {
				return 0, false, err
			}
		}
		end := d.line + d.bulk
		if len(buf) < end+2 {
			return 0, false, nil
		}
		if buf[end] != '\r' || buf[end+1] != '\n' {
			return 0, false, protocolError("expected CRLF after a bulk string")
		}
		d.line, d.checked, d.bulk = end+2, end+2, -1
	}
	return d.line, false, nil
}

func (d *Decoder) argCount(buf []byte) (count int64, ok bool, err error) {
	count, valid := d.plainNumber(buf, '*')
	if !valid {
		line, err := d.header(buf, "too big mbulk count string", "invalid multibulk length")
		if line == nil || err != nil {
			return 0, false, err
		}
		count, valid = ParseInt(line[1:])
	}
	switch {
	case valid && count > unauthenticatedArgs && d.Unauthenticated:
		return 0, false, protocolError("unauthenticated multibulk length")
	case !valid || count > int64(d.Limits.MaxArgs):
		return 0, false, protocolError("invalid multibulk length")
	}
	return count, true, nil
}

func (d *Decoder) bulkHeader(buf []byte) (ok bool, err error) {
	n, valid := d.plainNumber(buf, '$')
	if !valid {
		line, err := d.header(buf, "too big bulk count string", "invalid bulk length")
		if line == nil || err != nil {
			return false, err
		}
		if line[0] != '$' {
			return false, protocolError("expected '$', got '" + Printable(line[:1]) + "'")
		}
		n, valid = ParseInt(line[1:])
	}
	switch {
	case valid && n > unauthenticatedBulkBytes && d.Unauthenticated:
		return false, protocolError("unauthenticated bulk length")
	case !valid || n < 0 || n > int64(d.Limits.MaxCommandBytes):
		return false, protocolError("invalid bulk length")
	case d.line+int(n)+2 > d.Limits.MaxCommandBytes:
		return false, protocolError("too big command, more than " + strconv.Itoa(d.Limits.MaxCommandBytes) + " bytes")
	}
	d.bulk = int(n)
	return true, nil
}

// plainNumber returns the number of a plain header at d.line and advances past it. It saves long commands
// more than half of the guard's time.
func (d *Decoder) plainNumber(buf []byte, marker byte) (n int64, ok bool) {
	length, next := plainHeader(buf, d.line, marker)
	if next > 0 {
		d.line, d.checked = next, next
	}
	return int64(length), next > 0
}

// header returns the line at d.line with its marker, or nil if it is incomplete, and advances past it. As in
// Redis a header ends at a carriage return, and the next byte is skipped unchecked: it is replaced by the
// newline that redcon requires. With a NUL it cannot be a number.
func (d *Decoder) header(buf []byte, tooBig, invalid string) ([]byte, error) {
	start, seen := d.line, buf[d.checked:]
	i := bytes.IndexByte(seen, '\r')
	if i >= 0 {
		seen = seen[:i]
	}
	if nul := bytes.IndexByte(seen, 0); nul >= 0 && d.checked+nul-start <= maxLineBytes {
		return nil, protocolError(invalid)
	}
	d.checked += len(seen)
	if d.checked-start > maxLineBytes {
		return nil, protocolError(tooBig)
	}
	if i < 0 || d.checked+1 == len(buf) {
		return nil, nil
	}
	end := d.checked
	buf[end+1] = '\n'
	d.line, d.checked = end+2, end+2
	// Never empty: for an empty line it includes the carriage return.
	return buf[start:max(end, start+1)], nil
}

// ParseInt parses an integer as Redis does: decimal, signed 64-bit, no plus sign, no leading zeros, no
// spaces.
func ParseInt(b []byte) (n int64, ok bool) {
	if len(b) == 1 && b[0] == '0' {
		return 0, true
	}
	digits := b
	if len(b) > 0 && b[0] == '-' {
		digits = b[1:]
	}
	if len(digits) == 0 || digits[0] == '0' {
		return 0, false
	}
	var u uint64
	for _, c := range digits {
		if c < '0' || c > '9' || u > math.MaxInt64/10 {
			return 0, false
		}
		u = u*10 + uint64(c-'0')
	}
	if len(digits) < len(b) {
		return -int64(u), u <= 1<<63
	}
	return int64(u), u <= math.MaxInt64
}
