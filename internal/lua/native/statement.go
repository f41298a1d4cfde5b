package native

// evaluated is an expression for its effect, or for its slot.
type evaluated struct{ of expression }

func (s *evaluated) run(m *Machine) bool { s.of.eval(m); return false }

// copied sets a variable to a value in another slot.
type copied struct {
	place
	from expression
}

func (s *copied) run(m *Machine) bool {
	s.slot(m).set(*s.from.eval(m))
	return false
}

// assignment sets variables, once all values are known.
type assignment struct {
	slots  []int
	values []expression
}

func (s *assignment) run(m *Machine) bool {
	from := m.evaluate(s.values, len(s.slots))
	for i := len(s.slots) - 1; i >= 0; i-- {
		m.slots[s.slots[i]] = m.items[from+i]
	}
	return false
}

type condition struct {
	when            expression
	then, otherwise block
}

func (s *condition) run(m *Machine) bool {
	if s.when.eval(m).isTruthy() {
		return s.then.run(m)
	}
	return s.otherwise.run(m)
}

type block []statement

// run runs statements until one of them returns.
func (b block) run(m *Machine) (returned bool) {
	for _, s := range b {
		if s.run(m) || m.odd {
			return true
		}
	}
	return false
}

// returning ends the script or function with a value, or without one.
type returning struct {
	of        expression
	dropsMore bool // constants
}

func (s *returning) run(m *Machine) bool {
	if m.result = nil; s.of != nil {
		m.result = s.of.eval(m)
	}
	return true
}
