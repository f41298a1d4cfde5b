package native

import (
	"math"

	"github.com/yuin/gopher-lua/ast"

	"cellserver/internal/lua/vm"
)

// maxNodes bounds the statements and expressions of a program.
const maxNodes = 2000

// A compiler translates a syntax tree into a Program. What it does not know becomes odd where a run may pass
// it by, and else fails.
type compiler struct {
	program     *Program
	scopes      []variable // in scope, the innermost last
	conditional int        // depth of parts that may be passed by
	function    int        // slot from which the variables of the function around begin; 0 outside
	calls       bool       // commands
	failed      bool
}

// variable is a local variable, or a local function.
type variable struct {
	name string
	slot int
	body *body // of a function
}

// Compile returns a parsed script as a Program, or nil if only the interpreter can run it.
func Compile(chunk []ast.Stmt) *Program {
	c := compiler{program: &Program{slots: 1}}
	c.program.body = c.block(chunk)
	if c.failed || !c.calls {
		return nil
	}
	return c.program
}

// unknown notes what only the interpreter can execute.
func (c *compiler) unknown() odd { //nolint:unparam // it stands for any node
	c.failed = c.failed || c.conditional == 0
	return odd{}
}

// node counts a node of the tree. It returns false at the bound.
func (c *compiler) node() bool {
	c.program.nodes++
	c.failed = c.failed || c.program.nodes > maxNodes
	return !c.failed
}

func (c *compiler) block(list []ast.Stmt) block {
	outer := len(c.scopes)
	defer func() { c.scopes = c.scopes[:outer] }()
	var out block
	for _, s := range list {
		if !c.node() {
			return nil
		}
		if compiled := c.statement(s); compiled != nil {
			out = append(out, compiled)
		}
	}
	return out
}

func (c *compiler) statement(s ast.Stmt) statement {
	switch x := s.(type) {
	case *ast.LocalAssignStmt:
		return c.declare(x)
	case *ast.AssignStmt:
		return c.assign(x)
	case *ast.FuncCallStmt:
		return c.callStatement(x.Expr)
	case *ast.DoBlockStmt:
		return c.block(x.Stmts)
	case *ast.IfStmt:
		s := &condition{when: c.expression(x.Condition)}
		c.conditional++
		s.then, s.otherwise = c.block(x.Then), c.block(x.Else)
		c.conditional--
		return s
	case *ast.ReturnStmt:
		return c.returned(x)
	}
	return c.unknown()
}

func (c *compiler) declare(x *ast.LocalAssignStmt) statement {
	if f := vm.LocalFunction(x); f != nil {
		return c.define(x.Names[0], f)
	}
	values := c.expressions(x.Exprs)
	var slots []int
	for _, name := range x.Names {
		slots = append(slots, c.variable(name))
	}
	return assigned(slots, values)
}

// assigned returns the statement that sets variables.
func assigned(slots []int, values []expression) statement {
	if len(slots) != 1 || len(values) != 1 {
		return &assignment{slots, values}
	}
	if e, ok := values[0].(interface{ assignTo(slot int) }); ok {
		if _, isElement := e.(*indexed); !isElement { // it is where it is
			e.assignTo(slots[0])
			return &evaluated{values[0]}
		}
	}
	return &copied{place{slots[0]}, values[0]}
}

// returned accepts a return. Only the script's own may have further values, which are dropped.
func (c *compiler) returned(x *ast.ReturnStmt) statement {
	switch {
	case len(x.Exprs) == 0:
		return &returning{}
	case len(x.Exprs) > 1 && c.function > 0:
		return c.unknown()
	}
	s := &returning{c.expression(x.Exprs[0]), len(x.Exprs) > 1}
	for _, e := range x.Exprs[1:] {
		switch e.(type) {
		case *ast.NumberExpr, *ast.StringExpr, *ast.NilExpr, *ast.TrueExpr, *ast.FalseExpr:
		default:
			return c.unknown()
		}
	}
	return s
}

// slot returns a new one.
func (c *compiler) slot() int {
	c.program.slots++
	return c.program.slots - 1
}

func (c *compiler) place() place { return place{c.slot()} }

// variable declares a local variable and returns its slot.
func (c *compiler) variable(name string) int {
	slot := c.slot()
	c.scopes = append(c.scopes, variable{name: name, slot: slot})
	return slot
}

// assign accepts an assignment to local variables, in a function to its own: others may be operands of the
// expression that calls it.
func (c *compiler) assign(x *ast.AssignStmt) statement {
	values := c.expressions(x.Rhs)
	var slots []int
	for _, target := range x.Lhs {
		name, ok := target.(*ast.IdentExpr)
		if !ok {
			return c.unknown()
		}
		v := c.find(name.Value)
		if v == nil || v.body != nil || v.slot < c.function {
			return c.unknown()
		}
		slots = append(slots, v.slot)
	}
	return assigned(slots, values)
}

// find returns the local variable of a name, or nil.
func (c *compiler) find(name string) *variable {
	for i := len(c.scopes) - 1; i >= 0; i-- {
		if c.scopes[i].name == name {
			return &c.scopes[i]
		}
	}
	return nil
}

// isGlobal reports whether an expression is a global variable of that name, which scripts cannot change.
func (c *compiler) isGlobal(e ast.Expr, name string) bool {
	x, ok := e.(*ast.IdentExpr)
	return ok && x.Value == name && c.find(name) == nil
}

func (c *compiler) expressions(list []ast.Expr) []expression {
	out := make([]expression, 0, len(list))
	for _, e := range list {
		out = append(out, c.expression(e))
	}
	return out
}

func (c *compiler) expression(e ast.Expr) expression {
	if !c.node() {
		return odd{}
	}
	switch x := e.(type) {
	case *ast.NumberExpr:
		f, ok := vm.ParseNumber(x.Value)
		if !ok {
			return c.unknown()
		}
		return &literal{value: numberOf(f)}
	case *ast.NilExpr:
		return &literal{}
	case *ast.TrueExpr:
		return &literal{value: boolOf(true)}
	case *ast.FalseExpr:
		return &literal{value: boolOf(false)}
	case *ast.StringExpr:
		return &literal{value: textOf([]byte(x.Value))}
	case *ast.IdentExpr:
		if v := c.find(x.Value); v != nil && v.body == nil {
			return &local{v.slot}
		}
	case *ast.AttrGetExpr:
		return c.index(x)
	case *ast.FuncCallExpr:
		return c.call(x)
	case *ast.TableExpr:
		return c.table(x)
	case *ast.LogicalOpExpr:
		s := &either{a: c.expression(x.Lhs), isAnd: x.Operator == "and"}
		c.conditional++
		s.b = c.expression(x.Rhs)
		c.conditional--
		return s
	default:
		return c.operation(e)
	}
	return c.unknown()
}

func (c *compiler) operation(e ast.Expr) expression {
	switch x := e.(type) {
	case *ast.RelationalOpExpr:
		return c.comparison(x)
	case *ast.ArithmeticOpExpr:
		a, b := c.expression(x.Lhs), c.expression(x.Rhs)
		left, leftOK := constant(a)
		right, rightOK := constant(b)
		if leftOK && rightOK {
			return c.computed(arithmetic(x.Operator[0], left, right, false), true)
		}
		return &calculation{c.place(), a, b, x.Operator[0]}
	case *ast.StringConcatOpExpr:
		list := []expression{c.expression(x.Lhs)}
		rest := x.Rhs
		for next, ok := rest.(*ast.StringConcatOpExpr); ok && c.node(); next, ok = rest.(*ast.StringConcatOpExpr) {
			list, rest = append(list, c.expression(next.Lhs)), next.Rhs
		}
		return &joined{c.place(), append(list, c.expression(rest))}
	case *ast.UnaryMinusOpExpr:
		of := c.expression(x.Expr)
		if f, ok := constant(of); ok {
			_, isLiteral := x.Expr.(*ast.NumberExpr)
			return c.computed(-f, !isLiteral)
		}
		return &function{place: c.place(), of: of, call: minus}
	case *ast.UnaryNotOpExpr:
		return &function{place: c.place(), of: c.expression(x.Expr), call: not}
	case *ast.UnaryLenOpExpr:
		for _, name := range []string{"KEYS", "ARGV"} {
			if c.isGlobal(x.Expr, name) {
				return &count{c.place(), name == "KEYS"}
			}
		}
		return &function{place: c.place(), of: c.expression(x.Expr), call: length}
	}
	return c.unknown()
}

func (c *compiler) comparison(x *ast.RelationalOpExpr) expression {
	orders := map[string]order{"<": isLess, "<=": isLessOrEqual, ">": isMore, ">=": isMoreOrEqual} // else isEqual
	return &comparison{c.place(), c.expression(x.Lhs), c.expression(x.Rhs), orders[x.Operator], x.Operator == "~="}
}

// constant returns the number of a literal.
func constant(e expression) (f float64, ok bool) {
	if x, isLiteral := e.(*literal); isLiteral {
		f, ok = x.number, x.kind == isNumber
	}
	return f, ok
}

// computed returns a number that the interpreter's compiler computes, too.
func (c *compiler) computed(f float64, isComputed bool) expression {
	if isSigned(f) {
		return c.unknown()
	}
	return &literal{numberOf(f), isComputed}
}

// index accepts KEYS[1], ARGV[1] and elements of replies.
func (c *compiler) index(x *ast.AttrGetExpr) expression {
	keys, argv := c.isGlobal(x.Object, "KEYS"), c.isGlobal(x.Object, "ARGV")
	if !keys && !argv {
		return &indexed{c.place(), c.expression(x.Object), c.expression(x.Key)}
	}
	f, ok := constant(c.expression(x.Key))
	if !ok || f < 1 || f > 1<<20 || f != math.Trunc(f) {
		return c.unknown()
	}
	if keys {
		c.program.Keys = max(c.program.Keys, int(f))
	}
	return &nth{c.place(), int(f), keys}
}

// table accepts a constructor of an array, and a reply of one field.
func (c *compiler) table(x *ast.TableExpr) expression {
	if len(x.Fields) == 1 && x.Fields[0].Key != nil {
		name, _ := x.Fields[0].Key.(*ast.StringExpr)
		switch of := c.expression(x.Fields[0].Value); {
		case name == nil:
		case name.Value == "ok":
			return &function{place: c.place(), of: of, call: tagged(isStatus)}
		case name.Value == "err":
			return &function{place: c.place(), of: of, call: tagged(isError)}
		}
		return c.unknown()
	}
	list := make([]expression, 0, len(x.Fields))
	for _, f := range x.Fields {
		if f.Key != nil {
			return c.unknown()
		}
		list = append(list, c.expression(f.Value))
	}
	return &array{c.place(), list}
}
