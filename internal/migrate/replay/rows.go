package replay

import (
	"bufio"
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"

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

func (w *rowWriter) flush() error {
	w.csv.Flush()
	if err := w.csv.Error(); err != nil {
		return fmt.Errorf("write rows: %w", err)
	}
	return nil
}
