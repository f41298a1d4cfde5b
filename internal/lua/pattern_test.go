package lua

import (
	"slices"
	"strings"
	"testing"
	"time"

	lua "github.com/yuin/gopher-lua"

	"cellserver/internal/lua/vm"
)

// find looks for a pattern, and returns the captures, or the problem.
func find(src, pat string) (found []string, problem string) {
	meter := vm.Attach(lua.NewState(lua.Options{SkipOpenLibs: true}), func() int64 { return 0 }, nil)
	meter.Begin(nil, time.Second, 1<<20)
	defer func() {
		if p := recover(); p != nil {
			found, problem = nil, p.(string)
		}
	}()
	m := &matcher{meter: meter, fail: func(problem string) { panic(problem) }, src: src, pat: pat}
	if m.search(0) < 0 {
		return nil, ""
	}
	for i := range max(m.level, 1) {
		text := m.capture(i).String()
		if position, ok := m.capture(i).(lua.LNumber); ok {
			text = "@" + strings.Repeat("+", int(position))
		}
		found = append(found, text)
	}
	return found, ""
}

func TestFind(t *testing.T) {
	for _, c := range []struct {
		src, pat string
		want     []string
		problem  string
	}{
		{"hello", "l+", []string{"ll"}, ""},
		{"hello", "(h)(.)", []string{"h", "e"}, ""},
		{"hello", "()ll()", []string{"@+++", "@+++++"}, ""},
		{"a1b22", "%d%d", []string{"22"}, ""},
		{"f(a(b)c)d", "%b()", []string{"(a(b)c)"}, ""},
		{"THE (quick) fox", "%f[%a]%a+%f[%A]", []string{"THE"}, ""},
		{"abab", "(ab)%1", []string{"ab"}, ""},
		{"aXb", "[^%l]", []string{"X"}, ""},
		{"a-]", "[]-]", []string{"-"}, ""},
		{"key=val", "(%w-)=(%w*)$", []string{"key", "val"}, ""},
		{"abc", "x?", []string{""}, ""},
		{"abc", "d", nil, ""},
		{"a", "(", nil, "unfinished capture"},
		{"a", ")", nil, "invalid pattern capture"},
		{"a", "[a", nil, "malformed pattern (missing ']')"},
		{"a", "%", nil, "malformed pattern (ends with '%')"},
		{"a", "%1", nil, "invalid capture index"},
		{"a", "%f", nil, "missing '[' after '%f' in pattern"},
		{"a", "%b(", nil, "unbalanced pattern"},
		{"a", strings.Repeat("()", 33), nil, "too many captures"},
		{strings.Repeat("a", 300), strings.Repeat("a?", 300), nil, "pattern too complex"},
	} {
		if got, problem := find(c.src, c.pat); !slices.Equal(got, c.want) || problem != c.problem {
			t.Errorf("%q in %q: %q, %q, want %q, %q", c.pat, c.src, got, problem, c.want, c.problem)
		}
	}
}
