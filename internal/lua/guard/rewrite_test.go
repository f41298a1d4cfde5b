package guard

import (
	"slices"
	"strings"
	"testing"

	"github.com/yuin/gopher-lua/parse"
)

func chunk(t *testing.T, source string) ([]ID, error) {
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
	for source, want := range map[string][]ID{
		"return 1 + #KEYS":                       nil,
		"local x = redis.call('get', KEYS[1])":   nil,
		"return 'a' .. 1 .. 'b'":                 {Concat},
		"local t = KEYS t[1] = 2":                {SetIndex},
		"x = 1":                                  nil, // stores into _G are seen by its metatable
		"return {}":                              {NewTable},
		"return {1, [2] = 3}":                    {FillTable},
		"return function() end":                  {Closure},
		"local function f(...) return {...} end": {FillTable, Closure, Vararg},
		"for i = 1, '9' do end":                  {LoopBound},
		"for i = 1, 9 do end":                    nil,
		"return ...":                             {Nothing},
		// What closures share is in a table where errors can be caught.
		"local x pcall(function() x = 1 end)":    {SetIndex, FillTable, Closure},
		"local x local f = function() x = 1 end": {Closure},
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
