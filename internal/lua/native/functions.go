package native

import (
	"math"

	"github.com/yuin/gopher-lua/ast"

	"cellserver/internal/lua/vm"
)

// call accepts calls of commands, of some of Lua's functions, and of the script's own.
func (c *compiler) call(x *ast.FuncCallExpr) expression {
	if x.Func == nil { // a method
		c.unknown()
		return odd{}
	}
	if attr, ok := x.Func.(*ast.AttrGetExpr); ok {
		name, ok := attr.Key.(*ast.StringExpr)
		switch {
		case !ok:
		case c.isGlobal(attr.Object, "redis"):
			return c.redis(name.Value, x.Args)
		case c.isGlobal(attr.Object, "math"):
			return c.math(name.Value, x.Args)
		}
		c.unknown()
		return odd{}
	}
	name, ok := x.Func.(*ast.IdentExpr)
	if !ok {
		c.unknown()
		return odd{}
	}
	if v := c.find(name.Value); v != nil {
		return c.own(v, x.Args)
	}
	return c.global(name.Value, x.Args)
}

// redis accepts redis.call and its like. A command's error needs the interpreter, so redis.pcall is the same.
func (c *compiler) redis(name string, args []ast.Expr) expression {
	switch {
	case name == "call" || name == "pcall":
		c.calls = true
		if len(args) > 0 {
			return &command{c.place(), c.arguments(args)}
		}
	case name == "replicate_commands" && len(args) == 0:
		return &literal{boolOf(true)}
	case len(args) != 1:
	case name == "status_reply":
		return &function{c.place(), c.expression(args[0]), tagged(isStatus)}
	case name == "error_reply":
		return &function{c.place(), c.expression(args[0]), errorReply}
	}
	c.unknown()
	return odd{}
}

// arguments returns a command's, numbers already as texts.
func (c *compiler) arguments(list []ast.Expr) []expression {
	out := c.expressions(list)
	for i, e := range out {
		if number, ok := e.(*literal); ok && number.kind == isNumber {
			out[i] = &literal{textOf(vm.AppendExactNumber(nil, number.number))}
		}
	}
	return out
}

// command is redis.call(...).
type command struct {
	place
	args []expression
}

func (e *command) eval(m *Machine) *value { return m.call(e.args, &m.slots[e.at]) }

// function is one of Lua's with a single argument.
type function struct {
	place
	of   expression
	call func(m *Machine, v *value) (result value, ok bool)
}

func (e *function) eval(m *Machine) *value {
	v, ok := e.call(m, e.of.eval(m))
	if !ok {
		return m.needInterpreter()
	}
	return e.set(m, v)
}

// tagged returns the function that makes a reply of a text.
func tagged(as kind) func(m *Machine, v *value) (value, bool) {
	return func(_ *Machine, v *value) (value, bool) { return value{kind: as, text: v.text}, v.kind == isText }
}

func errorReply(_ *Machine, v *value) (value, bool) {
	if v.kind != isText {
		return value{}, false
	}
	return value{kind: isError, text: []byte(vm.ErrorReply(string(v.text)))}, true
}

func (c *compiler) math(name string, args []ast.Expr) expression {
	if name == "max" || name == "min" {
		if len(args) == 0 {
			c.unknown()
			return odd{}
		}
		return &extreme{c.place(), c.expressions(args), name == "min"}
	}
	var f func(float64) float64
	switch name {
	case "floor":
		f = math.Floor
	case "ceil":
		f = math.Ceil
	case "abs":
		f = math.Abs
	}
	if f == nil || len(args) != 1 {
		c.unknown()
		return odd{}
	}
	return &function{c.place(), c.expression(args[0]), func(_ *Machine, v *value) (value, bool) {
		n, ok := v.toNumber()
		return numberOf(f(n)), ok
	}}
}

// global accepts Lua's basic functions.
func (c *compiler) global(name string, args []ast.Expr) expression {
	if name == "tonumber" && len(args) == 2 {
		if base, ok := constant(args[1]); ok && base == 10 {
			args = args[:1]
		}
	}
	var f func(m *Machine, v *value) (value, bool)
	switch name {
	case "tonumber":
		f = tonumber
	case "tostring":
		f = tostring
	case "type":
		f = func(_ *Machine, v *value) (value, bool) { return textOf([]byte(v.typeName())), true }
	case "assert":
		f = assert
	}
	if f == nil || len(args) != 1 {
		c.unknown()
		return odd{}
	}
	return &function{c.place(), c.expression(args[0]), f}
}

// callStatement accepts a call without use of its value.
func (c *compiler) callStatement(e ast.Expr) statement {
	if x, ok := e.(*ast.FuncCallExpr); ok && len(x.Args) == 2 && x.Func != nil && c.isGlobal(x.Func, "assert") {
		if _, ok := x.Args[1].(*ast.StringExpr); ok { // the message is for the interpreter
			return &evaluated{c.global("assert", x.Args[:1])}
		}
	}
	called := c.expression(e)
	if own, ok := called.(*ownCall); ok {
		return own
	}
	return &evaluated{called}
}

func tonumber(_ *Machine, v *value) (value, bool) {
	f, ok := v.toNumber()
	if !ok {
		return value{}, true
	}
	return numberOf(f), true
}

func tostring(m *Machine, v *value) (value, bool) {
	if v.kind < isNumber {
		return textOf([]byte([...]string{"nil", "false", "true"}[v.kind])), true
	}
	b, ok := m.text(v)
	return textOf(b), ok
}

func assert(_ *Machine, v *value) (value, bool) { return *v, v.isTruthy() }

// body is a local function's. It knows the functions before it only, so none calls itself; its variables have
// slots of their own.
type body struct {
	params     []int
	statements []statement
	nodes      int
}

// define compiles local function name().
func (c *compiler) define(name string, x *ast.FunctionExpr) statement {
	if x.ParList.HasVargs {
		c.unknown()
		return odd{}
	}
	outer, conditional, function, before := len(c.scopes), c.conditional, c.function, c.program.nodes
	// Within itself, the name is not known.
	c.scopes = append(c.scopes, variable{name: name, body: &body{}})
	b := &body{}
	c.function = c.slot()
	for _, param := range x.ParList.Names {
		b.params = append(b.params, c.variable(param))
	}
	c.conditional++ // it may never be called
	b.statements = c.block(x.Stmts)
	c.conditional, c.function = conditional, function
	b.nodes = c.program.nodes - before
	c.scopes = append(c.scopes[:outer], variable{name: name, body: b})
	return nil
}

// own accepts a call of a local function with all its arguments.
func (c *compiler) own(v *variable, args []ast.Expr) expression {
	if v.body == nil || v.body.nodes == 0 || len(args) != len(v.body.params) {
		c.unknown()
		return odd{}
	}
	return &ownCall{c.place(), v.body, c.expressions(args)}
}

// ownCall is a call of a local function.
type ownCall struct {
	place
	body *body
	args []expression
}

func (e *ownCall) eval(m *Machine) *value {
	e.run(m)
	if m.result == nil { // Lua tells it from nil where it is an argument
		return m.needInterpreter()
	}
	return e.set(m, *m.result)
}

func (e *ownCall) run(m *Machine) (returned bool) {
	if m.steps += e.body.nodes; m.steps > maxSteps {
		m.odd = true
		return true
	}
	from := m.reserve(len(e.args))
	for i := range e.args {
		v := e.args[i].eval(m)
		m.items[from+i] = *v
	}
	for i, slot := range e.body.params {
		m.slots[slot] = m.items[from+i]
	}
	m.result = nil
	m.block(e.body.statements)
	return false
}
