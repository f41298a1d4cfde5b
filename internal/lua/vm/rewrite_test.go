package vm

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/yuin/gopher-lua/parse"
)

func chunk(t *testing.T, source string) ([]Guard, error) {
	t.Helper()
	tree, err := parse.Parse(strings.NewReader(source), "test")
	if err != nil {
		t.Fatal(err)
	}
	_, guards, err := Rewrite(tree, []byte(source))
	return guards, err
}

// TestGuards holds what is guarded: every expression that allocates, and nothing else.
func TestGuards(t *testing.T) {
	for source, want := range map[string][]Guard{
		"return 1 + #KEYS":                       nil,
		"local x = redis.call('get', KEYS[1])":   nil,
		"return 'a' .. 1 .. 'b'":                 {concatGuard},
		"local t = KEYS t[1] = 2":                {setIndexGuard},
		"x = 1":                                  nil, // stores into _G are seen by its metatable
		"return {}":                              {newTableGuard},
		"return {1, [2] = 3}":                    {fillTableGuard},
		"return function() end":                  {closureGuard},
		"local function f(...) return {...} end": {fillTableGuard, closureGuard, varargGuard},
		"for i = 1, '9' do end":                  {loopBoundGuard},
		"for i = 1, 9 do end":                    nil,
		"return ...":                             {nothingGuard},
		// What closures share is in a table where errors can be caught.
		"local x pcall(function() x = 1 end)":    {setIndexGuard, fillTableGuard, closureGuard},
		"local x local f = function() x = 1 end": {closureGuard},
	} {
		if got, err := chunk(t, source); !slices.Equal(got, want) || err != nil {
			t.Errorf("%s: %v, %v, want %v", source, got, err, want)
		}
	}
}

func TestShapeIsBounded(t *testing.T) {
	for source, want := range map[string]string{
		"return " + strings.Repeat("not ", 600) + "1":            "chunk has too many syntax levels",
		strings.Repeat("do ", 600) + strings.Repeat("end ", 600): "chunk has too many syntax levels",
		strings.Repeat("f(function() end) ", 1001):               "chunk has more than 1000 functions",
		"return {" + strings.Repeat("1,", 25001) + "}":           "a table constructor has more than 25000 elements",
	} {
		if _, err := chunk(t, source); err == nil || err.Error() != want {
			t.Errorf("%.30s: %v, want %s", source, err, want)
		}
	}
}

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
		if got := translateMessage(text); got != want {
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

func repeat(n int, f func(i int) string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(f(i))
	}
	return b.String()
}

// numbered repeats a statement in which %d is another number each time.
func numbered(n int, format string) string {
	return repeat(n, func(i int) string { return fmt.Sprintf(format, i) })
}

// TestCheckEffort: sources with long searches of the compiler, up to 600 ms, are refused, and sources that
// are merely long are not.
func TestCheckEffort(t *testing.T) {
	for _, c := range []struct{ name, source, refused string }{
		{"globals", numbered(10_000, "a%d()\n"), "different constants"},
		{"fields", "local a " + numbered(7000, "a.b%d=a "), "different constants"},
		{"methods", "local a " + numbered(7000, "a:b%d()"), "different constants"},
		{"numbers", "local x={" + numbered(10_000, "%d,") + "}", "different constants"},
		{"the last constant again", "local x " + numbered(2000, "x=%d ") + strings.Repeat("x=y ", 5000), "different constants"},
		{"constants of a few functions", numbered(1300, "a%d()\n"), ""},
		{"the same in several functions", repeat(20, func(int) string { return "f=function() " + numbered(200, "a%d()") + " end " }), ""},
		{"few constants often", strings.Repeat("a.b = c + 1 ", 4000), ""},
		{"upvalues", repeat(190, func(i int) string { return fmt.Sprintf("local a%d ", i) }) + "f=function() " + strings.Repeat("a0=a0 ", 9000) + "end", "local variables"},
		{"variables out of reach", "do " + repeat(190, func(i int) string { return fmt.Sprintf("local a%d ", i) }) + "end f=function() " + strings.Repeat("a0=a0 ", 9000) + "end", ""},
		{"blocks", strings.Repeat("do ", 480) + strings.Repeat("x=y ", 10_000) + strings.Repeat("end ", 480), "local variables"},
		{"nested functions", numbered(190, "local a%d ") + strings.Repeat("local function f() ", 200) + strings.Repeat("a0=a1 ", 5000) + strings.Repeat("end ", 200), "local variables"},
		{"sums", "local x local y " + strings.Repeat("y="+strings.Repeat("x+", 400)+"x ", 80), "nested arithmetic"},
		{"signs", "local x local y " + strings.Repeat("y="+strings.Repeat("- ", 400)+"x ", 80), "nested arithmetic"},
		{"short sums", "local x local y " + strings.Repeat("y=x+x*x-(x/2) ", 4000), ""},
		{"forward jumps", numbered(3000, "do goto a%d end ") + numbered(3000, "::a%d:: "), "labels"},
		{"jumps through blocks", strings.Repeat("do ", 400) + strings.Repeat("do goto a end ", 4000) + strings.Repeat("end ", 400) + "::a::", "labels"},
		{"labels in a row", numbered(7000, "::a%d:: "), "labels"},
		{"a loop's jumps", strings.Repeat("while x do if y then goto next end ::next:: end ", 1200), ""},
		{"functions", strings.Repeat("f=function() end ", 2000), "functions"},
		{"statements", strings.Repeat("a,b,c=b,c,a ", 20_000), "statements"},
		{"a source of 64 KB", repeat(150, func(int) string {
			return "do " + strings.Repeat("local x = redis.call('get', KEYS[1]) if x then redis.call('set', KEYS[2], x + 1) end ", 5) + "end\n"
		}), ""},
	} {
		chunk, err := parse.Parse(strings.NewReader(c.source), "test")
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		want := ""
		if c.refused != "" {
			want = fmt.Sprintf("script takes more than 1000000 steps to compile, most of them for %s; make it shorter", c.refused)
		}
		got := ""
		if err := checkEffort(chunk); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %q, want %q; %v steps", c.name, got, want, countSteps(chunk))
		}
	}
}
