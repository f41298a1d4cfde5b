package replay

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"

	"cellserver/internal/migrate/monitor"
)

// Format is the format of a trace.
type Format string

const (
	AnyFormat Format = "auto" // guessed from the first line, as for ""
	CSV       Format = "csv"
	Monitor   Format = "monitor"  // the output of redis-cli monitor
	Combined  Format = "combined" // an access log of nginx or Apache
	JSONLines Format = "json"     // an access log with an object per line, as nginx writes with escape=json
)

// Formats returns the names of all formats.
func Formats() []string { return []string{"auto", "csv", "monitor", "combined", "json"} }

const (
	bufferBytes = 64 << 10
	// maxRowBytes bounds the memory of one row: an unclosed quote turns the rest of a file into one field.
	maxRowBytes = 16 << 20
)

type input struct {
	source *source
	text   *bufio.Reader
}

// open detects the format and returns its reader.
func open(in io.Reader, o Options) (trace, error) {
	i, err := newInput(in)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.Name, err)
	}
	if o.Format == AnyFormat || o.Format == "" {
		o.Format = i.guess()
	}
	if isLog := o.Format == Combined || o.Format == JSONLines; !isLog && len(o.KeyFields) > 0 {
		return nil, fmt.Errorf("%s: it is %s, which has keys; --key is for access logs", o.Name, o.Format)
	}
	switch o.Format {
	case Monitor:
		return newMonitorTrace(i, o)
	case Combined, JSONLines:
		return newLogTrace(i, o)
	default:
		return newCSVTrace(i, o)
	}
}

// newInput unpacks gzip, recognized by its magic bytes, and skips byte order marks.
func newInput(in io.Reader) (*input, error) {
	counted := &counter{in: in}
	i := &input{source: &source{counter: counted, leftBytes: maxRowBytes}}
	packed := bufio.NewReaderSize(counted, bufferBytes)
	if magic, _ := packed.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) { // the next read repeats an error
		unpacked, err := gzip.NewReader(packed)
		if err != nil {
			return nil, err
		}
		i.source.in = unpacked
	} else {
		i.source.in = packed
	}
	i.text = bufio.NewReaderSize(i.source, bufferBytes)
	skipByteOrderMark(i.text)
	return i, nil
}

func skipByteOrderMark(r *bufio.Reader) {
	mark := []byte("\ufeff")
	for {
		if b, _ := r.Peek(len(mark)); !bytes.Equal(b, mark) { // the next read repeats an error
			return
		}
		_, _ = r.Discard(len(mark))
	}
}

// guess returns the first line's format, by default CSV, whose errors name what is missing.
func (i *input) guess() Format {
	line := i.firstLine()
	switch {
	case bytes.Equal(line, []byte("OK")) || monitor.IsLine(line):
		return Monitor
	case len(line) > 0 && line[0] == '{':
		return JSONLines
	case isCombined(line):
		return Combined
	}
	return CSV
}

// firstLine returns the first non-empty line, or what the buffer holds of it. It reads no further: the input
// may be a terminal or a pipe.
func (i *input) firstLine() []byte {
	for size := 1; ; size = i.text.Buffered() + 1 {
		_, err := i.text.Peek(size)
		begin, _ := i.text.Peek(i.text.Buffered())
		line, _, whole := bytes.Cut(bytes.TrimLeft(begin, "\r\n"), []byte("\n"))
		if whole || err != nil { // the next read repeats an error
			return bytes.TrimSuffix(line, []byte("\r"))
		}
	}
}

type counter struct {
	in    io.Reader
	bytes int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.in.Read(p)
	c.bytes += int64(n)
	return n, err
}

// source limits the length of a row. It repeats an error in later reads, as csv may report a malformed row
// instead and read on.
type source struct {
	counter   *counter
	in        io.Reader
	leftBytes int // left to the current row, give or take a buffer
	err       error
}

func (s *source) Read(p []byte) (int, error) {
	if s.err == nil && s.leftBytes <= 0 {
		s.err = errLongRow
	}
	if s.err != nil {
		return 0, s.err
	}
	n, err := s.in.Read(p)
	s.leftBytes -= n
	s.err = err
	return n, err
}

var errLongLine = errors.New("a line is longer than 16 MiB: is it a text file?")

// lines reads a trace with a row per line.
type lines struct {
	position
	text *bufio.Reader
	long []byte
}

func newLines(in *input, o Options) lines {
	return lines{position: position{name: o.Name, source: in.source}, text: in.text}
}

// next returns the next non-empty line without its end, valid until the following call.
func (l *lines) next() ([]byte, error) {
	for {
		line, err := l.one()
		if err != nil {
			return nil, err
		}
		if line = bytes.TrimRight(line, "\r\n"); len(line) > 0 {
			return line, nil
		}
	}
}

// one returns the next line with its end, which the last one may lack.
func (l *lines) one() ([]byte, error) {
	l.source.leftBytes = maxRowBytes
	l.long = l.long[:0]
	for {
		piece, err := l.text.ReadSlice('\n')
		if len(l.long) > 0 || errors.Is(err, bufio.ErrBufferFull) {
			l.long = append(l.long, piece...)
			piece = l.long
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err == nil, err == io.EOF && len(piece) > 0: // not errors.Is: a wrapped io.EOF is a failure
			l.line++
			return piece, nil
		case err == io.EOF:
			return nil, errEnd
		case errors.Is(err, errLongRow):
			err = errLongLine
		}
		return nil, fmt.Errorf("%s: read after line %d: %w", l.name, l.line, err)
	}
}
