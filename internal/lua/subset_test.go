package lua

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"strconv"
	"strings"
)

// counterHost knows a few commands on values, and answers as Redis does.
type counterHost struct {
	fakeHost
	values map[string]string
}

func newCounterHost(values map[string]string) *counterHost {
	return &counterHost{values: maps.Clone(values)}
}

func (h *counterHost) bulk(key string, buf []byte) []byte {
	if v, ok := h.values[key]; ok {
		return fmt.Appendf(buf, "$%d\r\n%s\r\n", len(v), v)
	}
	return append(buf, "$-1\r\n"...)
}

func (h *counterHost) Call(args [][]byte, _ bool, buf []byte) []byte {
	words := make([]string, len(args))
	for i := range args {
		words[i] = string(args[i])
	}
	switch name := strings.ToLower(words[0]); {
	case name == "get" && len(words) == 2:
		return h.bulk(words[1], buf)
	case name == "set" && len(words) == 3:
		h.values[words[1]] = words[2]
		return append(buf, "+OK\r\n"...)
	case name == "setnx" && len(words) == 3:
		_, found := h.values[words[1]]
		if !found {
			h.values[words[1]] = words[2]
		}
		return fmt.Appendf(buf, ":%d\r\n", map[bool]int{true: 0, false: 1}[found])
	case name == "mget" && len(words) > 1:
		buf = fmt.Appendf(buf, "*%d\r\n", len(words)-1)
		for _, key := range words[1:] {
			buf = h.bulk(key, buf)
		}
		return buf
	case name == "del" && len(words) == 2, name == "exists" && len(words) == 2:
		_, found := h.values[words[1]]
		if name == "del" {
			delete(h.values, words[1])
		}
		return fmt.Appendf(buf, ":%d\r\n", map[bool]int{true: 1, false: 0}[found])
	case name == "incrby" && len(words) == 3, name == "incr" && len(words) == 2:
		by, err := int64(1), error(nil)
		if name == "incrby" {
			by, err = strconv.ParseInt(words[2], 10, 64)
		}
		before := int64(0)
		if v, ok := h.values[words[1]]; ok && err == nil {
			before, err = strconv.ParseInt(v, 10, 64)
		}
		if err != nil || words[len(words)-1][0] == '+' {
			return append(buf, "-ERR value is not an integer or out of range\r\n"...)
		}
		h.values[words[1]] = strconv.FormatInt(before+by, 10)
		return fmt.Appendf(buf, ":%d\r\n", before+by)
	}
	return append(buf, "-ERR Unknown Redis command called from script\r\n"...)
}

// nativeHost has errors run by the interpreter.
type nativeHost struct{ *counterHost }

func (h nativeHost) Call(args [][]byte, buf []byte) (reply []byte, ok bool) {
	from := len(buf)
	buf = h.counterHost.Call(args, false, buf)
	return buf, buf[from] != '-'
}

// subset writes random programs that mostly need no interpreter.
type subset struct {
	*rand.Rand
	b      strings.Builder
	locals []string // in scope
	names  int
	depth  int
}

func (w *subset) pick(list ...string) string { return list[w.IntN(len(list))] }

func (w *subset) local() string { return w.locals[w.IntN(len(w.locals))] }

// number is an expression that is a number most of the time.
func (w *subset) number(depth int) string {
	if depth <= 0 {
		return w.pick("1", "2", "7", "1000", "0.5", "1e3", "0x10", "3.25", "1483228800", "10000000000000000", "#KEYS", "#ARGV[1]", "(2^53)",
			"tonumber(ARGV[1])", "ARGV[1]", "ARGV[2]", "tonumber(ARGV[2], 10)")
	}
	e := func() string { return w.number(depth - 1) }
	switch w.IntN(11) {
	case 0, 1, 2:
		return "(" + e() + w.pick(" + ", " - ", " * ", " / ", " % ", " ^ ") + e() + ")"
	case 3:
		return w.pick("math.floor(", "math.ceil(", "math.abs(", "-(") + e() + ")"
	case 4:
		return w.pick("math.max(", "math.min(") + e() + ", " + e() + ")"
	case 5:
		return "(tonumber(" + w.any(depth-1) + ") or " + e() + ")"
	case 6:
		return "(" + w.any(depth-1) + w.pick(" and ", " or ") + e() + ")"
	case 7:
		return "f(" + e() + ", " + w.any(depth-1) + ")"
	case 8:
		return "redis.call('" + w.pick("incr', KEYS[1])", "INCRBY', KEYS[1], 3)", "exists', KEYS[1])", "del', KEYS[2])", "incrby', KEYS[1], math.floor("+e()+") % 100)")
	default:
		return w.pick(w.local(), "(tonumber("+w.local()+") or 4)", "(tonumber("+w.local()+") or 0.1)")
	}
}

func (w *subset) text(depth int) string {
	if depth <= 0 {
		return w.pick("'a'", "'7'", "''", "'x y'", "KEYS[1]", "ARGV[1]", "ARGV[3]", "ARGV[9]", "' 0x1F '", "'1e400'", "'-0.1'")
	}
	switch w.IntN(5) {
	case 0:
		return "(" + w.text(depth-1) + " .. " + w.pick(w.number(depth-1), w.text(depth-1)) + " .. " + w.text(depth-1) + ")"
	case 1:
		return "tostring(" + w.pick(w.number(depth-1), w.test(depth-1), w.any(depth-1)) + ")"
	case 2:
		return "type(" + w.any(depth-1) + ")"
	case 3:
		return "(redis.call('get', " + w.pick("KEYS[1]", "KEYS[2]") + ") or 'none')"
	default:
		name := w.local()
		return w.pick(name, "(type("+name+") == 'string' and "+name+" or 'q')", "tostring(type("+name+") == 'number' and "+name+")")
	}
}

func (w *subset) any(depth int) string {
	switch w.IntN(7) {
	case 0, 1:
		return w.number(depth)
	case 2, 3:
		return w.text(depth)
	case 4:
		return w.test(depth)
	case 5:
		return w.pick("nil", "true", "false", w.local(), "redis.call('mget', KEYS[1], KEYS[2])[1]", "redis.call('set', KEYS[1], math.floor("+w.number(depth-1)+") % 10)",
			"redis.call('setnx', KEYS[2], "+w.text(depth-1)+")", "redis.pcall('get', KEYS[1])", "redis.replicate_commands()", "redis.call('set', KEYS[2], 5).ok")
	default:
		return w.local()
	}
}

func (w *subset) test(depth int) string {
	if depth <= 0 {
		return w.pick("true", "false", w.local()+" == nil", "not "+w.local())
	}
	switch w.IntN(4) {
	case 0:
		return "(" + w.number(depth-1) + w.pick(" < ", " <= ", " > ", " >= ") + w.number(depth-1) + ")"
	case 1:
		return "(" + w.any(depth-1) + w.pick(" == ", " ~= ") + w.any(depth-1) + ")"
	case 2:
		return "(" + w.text(depth-1) + w.pick(" < ", " >= ") + w.text(depth-1) + ")"
	default:
		return "(not " + w.any(depth-1) + w.pick(" and ", " or ") + w.any(depth-1) + ")"
	}
}

func (w *subset) block(statements int) {
	scope := len(w.locals)
	w.depth++
	for range statements {
		w.statement()
	}
	w.depth--
	w.locals = w.locals[:scope]
}

func (w *subset) statement() {
	switch n := w.IntN(12); {
	case n < 4:
		w.names++
		name := fmt.Sprintf("v%d", w.names)
		fmt.Fprintf(&w.b, "local %s = %s\n", name, w.any(3))
		w.locals = append(w.locals, name)
	case n == 4:
		fmt.Fprintf(&w.b, "local %s, %s = %s\n", "a", "b", w.any(2))
		w.locals = append(w.locals, "a", "b")
	case n < 7:
		fmt.Fprintf(&w.b, "%s = %s\n", w.local(), w.any(3))
	case n == 7:
		fmt.Fprintf(&w.b, "%s, %s = %s, %s\n", w.local(), w.local(), w.any(2), w.any(2))
	case n == 8:
		fmt.Fprintf(&w.b, "redis.call('set', KEYS[2], %s)\n", w.pick(w.number(2), w.text(2)))
	case w.depth < 4:
		fmt.Fprintf(&w.b, "if %s then\n", w.test(2))
		w.block(2)
		if w.IntN(6) == 0 {
			fmt.Fprintf(&w.b, "return %s\n", w.reply())
		}
		w.b.WriteString(w.pick("else\n", "elseif "+w.test(1)+" then\n"))
		w.block(1)
		w.b.WriteString("end\n")
	}
}

func (w *subset) reply() string {
	return w.pick(w.any(2), "{"+w.any(1)+", "+w.any(2)+", "+w.any(1)+"}", "{"+w.any(1)+", {"+w.any(1)+"}, {}}",
		"redis.error_reply("+w.text(1)+")", "redis.status_reply("+w.text(1)+")", "{err = "+w.text(1)+"}", "{ok = "+w.text(1)+"}", "")
}

func randomSubset(seed uint64) string {
	w := &subset{Rand: rand.New(rand.NewPCG(seed, 2)), locals: []string{"n", "s"}}
	w.b.WriteString("local n, s = 5, 'str'\nlocal function f(a, b)\n")
	w.locals = append(w.locals, "a", "b")
	saved := w.names
	w.b.WriteString("if b then a = a * 2 end return a\nend\n")
	w.names, w.locals = saved, w.locals[:2]
	for range 6 {
		w.statement()
	}
	w.b.WriteString("return " + w.reply() + "\n")
	return w.b.String()
}
