package lua

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"

	"cellserver/internal/test/racetest"
)

// A writer writes random programs of Lua that end.
type writer struct {
	*rand.Rand
	b      strings.Builder
	locals []string // in scope
	names  int
	depth  int
	vararg bool // inside a function with ...
}

// The helpers make most values fit for what is done with them, so that most programs do not fail.
const prelude = `local function N(v) return tonumber(v) or 3 end
local function S(v) local t = type(v) if t == 'table' or t == 'function' then return t end return tostring(v):sub(1, 50) end
local function P(f) local ok, v = pcall(f) if ok then return v end return ok end
local function C(f, ...) if type(f) == 'function' then return f(...) end return ... end
local function show(v) local t = type(v) if t == 'table' or t == 'function' then return t end return tostring(v) end `

func (w *writer) pick(list ...string) string { return list[w.IntN(len(list))] }

func (w *writer) name() string { return w.locals[w.IntN(len(w.locals))] }

// target is a variable to assign to: not the first, whose fields are assigned, for Lua leaves open when that is read.
func (w *writer) target() string { return w.locals[1+w.IntN(len(w.locals)-1)] }

func (w *writer) expr(depth int) string {
	if depth <= 0 {
		return w.pick("1", "2", "0.5", "'a'", "'7'", "nil", "true", "false", w.name(), w.name(), w.name(), w.name())
	}
	e := func() string { return w.expr(depth - 1) }
	switch w.IntN(17) {
	case 0, 1:
		return "N(" + e() + ")" + w.pick(" + ", " - ", " * ", " % ") + w.pick("N(", "(") + e() + ")"
	case 2, 3:
		return w.pick("S(", "S(", "(") + e() + ") .. S(" + e() + ")"
	case 4:
		return "S(" + e() + ") .. N(" + e() + ") .. S(" + e() + ")"
	case 5:
		f := w.pick("N(", "S(")
		return "(" + f + e() + ")" + w.pick(" == ", " ~= ", " < ", " <= ") + f + e() + "))"
	case 6, 7:
		return "(" + e() + w.pick(" and ", " or ") + e() + ")"
	case 8:
		return w.pick("not (", "-N(", "#S(", "#(") + e() + ")"
	case 9:
		return "{" + e() + ", " + e() + ", [S(" + e() + ")] = " + e() + ", k = " + e() + "}"
	case 10:
		return "({" + e() + ", " + w.many(depth-1) + "})[" + w.pick("1", "2", "3") + "]"
	case 11:
		return "tostring(type(" + e() + "))"
	case 12:
		return "(" + w.call(depth-1) + ")"
	case 13:
		return w.call(depth - 1)
	case 14:
		return "(function(...) return " + w.many(depth-1) + " end)(" + w.many(depth-1) + ")"
	case 15:
		return "select(2, " + e() + ", " + w.many(depth-1) + ")"
	default:
		vararg := w.vararg
		w.vararg = false
		defer func() { w.vararg = vararg }()
		return w.pick("(pcall(", "(P(") + "function() return " + e() + " end))"
	}
}

// many is an expression that may have several values.
func (w *writer) many(depth int) string {
	switch w.IntN(4) {
	case 0:
		return w.call(depth)
	case 1:
		return w.expr(depth) + ", " + w.call(depth)
	case 2:
		if w.vararg {
			return "..."
		}
	}
	return w.expr(depth)
}

func (w *writer) call(depth int) string {
	return "C(" + w.name() + ", " + w.expr(depth) + ", " + w.expr(depth) + ")"
}

func (w *writer) declare() string {
	w.names++
	return fmt.Sprintf("v%d", w.names)
}

func (w *writer) block(statements int) {
	scope := len(w.locals)
	w.depth++
	for range statements {
		w.statement()
	}
	w.depth--
	w.locals = w.locals[:scope]
}

func (w *writer) statement() {
	if w.depth > 4 {
		return
	}
	switch w.IntN(12) {
	case 0:
		name := w.declare()
		fmt.Fprintf(&w.b, "local %s = %s\n", name, w.expr(2))
		w.locals = append(w.locals, name)
	case 1:
		a, b := w.declare(), w.declare()
		fmt.Fprintf(&w.b, "local %s, %s = %s\n", a, b, w.many(2))
		w.locals = append(w.locals, a, b)
	case 2, 3:
		fmt.Fprintf(&w.b, "%s = %s\n", w.target(), w.expr(3))
	case 4:
		fmt.Fprintf(&w.b, "%s, %s = %s, %s\n", w.target(), w.target(), w.expr(2), w.many(2))
	case 5:
		fmt.Fprintf(&w.b, "if type(%s) == 'table' then %s[%s] = %s end\n", w.locals[0], w.locals[0], w.pick("1", "'k'", "2"), w.expr(2))
	case 6:
		fmt.Fprintf(&w.b, "if type(%s) == 'table' then %s.x, %s = %s end\n", w.locals[0], w.locals[0], w.target(), w.many(2))
	case 7:
		fmt.Fprintf(&w.b, "if %s then\n", w.expr(2))
		w.block(2)
		w.b.WriteString("else\n")
		w.block(1)
		w.b.WriteString("end\n")
	case 8:
		name := w.declare()
		fmt.Fprintf(&w.b, "for %s = 1, 3 do\n", name)
		w.locals = append(w.locals, name)
		w.block(2)
		w.locals = w.locals[:len(w.locals)-1]
		w.b.WriteString("end\n")
	case 9, 10:
		w.function()
	default:
		fmt.Fprintf(&w.b, "pcall(function()\n")
		vararg := w.vararg
		w.vararg = false
		w.block(2)
		w.vararg = vararg
		w.b.WriteString("end)\n")
	}
}

// function declares a function that calls only what is declared before it, so that it ends.
func (w *writer) function() {
	name, a, b := w.declare(), w.declare(), w.declare()
	outer, vararg := w.locals, w.vararg
	w.vararg = w.IntN(2) == 0
	parameters := a + ", " + b
	if w.vararg {
		parameters = a + ", ..."
	}
	fmt.Fprintf(&w.b, "local %s = (function(%s)\n", name, parameters)
	w.locals = append(append([]string{}, outer...), a)
	if !w.vararg {
		w.locals = append(w.locals, b)
	}
	w.block(2)
	fmt.Fprintf(&w.b, "return %s end)\n", w.many(2))
	outer = append(outer, name)
	w.locals, w.vararg = outer, vararg
}

func randomProgram(seed uint64) string {
	w := &writer{Rand: rand.New(rand.NewPCG(seed, 1))}
	w.b.WriteString(prelude)
	w.b.WriteString("local t, n, s = {1, 2, k = 'v'}, 5, 'str'\n")
	w.b.WriteString("local f = function(a, ...) return a, select('#', ...) end\n")
	w.locals = []string{"t", "n", "s", "f"}
	for range 6 {
		w.statement()
	}
	w.b.WriteString("return {")
	for _, name := range w.locals {
		w.b.WriteString("show(" + name + "), ")
	}
	w.b.WriteString("#ARGV}")
	return w.b.String()
}

// named is a variable's name in a message of Lua's, which gopher-lua does not know.
var named = regexp.MustCompile(`(?:local|global|field|upvalue|method|constant) '[^']*' \((a [a-z]+ value)\)`)

// TestRandomPrograms compares what random programs answer here and on a real server.
func TestRandomPrograms(t *testing.T) {
	racetest.SkipAlone(t)
	if racetest.OmitsLong() {
		t.Skip("takes seconds")
	}
	redis := startRealServer(t)
	e := newEngine(Config{TimeLimit: 100 * time.Millisecond, MaxMemoryBytes: 64 << 20})
	const programs = 600
	failed := 0
	for seed := range uint64(programs) {
		source := randomProgram(seed)
		got := evalWith(e, source, false)
		if strings.Contains(got, "and was ended") {
			continue // a real server would not end it
		}
		want := named.ReplaceAllString(redis.do(t, "EVAL", source, "1", "key", "7", "two"), "$1")
		if strings.HasPrefix(want, "-") {
			failed++
		}
		if got != want {
			t.Errorf("program %d\n got %q\nwant %q\n%s", seed, got, want, source)
			break
		}
	}
	if failed > programs*9/10 {
		t.Errorf("%d of %d programs fail: they say little", failed, programs)
	}
}
