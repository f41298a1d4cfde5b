package native

import "math"

// Program is a script of assignments, conditions, arithmetic and calls of commands, without loops or tables
// that change: it ends after as many steps as it is long. It is immutable and safe for concurrent use.
type Program struct {
	body  block
	slots int // of a run's values
	nodes int

	// Keys is the number of the last key that the script names, 0 if it names none.
	Keys int
}

// CostBytes returns a program's approximate memory.
func (p *Program) CostBytes() int {
	const nodeBytes = 96
	if p == nil {
		return 0
	}
	return p.nodes * nodeBytes
}

// An expression returns its one value, which is valid until the run ends. Copies of values would stall, so
// each variable and each result has a slot of its own.
type expression interface{ eval(m *Machine) *value }

// A statement reports whether it ends the script, or the function around it, with Machine.result.
type statement interface {
	run(m *Machine) (returned bool)
}

// odd is what only the interpreter can execute.
type odd struct{}

func (odd) eval(m *Machine) *value { return m.needInterpreter() }

func (odd) run(m *Machine) bool { m.odd = true; return true }

// place is the slot of an expression's result: its own, or that of the variable to which it is assigned, for
// it is written last.
type place struct{ at int }

func (p *place) assignTo(slot int) { p.at = slot }

// slot returns what the expression sets.
func (p *place) slot(m *Machine) *value { return &m.slots[p.at] }

// literal is a value of the program.
type literal struct {
	value
	computed bool // a number
}

func (e *literal) eval(*Machine) *value { return &e.value }

// local is a variable by its slot.
type local struct{ slot int }

func (e *local) eval(m *Machine) *value { return &m.slots[e.slot] }

// nth is KEYS[n] or ARGV[n].
type nth struct {
	place
	n      int
	ofKeys bool
}

func (e *nth) eval(m *Machine) *value {
	list := m.list(e.ofKeys)
	if e.n > len(list) {
		return e.slot(m).set(value{})
	}
	return e.slot(m).setText(list[e.n-1])
}

// count is #KEYS or #ARGV.
type count struct {
	place
	ofKeys bool
}

func (e *count) eval(m *Machine) *value {
	return e.slot(m).setNumber(float64(len(m.list(e.ofKeys))))
}

// indexed is object[key].
type indexed struct {
	place
	object, key expression
}

func (e *indexed) eval(m *Machine) *value {
	object := e.object.eval(m)
	key := e.key.eval(m)
	switch {
	case object.kind == isArray && key.kind == isNumber:
		return m.at(object, key.number)
	case object.kind == isStatus && key.kind == isText && string(key.text) == "ok":
		return e.slot(m).setText(object.text)
	}
	return m.needInterpreter()
}

// either is a and b, or a or b.
type either struct {
	a, b  expression
	isAnd bool
}

func (e *either) eval(m *Machine) *value {
	if v := e.a.eval(m); v.isTruthy() != e.isAnd || m.odd {
		return v
	}
	return e.b.eval(m)
}

type comparison struct {
	place
	a, b     expression
	order    order
	opposite bool
}

func (e *comparison) eval(m *Machine) *value {
	a := e.a.eval(m)
	is, known := e.order.holds(a, e.b.eval(m))
	if !known {
		return m.needInterpreter()
	}
	return e.slot(m).setBool(is != e.opposite)
}

// calculation is an operation on two numbers, or on texts that spell them.
type calculation struct {
	place
	a, b     expression
	operator byte
}

func (e *calculation) eval(m *Machine) *value {
	left := e.a.eval(m)
	right := e.b.eval(m)
	a, b, texts := left.number, right.number, false
	if left.kind != isNumber || right.kind != isNumber {
		var leftOK, rightOK bool
		texts = left.kind == isText || right.kind == isText
		a, leftOK = left.toNumber()
		b, rightOK = right.toNumber()
		if !leftOK || !rightOK {
			return m.needInterpreter()
		}
	}
	f := arithmetic(e.operator, a, b, texts)
	if isSigned(f) {
		return m.needInterpreter()
	}
	return e.slot(m).setNumber(f)
}

// isSigned reports whether a result is NaN or -0: its sign depends on the interpreter's way to it.
func isSigned(f float64) bool { return f != f || f == 0 && math.Signbit(f) }

// joined is a .. b .. c.
type joined struct {
	place
	of []expression
}

func (e *joined) eval(m *Machine) *value {
	base := len(m.args)
	for _, operand := range e.of {
		b, ok := m.text(operand.eval(m))
		if m.odd = m.odd || !ok; m.odd {
			break
		}
		m.args = append(m.args, b)
	}
	operands := m.args[base:]
	m.args = m.args[:base]
	from := len(m.texts)
	for _, b := range operands {
		if len(m.texts)+len(b) > maxTextBytes {
			return m.needInterpreter()
		}
		m.texts = append(m.texts, b...)
	}
	return e.slot(m).setText(m.texts[from:len(m.texts):len(m.texts)])
}

// array is a table constructor without names.
type array struct {
	place
	of []expression
}

func (e *array) eval(m *Machine) *value {
	return e.slot(m).set(arrayAt(m.evaluate(e.of, 0)))
}

// extreme is math.max or math.min.
type extreme struct {
	place
	of    []expression
	least bool
}

func (e *extreme) eval(m *Machine) *value {
	best := 0.0
	for i, operand := range e.of {
		f, ok := operand.eval(m).toNumber()
		if !ok {
			return m.needInterpreter()
		}
		if i == 0 || e.least && f < best || !e.least && f > best {
			best = f
		}
	}
	return e.slot(m).setNumber(best)
}
