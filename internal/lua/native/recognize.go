package native

import (
	"strings"

	"cellserver/internal/lua/vm"
)

// recognizer follows a program's assignments up to its return.
type recognizer struct {
	values map[int]argument // of variables by their slots
	called *command         // its reply is in a variable; nil until then
}

// Recognize returns the call that a program consists of, or nil.
func (c Commands) Recognize(p *Program) *Call {
	if p == nil {
		return nil
	}
	r := recognizer{values: map[int]argument{}}
	for _, s := range p.body {
		if x, ok := s.(*returning); ok {
			if x.dropsMore {
				return nil
			}
			return r.returned(c, x.of)
		}
		if r.called != nil || !r.assign(s) {
			return nil
		}
	}
	return nil
}

// assign accepts local x = KEYS[1], or the call, but no second assignment of x.
func (r *recognizer) assign(s statement) bool {
	var slots []int
	var values []expression
	switch x := s.(type) {
	case *evaluated:
		switch e := x.of.(type) {
		case *command:
			r.called = e
			return !r.knows(e.at)
		case *nth:
			slots = []int{e.at}
		case *function:
			slots = []int{e.at}
		}
		values = []expression{x.of}
	case *copied:
		slots, values = []int{x.at}, []expression{x.from}
	case *assignment:
		slots, values = x.slots, x.values
	default:
		return false
	}
	known, ok := r.arguments(values)
	if !ok || len(slots) != len(values) {
		return false
	}
	for i, slot := range slots {
		if r.knows(slot) {
			return false
		}
		r.values[slot] = known[i]
	}
	return true
}

func (r *recognizer) knows(slot int) bool {
	_, ok := r.values[slot]
	return ok
}

// returned accepts a call, or the variable with its reply, or an element of either.
func (r *recognizer) returned(c Commands, e expression) *Call {
	call := &Call{}
	if element, ok := e.(*indexed); ok {
		key, ok := element.key.(*literal)
		if !ok || key.kind != isNumber || key.number != float64(int(key.number)) || key.number < 1 {
			return nil
		}
		call.index, e = int(key.number), element.object
	}
	of := r.called
	if of == nil {
		of, _ = e.(*command)
	} else if variable, ok := e.(*local); !ok || variable.slot != of.at {
		return nil
	}
	if of == nil || len(of.args) > maxArguments {
		return nil
	}
	var ok bool
	if call.args, ok = r.arguments(of.args); !ok || !c.have(call.args) {
		return nil
	}
	if of.andArgv {
		call.args = append(call.args, argument{from: fromAllArgv})
	}
	return call
}

// maxArguments exceeds the arguments of any valid call.
const maxArguments = 20

// have reports whether a call is of one of the commands, by name and subcommand.
func (c Commands) have(args []argument) bool {
	if args[0].from != fromLiteral {
		return false
	}
	name := strings.ToLower(string(args[0].literal))
	if c[name] || len(args) == 1 || args[1].from != fromLiteral {
		return c[name]
	}
	return c[name+"|"+strings.ToLower(string(args[1].literal))]
}

func (r *recognizer) arguments(list []expression) (args []argument, ok bool) {
	for _, e := range list {
		a, ok := r.argument(e)
		if !ok {
			return nil, false
		}
		args = append(args, a)
	}
	return args, true
}

func (r *recognizer) argument(e expression) (a argument, ok bool) {
	switch x := e.(type) {
	case *literal:
		a.literal, ok = x.text, x.kind == isText && !x.computed
		if x.kind == isNumber {
			a.literal, ok = vm.AppendExactNumber(nil, x.number), !x.computed
		}
	case *local:
		a, ok = r.values[x.slot]
	case *nth:
		a, ok = argument{from: fromArgv, index: x.n - 1}, true
		if x.ofKeys {
			a.from = fromKeys
		}
	case *function: // tonumber(x), and tostring(x) of a string
		a, ok = r.argument(x.of)
		isText := a.from != fromLiteral && !a.number
		a.number = a.number || x.name == "tonumber"
		ok = ok && (x.name == "tonumber" || x.name == "tostring" && isText)
	}
	return a, ok
}
