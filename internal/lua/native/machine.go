package native

import (
	"cellserver/internal/lua/vm"
	"cellserver/internal/resp"
)

// Host executes a script's commands.
type Host interface {
	// Call executes a command and appends its reply in RESP2 to buf. It returns false if the interpreter has
	// to run the script, from the beginning: nothing of this run must remain.
	Call(args [][]byte, buf []byte) (reply []byte, ok bool)
}

// Bounds of a run: others may wait for its keys.
const (
	maxTextBytes = 256 << 10 // of texts that it makes, with the replies to its commands
	maxSteps     = maxNodes  // of commands, and of local functions by their nodes
	callSteps    = maxSteps / 50
)

// Machine runs programs. It is for one goroutine at a time; the zero value is ready.
type Machine struct {
	host       Host
	keys, argv [][]byte
	slots      []value
	items      []value  // of arrays
	args       [][]byte // of nested calls
	texts      []byte
	result     *value // of the last return; nil for none
	none       value  // nil
	steps      int
	odd        bool // the interpreter is needed
}

// Run runs a program and appends the script's reply to buf. It returns false if only the interpreter can tell
// what the script does: then nothing of the run must remain.
func (m *Machine) Run(p *Program, keys, argv [][]byte, host Host, resp3 bool, buf []byte) ([]byte, bool) {
	m.host, m.keys, m.argv = host, keys, argv
	if cap(m.slots) < p.slots {
		m.slots = make([]value, p.slots)
	}
	m.slots = m.slots[:p.slots]
	m.items, m.args, m.texts, m.steps, m.odd = m.items[:0], m.args[:0], m.texts[:0], 0, false
	m.result = nil
	p.body.run(m)
	w := resp.Writer{Buf: buf, RESP3: resp3}
	if m.result == nil {
		m.result = &m.none
	}
	m.write(&w, m.result)
	if m.odd {
		return buf, false
	}
	return w.Buf, true
}

const (
	keptBytes = 16 << 10
	keptItems = 256
)

// Forget drops references to the last run's arguments and data.
func (m *Machine) Forget() {
	m.host, m.keys, m.argv = nil, nil, nil
	if cap(m.texts) > keptBytes {
		m.texts = nil
	}
	if cap(m.items) > keptItems {
		m.items = nil
	}
	clear(m.slots)
	clear(m.items[:cap(m.items)])
	clear(m.args[:cap(m.args)])
}

// list returns KEYS or ARGV.
func (m *Machine) list(ofKeys bool) [][]byte {
	if ofKeys {
		return m.keys
	}
	return m.argv
}

// needInterpreter ends the run: what follows has no effect.
func (m *Machine) needInterpreter() *value {
	m.odd = true
	return &m.none
}

// call executes a command and sets v to its reply.
func (m *Machine) call(c *command, at *value) *value {
	base := len(m.args)
	for _, e := range c.args {
		v := e.eval(m)
		text := v.text
		if v.kind == isNumber {
			from := len(m.texts)
			m.texts = vm.AppendExactNumber(m.texts, v.number)
			text = m.texts[from:len(m.texts):len(m.texts)]
		} else if v.kind != isText {
			m.odd = true
		}
		m.args = append(m.args, text)
	}
	if c.andArgv {
		if len(m.argv) > maxNodes { // as many as a program could name
			return m.needInterpreter()
		}
		m.args = append(m.args, m.argv...)
	}
	args := m.args[base:]
	m.args = m.args[:base]
	if m.steps += callSteps; m.odd || m.steps > maxSteps {
		return m.needInterpreter()
	}
	from := len(m.texts)
	var ok bool
	if m.texts, ok = m.host.Call(args, m.texts); !ok || len(m.texts) > maxTextBytes {
		return m.needInterpreter()
	}
	if rest, ok := m.read(m.texts[from:], at, false); !ok || len(rest) > 0 {
		return m.needInterpreter()
	}
	return at
}

// text returns a value as an operand of .. or by tostring.
func (m *Machine) text(v *value) ([]byte, bool) {
	switch v.kind {
	case isText:
		return v.text, true
	case isNumber:
		from := len(m.texts)
		m.texts = vm.AppendNumber(m.texts, v.number)
		return m.texts[from:len(m.texts):len(m.texts)], true
	default:
		return nil, false
	}
}

// read takes the reply at the front of b. Errors and nested arrays need the interpreter.
func (m *Machine) read(b []byte, v *value, nested bool) (rest []byte, ok bool) {
	kind, text, n, rest, ok := vm.CutReply(b)
	switch {
	case !ok:
		return nil, false
	case kind == '+':
		v.kind, v.text = isStatus, text
	case kind == ':':
		v.kind, v.number = isNumber, float64(n)
	case n < 0 && (kind == '$' || kind == '*'):
		v.kind = isFalse
	case kind == '$':
		v.kind, v.text = isText, text
	case kind == '*' && n <= int64(len(rest)) && !nested: // an element takes a byte or more
		from := m.reserve(int(n))
		*v = arrayAt(from)
		for i := range int(n) {
			if rest, ok = m.read(rest, &m.items[from+i], true); !ok {
				return nil, false
			}
		}
	default:
		return nil, false
	}
	return rest, true
}

// reserve makes room for the elements of an array, and returns the place of the first.
func (m *Machine) reserve(n int) (from int) {
	m.items = append(m.items, numberOf(float64(n)))
	for range n {
		m.items = append(m.items, value{})
	}
	return len(m.items) - n
}

// evaluate reserves an array of values, and of nils up to least elements.
func (m *Machine) evaluate(values []expression, least int) (from int) {
	from = m.reserve(max(len(values), least))
	for i := range values {
		v := values[i].eval(m) // may move the items
		m.items[from+i] = *v
	}
	return from
}

// arrayAt returns the array of reserved elements.
func arrayAt(from int) value { return value{kind: isArray, number: float64(from - 1)} }

// elements returns an array's elements.
func (m *Machine) elements(array *value) []value {
	from := int(array.number) + 1
	return m.items[from : from+int(m.items[from-1].number)]
}

// at returns an array's element from 1.
func (m *Machine) at(array *value, f float64) *value {
	list := m.elements(array)
	if f < 1 || f > float64(len(list)) || float64(int(f)) != f {
		return &m.none
	}
	return &list[int(f)-1]
}

// write appends the script's reply by Redis's rules: an array ends before its first nil.
func (m *Machine) write(w *resp.Writer, v *value) {
	switch v.kind {
	case isNumber:
		w.Int(vm.ReplyNumber(v.number))
	case isText:
		w.Bulk(v.text)
	case isTrue:
		w.Int(1)
	case isStatus:
		w.Status(vm.OneLine(string(v.text)))
	case isError:
		w.Error(vm.OneLine(string(v.text)))
	case isArray:
		list := m.elements(v)
		for i := range list {
			if list[i].kind == isNil {
				list = list[:i]
				break
			}
		}
		w.Array(len(list))
		for i := range list {
			m.write(w, &list[i])
		}
	default:
		w.Null()
	}
}
