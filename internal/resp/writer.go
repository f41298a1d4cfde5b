package resp

import (
	"strconv"

	"github.com/tidwall/redcon"
)

// Writer appends replies to a buffer. For types that only RESP3 has, it writes to RESP2 clients what Redis
// writes instead.
type Writer struct {
	Buf   []byte
	RESP3 bool
}

func (w *Writer) Int(n int64) { w.prefix(':', n) }

// Status appends a simple string, which must be a single line.
func (w *Writer) Status(s string) { w.Buf = redcon.AppendString(w.Buf, s) }

func (w *Writer) OK() { w.Buf = redcon.AppendOK(w.Buf) }

// Error appends an error; the text begins with its code, such as ERR.
func (w *Writer) Error(text string) { w.Buf = redcon.AppendError(w.Buf, text) }

func (w *Writer) Bulk(b []byte) { w.Buf = redcon.AppendBulk(w.Buf, b) }

// BulkInt writes an integer as a bulk string.
func (w *Writer) BulkInt(n int64) {
	var digits [20]byte
	w.Bulk(strconv.AppendInt(digits[:0], n, 10))
}

func (w *Writer) BulkString(s string) { w.Buf = redcon.AppendBulkString(w.Buf, s) }

// Array begins an array; its n elements follow.
func (w *Writer) Array(n int) { w.prefix('*', int64(n)) }

// Map begins a map; n pairs of key and value follow.
func (w *Writer) Map(n int) { w.aggregate('%', n, 2*n) }

// Set begins a set; its n elements follow.
func (w *Writer) Set(n int) { w.aggregate('~', n, n) }

// Push begins a push message of n elements, which is not a reply.
func (w *Writer) Push(n int) { w.aggregate('>', n, n) }

// aggregate begins an aggregate of RESP3, in RESP2 an array.
func (w *Writer) aggregate(marker byte, n, elements int) {
	if w.RESP3 {
		w.prefix(marker, int64(n))
	} else {
		w.Array(elements)
	}
}

func (w *Writer) Null() {
	if w.RESP3 {
		w.Buf = append(w.Buf, "_\r\n"...)
	} else {
		w.Buf = redcon.AppendNull(w.Buf)
	}
}

// NullArray appends a null instead of an array.
func (w *Writer) NullArray() {
	if w.RESP3 {
		w.Null()
	} else {
		w.Buf = append(w.Buf, "*-1\r\n"...)
	}
}

// Bool appends a boolean; in RESP2, 1 or 0.
func (w *Writer) Bool(b bool) {
	switch {
	case w.RESP3 && b:
		w.Buf = append(w.Buf, "#t\r\n"...)
	case w.RESP3:
		w.Buf = append(w.Buf, "#f\r\n"...)
	case b:
		w.Int(1)
	default:
		w.Int(0)
	}
}

// Double appends a floating-point number.
func (w *Writer) Double(x float64) { w.number(',', strconv.FormatFloat(x, 'g', -1, 64)) }

// DoubleText appends a number given as text.
func (w *Writer) DoubleText(text []byte) {
	if !w.RESP3 {
		w.Bulk(text)
		return
	}
	w.Buf = append(append(append(w.Buf, ','), text...), "\r\n"...)
}

// BigNumber appends an integer of any length, given in decimal.
func (w *Writer) BigNumber(digits string) { w.number('(', digits) }

// number appends a number of RESP3, in RESP2 a bulk string.
func (w *Writer) number(marker byte, text string) {
	if w.RESP3 {
		w.Buf = append(append(append(w.Buf, marker), text...), "\r\n"...)
	} else {
		w.BulkString(text)
	}
}

// Attribute begins n pairs of metadata of the next reply. It is for RESP3 only.
func (w *Writer) Attribute(n int) { w.prefix('|', int64(n)) }

// Verbatim appends text that clients show without quoting.
func (w *Writer) Verbatim(text string) {
	if !w.RESP3 {
		w.BulkString(text)
		return
	}
	w.prefix('=', int64(len("txt:")+len(text)))
	w.Buf = append(append(w.Buf, "txt:"...), text...)
	w.Buf = append(w.Buf, '\r', '\n')
}

// prefix appends a marker and a number. The numbers of most decisions take half of strconv's time.
func (w *Writer) prefix(marker byte, n int64) {
	switch {
	case uint64(n) < 10:
		w.Buf = append(w.Buf, marker, '0'+byte(n), '\r', '\n')
	case uint64(n) < 100:
		w.Buf = append(w.Buf, marker, '0'+byte(n/10), '0'+byte(n%10), '\r', '\n')
	case uint64(n) < 1000:
		w.Buf = append(w.Buf, marker, '0'+byte(n/100), '0'+byte(n/10%10), '0'+byte(n%10), '\r', '\n')
	case uint64(n) < 10_000:
		w.Buf = append(w.Buf, marker, '0'+byte(n/1000), '0'+byte(n/100%10), '0'+byte(n/10%10), '0'+byte(n%10), '\r', '\n')
	case n == -1:
		w.Buf = append(w.Buf, marker, '-', '1', '\r', '\n')
	default:
		w.Buf = append(strconv.AppendInt(append(w.Buf, marker), n, 10), '\r', '\n')
	}
}

func (w *Writer) Strings(texts []string) {
	w.Array(len(texts))
	for _, text := range texts {
		w.BulkString(text)
	}
}

func (w *Writer) StringSet(texts []string) {
	w.Set(len(texts))
	for _, text := range texts {
		w.BulkString(text)
	}
}

func (w *Writer) StatusSet(texts []string) {
	w.Set(len(texts))
	for _, text := range texts {
		w.Status(text)
	}
}

// Pair writes two bulk strings: a key of a map and its value.
func (w *Writer) Pair(name, value string) {
	w.BulkString(name)
	w.BulkString(value)
}
