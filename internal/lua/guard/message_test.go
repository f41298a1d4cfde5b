package guard

import (
	"strings"
	"testing"
)

func TestTranslate(t *testing.T) {
	for text, want := range map[string]string{
		"user_script:3: attempt to index a non-table object(nil) with key 'x'": "user_script:3: attempt to index a nil value",
		"attempt to call a non-function object":                                "attempt to call a table value",
		"__unm undefined":                                                      "attempt to perform arithmetic on a table value",
		"user_script:1: cannot perform add operation between nil and number":   "user_script:1: attempt to perform arithmetic on a nil value",
		"cannot perform sub operation between number and table":                "attempt to perform arithmetic on a table value",
		"attempt to compare table with table":                                  "attempt to compare two table values",
		"attempt to compare number with nil":                                   "attempt to compare number with nil",
		"for statement limit must be a number":                                 "'for' limit must be a number",
		"stack overflow":                                                       "stack overflow",
	} {
		if got := TranslateMessage(text); got != want {
			t.Errorf("%q became %q, want %q", text, got, want)
		}
	}
}

func TestInScript(t *testing.T) {
	for _, c := range []struct {
		text string
		line int
		want string
	}{
		{"ERR x", 7, "ERR x script: abc, on @user_script:7."},
		{"ERR x", 0, "ERR x"},
		{"ERR x\r\n+OK", 1, "ERR x  +OK script: abc, on @user_script:1."},
		{strings.Repeat("x", 5000), 0, strings.Repeat("x", 4096)},
	} {
		if got := InScript(c.text, "abc", c.line); got != c.want {
			t.Errorf("%.20q at line %d: %.60q, want %.60q", c.text, c.line, got, c.want)
		}
	}
}
