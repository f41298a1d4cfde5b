package replay

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"cellserver/internal/funnel"
)

type rowWriter struct {
	csv    *csv.Writer
	record []string
}

func newRowWriter(out io.Writer) *rowWriter {
	return &rowWriter{csv: csv.NewWriter(bufio.NewWriterSize(out, bufferBytes))}
}

func (w *rowWriter) header(names []string) error {
	w.record = append(appendReadable(w.record[:0], names), resultColumns()...)
	return w.write()
}

func (w *rowWriter) row(r *row, result funnel.Result) error {
	limited := "0"
	if result.Limited {
		limited = "1"
	}
	w.record = append(appendReadable(w.record[:0], r.fields),
		limited,
		strconv.FormatInt(result.Limit, 10),
		strconv.FormatInt(result.Remaining, 10),
		strconv.FormatInt(result.RetryAfter, 10),
		strconv.FormatInt(result.ResetAfter, 10))
	return w.write()
}

// appendReadable appends fields, with the CR before each LF doubled, as csv.Reader drops one within quotes.
func appendReadable(record, fields []string) []string {
	for _, field := range fields {
		if strings.Contains(field, "\r\n") {
			field = strings.ReplaceAll(field, "\r\n", "\r\r\n")
		}
		record = append(record, field)
	}
	return record
}

func (w *rowWriter) write() error {
	if err := w.csv.Write(w.record); err != nil {
		return fmt.Errorf("write rows: %w", err)
	}
	return nil
}

func (w *rowWriter) end(Skipped, bool) error {
	w.csv.Flush()
	if err := w.csv.Error(); err != nil {
		return fmt.Errorf("write rows: %w", err)
	}
	return nil
}

// jsonWriter writes a JSON document with a line for each row, which it does not keep.
type jsonWriter struct {
	out   *bufio.Writer
	names []string
	line  []byte
	rows  bool // there was one
}

func (w *jsonWriter) header(names []string) error {
	if err := checkNames(names); err != nil {
		return err
	}
	w.names = names
	_, err := w.out.WriteString(`{"rows": [`)
	return err
}

// checkNames returns an error if an object could have two members of one name, of which readers keep one.
func checkNames(names []string) error {
	seen := map[string]bool{}
	for _, name := range names {
		switch {
		case !utf8.ValidString(name):
			return fmt.Errorf("the name of column %s is not UTF-8, as --json requires: rename it in the header", quoted(name))
		case seen[name]:
			return fmt.Errorf("column %s appears twice, and --json requires different names: rename one in the header", quoted(name))
		}
		seen[name] = true
	}
	for _, name := range names {
		if other := name + inBase64; seen[other] {
			return fmt.Errorf("column %s has the name under which --json writes values of column %s that are not UTF-8: rename one in the header",
				quoted(other), quoted(name))
		}
	}
	return nil
}

func (w *jsonWriter) row(r *row, result funnel.Result) error {
	b := w.line[:0]
	if w.rows {
		b = append(b, ',')
	}
	w.rows = true
	b = append(b, "\n{\"columns\": {"...)
	for i, field := range r.fields {
		if i > 0 {
			b = append(b, ", "...)
		}
		b = appendColumn(b, w.names[i], field)
	}
	msPerUnit := int64(r.rule.Unit.Ns() / funnel.Milliseconds.Ns())
	b = fmt.Appendf(b, `}, "limited": %t, "limit": %d, "remaining": %d, "retry_after_ms": %d, "reset_after_ms": %d}`,
		result.Limited, result.Limit, result.Remaining, inMs(result.RetryAfter, msPerUnit), inMs(result.ResetAfter, msPerUnit))
	w.line = b
	if _, err := w.out.Write(b); err != nil {
		return fmt.Errorf("write rows: %w", err)
	}
	return nil
}

// inMs converts a result's time; -1 stays.
func inMs(n, msPerUnit int64) int64 {
	if n < 0 {
		return n
	}
	return n * msPerUnit
}

// inBase64 ends the name of a value that is not UTF-8.
const inBase64 = "_base64"

func appendColumn(b []byte, name, text string) []byte {
	var value any = text
	if !utf8.ValidString(text) {
		name, value = name+inBase64, []byte(text)
	}
	for i, v := range []any{name, value} {
		encoded, _ := json.Marshal(v) // texts and bytes have no error
		if i > 0 {
			b = append(b, ": "...)
		}
		b = append(b, encoded...)
	}
	return b
}

// end completes a document that has begun.
func (w *jsonWriter) end(skipped Skipped, complete bool) error {
	if w.names == nil {
		return nil
	}
	_, _ = fmt.Fprintf(w.out, "\n], \"skipped_rows\": %d, \"skipped_calls\": %d, \"complete\": %t}\n", skipped.Rows, skipped.Calls, complete)
	if err := w.out.Flush(); err != nil {
		return fmt.Errorf("write rows: %w", err)
	}
	return nil
}
