package replay

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
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

type jsonEntry struct {
	fields    map[string]json.RawMessage
	timeField string
}

var errJSON = errors.New("want an object in JSON on one line, as nginx writes with escape=json")

func parseJSON(line []byte, timeField string) (entry, error) {
	e := jsonEntry{timeField: timeField}
	if err := json.Unmarshal(line, &e.fields); err != nil || e.fields == nil {
		return nil, errJSON
	}
	return e, nil
}

// timeFields are the default time fields, the most exact first.
func timeFields() []string {
	return []string{"msec", "time_iso8601", "time_local", "@timestamp", "timestamp", "time"}
}

func (e jsonEntry) atNs() (int64, error) {
	names := timeFields()
	if e.timeField != "" {
		names = []string{e.timeField}
	}
	for _, name := range names {
		if _, ok := e.fields[name]; !ok {
			continue
		}
		text, err := e.field(name)
		if err != nil {
			return 0, err
		}
		atNs, err := parseTime(text)
		if err != nil && strings.Contains(text, "/") {
			atNs, err = parseLogTime(text)
		}
		return atNs, inColumn(name, err)
	}
	return 0, fmt.Errorf("the line has no time: no field %s; name another by --time-field", strings.Join(names, ", "))
}

func (e jsonEntry) field(name string) (string, error) {
	raw, ok := e.fields[name]
	if ok {
		return jsonText(name, raw)
	}
	if raw, found := e.fields["request"]; found {
		line, err := jsonText("request", raw)
		if err != nil {
			return "", err
		}
		if value, ok := ofRequest(line, name); ok {
			return value, nil
		}
	}
	return "", fmt.Errorf("the line has no field %s", quoted(name))
}

// jsonText returns a string or number as text, and "" for null.
func jsonText(name string, raw json.RawMessage) (text string, err error) {
	switch raw[0] {
	case '"':
		err = json.Unmarshal(raw, &text)
		return text, err
	case '{', '[':
		return "", fmt.Errorf("%s is neither text nor a number", quoted(name))
	}
	if bytes.Equal(raw, []byte("null")) {
		return "", nil
	}
	return string(raw), nil
}
