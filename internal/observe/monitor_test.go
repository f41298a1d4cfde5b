package observe

import (
	"strconv"
	"strings"
	"testing"
)

// FuzzQuoted: a quoted argument is one line, and tells the bytes apart.
func FuzzQuoted(f *testing.F) {
	f.Add([]byte("a\"\\\x00\a\b\r\n\t\x7f\xff"))
	f.Fuzz(func(t *testing.T, arg []byte) {
		quoted := string(appendQuoted(nil, arg))
		if strings.ContainsAny(quoted, "\r\n\x00") {
			t.Fatalf("%q", quoted)
		}
		if len(arg) > maxLineArgBytes {
			return
		}
		if back, err := strconv.Unquote(quoted); err != nil || back != string(arg) { // Go's escapes are those that are used here
			t.Fatalf("%q became %s, %v", arg, quoted, err)
		}
	})
}
