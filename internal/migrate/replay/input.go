package replay

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"cellserver/internal/migrate/monitor"
)

// Format is what a trace is written in.
type Format uint8

// The formats:
const (
	AnyFormat Format = iota // whichever of the others its first line looks like
	CSV
	Monitor   // what redis-cli monitor prints
	Combined  // an access log of nginx or Apache
	JSONLines // an access log of which each line is an object, as nginx writes with escape=json
)

// Formats are the names of the formats.
func Formats() []string { return []string{"auto", "csv", "monitor", "combined", "json"} }

func (f Format) String() string { return Formats()[f] }

// ParseFormat returns the format of a name.
func ParseFormat(name string) (Format, error) {
	i := slices.Index(Formats(), name)
	if i < 0 {
		return 0, errors.New("want one of " + strings.Join(Formats(), ", "))
	}
	return Format(i), nil
}

const (
	bufferBytes = 64 << 10
	// maxRowBytes bounds the memory of one row: a quote that is never closed makes all that follows one field.
	maxRowBytes = 16 << 20
)

// input is a trace's text, unpacked.
type input struct {
	source *source
	text   *bufio.Reader
}

// open reads the beginning of a trace, and how it goes on.
func open(in io.Reader, o Options) (trace, error) {
	i, err := newInput(in)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.Name, err)
	}
	if o.Format == AnyFormat {
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

// newInput unpacks gzip, which its first bytes tell, and skips byte order marks.
func newInput(in io.Reader) (*input, error) {
	counted := &counter{in: in}
	i := &input{source: &source{counter: counted, leftBytes: maxRowBytes}}
	packed := bufio.NewReaderSize(counted, bufferBytes)
	if magic, _ := packed.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) { // the next read returns an error again
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
		if b, _ := r.Peek(len(mark)); !bytes.Equal(b, mark) { // the next read returns the error again
			return
		}
		_, _ = r.Discard(len(mark))
	}
}

// guess tells the format by the first line that is not empty. What is nothing else is CSV, whose errors say what it lacks.
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

// firstLine returns the first line that is not empty, or as much of it as fits into the buffer. It does not wait for more than
// that line, for the input may be a terminal or a pipe.
func (i *input) firstLine() []byte {
	for size := 1; ; size = i.text.Buffered() + 1 {
		_, err := i.text.Peek(size)
		begin, _ := i.text.Peek(i.text.Buffered())
		line, _, whole := bytes.Cut(bytes.TrimLeft(begin, "\r\n"), []byte("\n"))
		if whole || err != nil { // the next read returns the error again
			return bytes.TrimSuffix(line, []byte("\r"))
		}
	}
}

// counter counts the bytes of a file.
type counter struct {
	in    io.Reader
	bytes int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.in.Read(p)
	c.bytes += int64(n)
	return n, err
}

// source limits the length of a row. An error is returned again by later reads, because csv may report a malformed row
// instead of it and continue reading.
type source struct {
	counter   *counter
	in        io.Reader
	leftBytes int // that the current row may still take, give or take a buffer
	err       error
}

// bytes is how many of the file were read.
func (s *source) bytes() int64 { return s.counter.bytes }

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
