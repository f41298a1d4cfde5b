package guard

import (
	"fmt"
	"strings"
	"testing"

	"github.com/yuin/gopher-lua/parse"
)

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

// TestCheckEffort: sources with long searches of the compiler, up to 600 ms, are refused, and sources that are
// merely long are not.
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
		if err := CheckEffort(chunk); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %q, want %q; %v steps", c.name, got, want, countSteps(chunk))
		}
	}
}
