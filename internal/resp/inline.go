package resp

import (
	"bytes"
	"strconv"
	"strings"
)

// inline decodes an inline command, a line of text.
func (d *Decoder) inline(buf []byte, args [][]byte) (n int, cmd [][]byte, err error) {
	rest := buf[d.checked:]
	i := bytes.IndexByte(rest, '\n')
	seen := rest
	if i >= 0 {
		seen = rest[:i]
	}
	d.hasNUL = d.hasNUL || bytes.IndexByte(seen, 0) >= 0
	end := d.checked + len(seen)
	most := min(maxLineBytes, d.Limits.MaxCommandBytes)
	if end > most {
		return 0, args, protocolError("too big inline request")
	}
	if i < 0 || d.hasNUL {
		d.checked = len(buf)
		if d.hasNUL && len(buf) > most {
			return 0, args, protocolError("too big inline request")
		}
		return 0, args, nil
	}
	d.reset()
	args, ok := SplitInline(bytes.TrimSuffix(buf[:end], []byte("\r")), args)
	if !ok {
		return 0, args[:0], protocolError("unbalanced quotes in request")
	}
	return end + 1, args, nil
}

// SplitInline appends the words of a line to args, as Redis splits them: separated by white space, and quoted
// with " (with the escapes \n, \r, \t, \b, \a and \xHH) or ' (with \'). The words overwrite the line, which
// is never shorter. It returns false if a quote is not closed, or not followed by white space.
func SplitInline(line []byte, args [][]byte) ([][]byte, bool) {
	for r, w := 0, 0; ; {
		for r < len(line) && isSpace(line[r]) {
			r++
		}
		if r == len(line) {
			return args, true
		}
		start := w
		var ok bool
		if r, w, ok = unquoteWord(line, r, w); !ok {
			return args, false
		}
		args = append(args, line[start:w:w])
	}
}

// unquoteWord reads a word at r, writes it at w <= r, and returns the new positions for reading and writing.
func unquoteWord(line []byte, r, w int) (int, int, bool) {
	for r < len(line) {
		switch c := line[r]; c {
		case ' ', '\n', '\r', '\t':
			return r + 1, w, true
		case '"', '\'':
			return unquote(line, r+1, w, c)
		default:
			line[w] = c
			r, w = r+1, w+1
		}
	}
	return r, w, true
}

// unquote reads from after an opening quote to after the closing one.
func unquote(line []byte, r, w int, quote byte) (int, int, bool) {
	for r < len(line) {
		c := line[r]
		switch {
		case c == quote:
			return r + 1, w, r+1 == len(line) || isSpace(line[r+1])
		case c == '\\' && quote == '\'' && r+1 < len(line) && line[r+1] == '\'':
			c, r = '\'', r+2
		case c == '\\' && quote == '"' && r+1 < len(line):
			c, r = unescape(line, r+1)
		default:
			r++
		}
		line[w] = c
		w++
	}
	return r, w, false
}

// unescape reads the rest of an escape after a backslash at r-1.
func unescape(line []byte, r int) (c byte, next int) {
	const names, values = "nrtba", "\n\r\t\b\a"
	c = line[r]
	if i := strings.IndexByte(names, c); i >= 0 {
		return values[i], r + 1
	}
	if c == 'x' && r+2 < len(line) {
		if n, err := strconv.ParseUint(string(line[r+1:r+3]), 16, 8); err == nil {
			return byte(n), r + 3
		}
	}
	return c, r + 1
}

func isSpace(c byte) bool { return c == ' ' || c >= '\t' && c <= '\r' }
