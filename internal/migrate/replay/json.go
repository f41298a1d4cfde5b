package replay

import (
	"bufio"
	"encoding/json"
	"fmt"
	"unicode/utf8"

	"cellserver/internal/funnel"
)

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
