package transfer

import (
	"bytes"
	"encoding/base64"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"cellserver/internal/limiter"
)

const (
	columnDB     = "db"
	columnKey    = "key"
	columnBase64 = "key_base64"
	columnTAT    = "tat_ns"
	// Of other keys than funnels:
	columnKind    = "kind"
	columnPayload = "payload_base64"
)

// CSVWriter writes a line per key: db, key, key_base64, tat_ns, kind, payload_base64. A key that is not plain
// UTF-8 is in key_base64 instead of key. For a funnel the last two are empty; for another limiter and a value
// tat_ns is its expiry. A value's payload is its text. CSV has no checksum.
type CSVWriter struct{ w *csv.Writer }

// NewCSVWriter writes the header.
func NewCSVWriter(w io.Writer) (*CSVWriter, error) {
	c := &CSVWriter{csv.NewWriter(w)}
	return c, c.w.Write([]string{columnDB, columnKey, columnBase64, columnTAT, columnKind, columnPayload})
}

func (c *CSVWriter) Write(e Entry) error {
	row := [6]string{0: strconv.Itoa(int(e.Key.DB)), 3: strconv.FormatInt(e.State.ExpiresNs, 10)}
	if isPlain(e.Key.Name) {
		row[1] = string(e.Key.Name)
	} else {
		row[2] = base64.StdEncoding.EncodeToString(e.Key.Name)
	}
	if e.State.Kind != limiter.Funnel {
		payload := e.State.Payload
		if e.State.Kind == limiter.Value {
			payload = limiter.AppendValue(nil, &e.State)
		}
		row[4], row[5] = e.State.Kind.String(), base64.StdEncoding.EncodeToString(payload)
	}
	return c.w.Write(row[:])
}

// isPlain reports whether CSV programs keep a text as is.
func isPlain(name []byte) bool {
	return utf8.Valid(name) && !bytes.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) })
}

func (c *CSVWriter) Close() error {
	c.w.Flush()
	return c.w.Error()
}

// CSVReader reads a CSVWriter's or another program's output: the first line names the columns in any order.
// Optional are one of key and key_base64, db (0), and for funnels the last two. Other columns are ignored.
type CSVReader struct {
	in      *lastByte
	r       *csv.Reader
	columns map[string]int
}

// NewCSVReader reads the header.
func NewCSVReader(r io.Reader) (*CSVReader, error) {
	in := &lastByte{r: r}
	c := &CSVReader{in: in, r: csv.NewReader(in), columns: map[string]int{}}
	c.r.ReuseRecord = true
	header, err := c.row()
	if errors.Is(err, io.EOF) {
		return nil, errors.New("the CSV is empty: its first line must name the columns db,key,key_base64,tat_ns")
	}
	if err != nil {
		return nil, err
	}
	for i, name := range header {
		if _, ok := c.columns[name]; ok {
			return nil, fmt.Errorf("line 1: there are two columns %q", name)
		}
		c.columns[strings.Clone(name)] = i
	}
	_, plain := c.columns[columnKey]
	_, encoded := c.columns[columnBase64]
	if _, ok := c.columns[columnTAT]; !ok || !plain && !encoded {
		return nil, errors.New("line 1 must name the columns: tat_ns, and key or key_base64")
	}
	return c, nil
}

// row returns the next row. One without a line end is damaged.
func (c *CSVReader) row() ([]string, error) {
	row, err := c.r.Read()
	var bad *csv.ParseError
	if errors.As(err, &bad) {
		return nil, fmt.Errorf("line %d: %w", bad.Line, bad.Err)
	}
	if err == nil && c.r.InputOffset() == c.in.n && c.in.last != '\n' {
		return nil, fmt.Errorf("line %d, the last, has no line end: %w", c.line(), ErrDamaged)
	}
	return row, err
}

func (c *CSVReader) line() int {
	line, _ := c.r.FieldPos(0)
	return line
}

func (c *CSVReader) Read() (Entry, error) {
	row, err := c.row()
	if err != nil {
		return Entry{}, err
	}
	e, err := c.entry(row)
	if err != nil {
		return Entry{}, fmt.Errorf("line %d: %w", c.line(), err)
	}
	return e, nil
}

func (c *CSVReader) field(row []string, name string) string {
	if i, ok := c.columns[name]; ok {
		return row[i]
	}
	return ""
}

func (c *CSVReader) entry(row []string) (e Entry, err error) {
	if db := c.field(row, columnDB); db != "" {
		n, err := strconv.ParseUint(db, 10, 16)
		if err != nil {
			return Entry{}, fmt.Errorf("%s: %q is not a database number from 0 to 65535", columnDB, db)
		}
		e.Key.DB = uint16(n)
	}
	name, encoded := c.field(row, columnKey), c.field(row, columnBase64)
	switch {
	case encoded == "":
		e.Key.Name = []byte(name)
	case name != "":
		return Entry{}, fmt.Errorf("a row has %s or %s, not both", columnKey, columnBase64)
	default:
		if e.Key.Name, err = base64.StdEncoding.DecodeString(encoded); err != nil {
			return Entry{}, fmt.Errorf("%s: %q is not base64", columnBase64, encoded)
		}
	}
	e.State, err = c.state(row)
	return e, err
}

func (c *CSVReader) state(row []string) (s limiter.State, err error) {
	if s.ExpiresNs, err = strconv.ParseInt(c.field(row, columnTAT), 10, 64); err != nil {
		return s, fmt.Errorf("%s: %q is not a time in Unix nanoseconds", columnTAT, c.field(row, columnTAT))
	}
	if kind := c.field(row, columnKind); kind != "" {
		var ok bool
		if s.Kind, ok = limiter.KindOf(kind); !ok {
			return s, fmt.Errorf("%s: %q is not a kind of limiter that this version knows", columnKind, kind)
		}
	}
	if payload := c.field(row, columnPayload); payload != "" {
		if s.Payload, err = base64.StdEncoding.DecodeString(payload); err != nil {
			return s, fmt.Errorf("%s: %.40q is not base64", columnPayload, payload)
		}
	}
	if s.Kind == limiter.Value {
		s = limiter.ValueOf(s.Payload, s.ExpiresNs)
	}
	if limiter.Accept(&s) != nil {
		return s, fmt.Errorf("%s: not the payload of a %s", columnPayload, s.Kind)
	}
	return s, nil
}

// lastByte records its input's length and last byte.
type lastByte struct {
	r    io.Reader
	n    int64
	last byte
}

func (l *lastByte) Read(b []byte) (int, error) {
	n, err := l.r.Read(b)
	if n > 0 {
		l.n, l.last = l.n+int64(n), b[n-1]
	}
	return n, err
}
