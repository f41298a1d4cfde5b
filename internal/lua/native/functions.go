package native

import (
	"math"

	"github.com/yuin/gopher-lua/ast"

	"cellserver/internal/lua/vm"
)

// call accepts calls of commands, of some of Lua's functions, and of the script's own.
func (c *compiler) call(x *ast.FuncCallExpr) expression {
	switch of := x.Func.(type) {
	case *ast.AttrGetExpr:
		name, ok := of.Key.(*ast.StringExpr)
		switch {
		case !ok:
		case c.isGlobal(of.Object, "redis"):
			return c.redis(name.Value, x.Args)
		case c.isGlobal(of.Object, "math"):
			return c.math(name.Value, x.Args)
		}
	case *ast.IdentExpr:
		if v := c.find(of.Value); v != nil {
			return c.own(v, x.Args)
		}
		return c.global(of.Value, x.Args)
	}
	return c.unknown()
}

// redis accepts redis.call and its like. A command's error needs the interpreter, so redis.pcall is the same.
func (c *compiler) redis(name string, args []ast.Expr) expression {
	switch {
	case name == "call" || name == "pcall":
		c.calls = true
		if len(args) > 0 {
			return c.command(args)
		}
	case name == "replicate_commands" && len(args) == 0:
		return &literal{value: boolOf(true)}
	case len(args) != 1:
	case name == "status_reply":
		return &function{place: c.place(), of: c.expression(args[0]), call: tagged(isStatus)}
	case name == "error_reply":
		return &function{place: c.place(), of: c.expression(args[0]), call: errorReply}
	}
	return c.unknown()
}

// command accepts a command's arguments, which may end with unpack(ARGV). Numbers are already texts.
func (c *compiler) command(list []ast.Expr) expression {
	e := &command{place: c.place()}
	if last := len(list) - 1; last > 0 && c.isAllArgv(list[last]) {
		e.andArgv, list = true, list[:last]
	}
	e.args = c.expressions(list)
	for i, arg := range e.args {
		if f, ok := constant(arg); ok {
			e.args[i] = &literal{textOf(vm.AppendExactNumber(nil, f)), arg.(*literal).computed}
		}
	}
	return e
}

// isAllArgv reports whether an expression is unpack(ARGV) with all its values.
func (c *compiler) isAllArgv(e ast.Expr) bool {
	call, ok := e.(*ast.FuncCallExpr)
	return ok && !call.AdjustRet && len(call.Args) == 1 && c.isGlobal(call.Func, "unpack") && c.isGlobal(call.Args[0], "ARGV")
}

// command is redis.call(...).
type command struct {
	place
	args    []expression
	andArgv bool // and all of ARGV
}

func (e *command) eval(m *Machine) *value { return m.call(e, e.slot(m)) }

// function is one of Lua's with a single argument, or a unary operator.
type function struct {
	place
	of   expression
	call operation
	name string // of a basic function
}

// operation sets to, which may be v. It returns false where the interpreter is needed.
type operation func(m *Machine, v, to *value) bool

func (e *function) eval(m *Machine) *value {
	v, to := e.of.eval(m), e.slot(m)
	if !e.call(m, v, to) {
		return m.needInterpreter()
	}
	return to
}

// tagged returns the function that makes a reply of a text.
func tagged(as kind) operation {
	return func(_ *Machine, v, to *value) bool {
		isText := v.kind == isText
		to.kind, to.text = as, v.text
		return isText
	}
}

func errorReply(_ *Machine, v, to *value) bool {
	isText := v.kind == isText
	to.kind, to.text = isError, []byte(vm.ErrorReply(string(v.text)))
	return isText
}

func (c *compiler) math(name string, args []ast.Expr) expression {
	if len(args) > 0 && (name == "max" || name == "min") {
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
		return c.unknown()
	}
	return &function{place: c.place(), of: c.expression(args[0]), call: func(_ *Machine, v, to *value) bool {
		n, ok := v.toNumber()
		to.setNumber(f(n))
		return ok
	}}
}

// global accepts Lua's basic functions.
func (c *compiler) global(name string, args []ast.Expr) expression {
	f := basicFunction(name)
	if name == "tonumber" && len(args) == 2 {
		if base, ok := constant(c.expression(args[1])); ok && base == 10 {
			name, args = "tonumber with a base", args[:1]
		}
	}
	if f == nil || len(args) != 1 {
		return c.unknown()
	}
	return &function{c.place(), c.expression(args[0]), f, name}
}

func basicFunction(name string) operation {
	switch name {
	case "tonumber":
		return tonumber
	case "tostring":
		return tostring
	case "type":
		return typeOf
	case "assert":
		return assert
	}
	return nil
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

func tonumber(_ *Machine, v, to *value) bool {
	f, ok := v.toNumber()
	if to.setNumber(f); !ok {
		to.kind = isNil
	}
	return true
}

func tostring(m *Machine, v, to *value) bool {
	b, ok := m.text(v)
	if v.kind < isNumber {
		b, ok = []byte([...]string{"nil", "false", "true"}[v.kind]), true
	}
	to.setText(b)
	return ok
}

func typeOf(_ *Machine, v, to *value) bool {
	to.setText([]byte(v.typeName()))
	return true
}

func length(m *Machine, v, to *value) bool {
	switch v.kind {
	case isText:
		to.setNumber(float64(len(v.text)))
		return true
	case isArray:
		list := m.elements(v)
		to.setNumber(float64(len(list)))
		for i := range list {
			if list[i].kind == isNil {
				return false
			}
		}
		return true
	default:
		return false
	}
}

func minus(_ *Machine, v, to *value) bool {
	f, ok := v.toNumber()
	to.setNumber(-f)
	return ok && !isSigned(-f)
}

func not(_ *Machine, v, to *value) bool {
	to.setBool(!v.isTruthy())
	return true
}

func assert(_ *Machine, v, to *value) bool {
	to.set(*v)
	return to.isTruthy()
}

// body is a local function's. It knows the functions before it only, so none calls itself; its variables have
// slots of their own.
type body struct {
	params     []int
	statements block
	nodes      int
}

// define compiles local function name().
func (c *compiler) define(name string, x *ast.FunctionExpr) statement {
	if x.ParList.HasVargs {
		return c.unknown()
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
		return c.unknown()
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
	return e.slot(m).set(*m.result)
}

func (e *ownCall) run(m *Machine) (returned bool) {
	if m.steps += e.body.nodes; m.steps > maxSteps {
		m.odd = true
		return true
	}
	from := m.evaluate(e.args, 0)
	for i, slot := range e.body.params {
		m.slots[slot] = m.items[from+i]
	}
	m.result = nil
	e.body.statements.run(m)
	return false
}
