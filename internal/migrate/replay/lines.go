package replay

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
)

var errLongLine = errors.New("a line is longer than 16 MiB: is it a text file?")

// lines reads a trace with a row per line.
type lines struct {
	name   string
	in     *input
	number int // of the last line
	long   []byte
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
	l.in.source.leftBytes = maxRowBytes
	l.long = l.long[:0]
	for {
		piece, err := l.in.text.ReadSlice('\n')
		if len(l.long) > 0 || errors.Is(err, bufio.ErrBufferFull) {
			l.long = append(l.long, piece...)
			piece = l.long
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err == nil, err == io.EOF && len(piece) > 0: // not errors.Is: a wrapped io.EOF is a failure
			l.number++
			return piece, nil
		case err == io.EOF:
			return nil, errEnd
		case errors.Is(err, errLongRow):
			err = errLongLine
		}
		return nil, fmt.Errorf("%s: read after line %d: %w", l.name, l.number, err)
	}
}

func (l *lines) bad(err error) error { return badAt(l.name, l.number, err) }
func (l *lines) bytes() int64        { return l.in.source.bytes() }
