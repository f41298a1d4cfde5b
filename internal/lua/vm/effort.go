package vm

import (
	"fmt"

	"github.com/yuin/gopher-lua/ast"
)

// gopher-lua's compiler searches lists: a function's constants, visible names, jumps to a label. A short
// source could take seconds, and a compilation cannot be interrupted.

// maxCompileSteps bounds the compilation of a chunk: about 5 ms. A step, some 5 ns, is a comparison of
// constants, so a function may use 1,400 different constants once.
const maxCompileSteps = 1_000_000

// Other costs of the compiler in steps.
const (
	nodeSteps     = 8   // a statement or an expression
	blockSteps    = 60  // a block with its map of labels
	functionSteps = 700 // a function, which reserves 12 KiB
	foldSteps     = 3   // an operand examined for constant folding
	namesPerStep  = 5   // comparisons of names per step
)

// stepKind is what takes steps.
type stepKind int

const (
	statements stepKind = iota
	functions
	constants
	variables
	arithmetic
	labels
	stepKinds
)

func (k stepKind) String() string {
	return [stepKinds]string{"statements", "functions", "different constants", "local variables", "nested arithmetic", "labels"}[k]
}

// CheckEffort returns an error for a rewritten chunk that would compile too long.
func CheckEffort(chunk []ast.Stmt) error {
	steps := countSteps(chunk)
	total, most := 0, stepKind(0)
	for k, n := range steps {
		total += n
		if n > steps[most] {
			most = stepKind(k)
		}
	}
	if total <= maxCompileSteps {
		return nil
	}
	return fmt.Errorf("script takes more than %d steps to compile, most of them for %s; make it shorter", maxCompileSteps, most)
}

// countSteps returns the steps of each kind.
func countSteps(chunk []ast.Stmt) [stepKinds]int {
	c := stepCounter{visible: map[string][]visibleLocal{}}
	c.function(nil, chunk)
	c.steps[variables] /= namesPerStep
	return c.steps
}

type stepCounter struct {
	steps [stepKinds]int
	f     *compiledFunction
	// Visible variables of all enclosing functions, and their blocks.
	visible  map[string][]visibleLocal
	declared []string
	blocks   int
}

// A visibleLocal is a variable that is visible.
type visibleLocal struct {
	f     *compiledFunction
	name  int // number of variables visible before
	block int
}

// A compiledFunction is the one around the node.
type compiledFunction struct {
	outer     *compiledFunction
	constants map[compiledConstant]int // their places
	upvalues  map[string]struct{}
	gotos     int // so far
}

type compiledConstant struct {
	number bool
	text   string
}

func (c *stepCounter) function(params []string, stmts []ast.Stmt) {
	c.steps[functions] += functionSteps
	c.f = &compiledFunction{outer: c.f, constants: map[compiledConstant]int{}, upvalues: map[string]struct{}{}}
	c.block(params, stmts)
	inner := c.f
	c.f = inner.outer
	if c.f == nil {
		return
	}
	for name := range inner.upvalues {
		c.search(name)
	}
}

// block counts a block that begins with names, and expressions that see its variables.
func (c *stepCounter) block(names []string, stmts []ast.Stmt, then ...ast.Expr) {
	c.blocks++
	c.steps[statements] += blockSteps
	firstName, firstGoto := len(c.declared), c.f.gotos
	c.declare(names...)
	run := 0 // of labels, which the compiler skips to find the next statement
	for _, s := range stmts {
		if _, ok := s.(*ast.LabelStmt); ok {
			run++
			c.steps[labels] += run + c.f.gotos - firstGoto
		} else {
			run = 0
		}
		c.stmt(s)
	}
	c.exprs(then)
	c.steps[labels] += c.f.gotos - firstGoto // an upper bound of the unresolved ones
	for _, name := range c.declared[firstName:] {
		stack := c.visible[name]
		c.visible[name] = stack[:len(stack)-1]
	}
	c.declared = c.declared[:firstName]
	c.blocks--
}

func (c *stepCounter) declare(names ...string) {
	for _, name := range names {
		c.visible[name] = append(c.visible[name], visibleLocal{c.f, len(c.declared), c.blocks})
		c.declared = append(c.declared, name)
	}
}

// search counts the two lookups of a variable, from the innermost block outwards, and reports whether it is a
// local.
func (c *stepCounter) search(name string) bool {
	stack := c.visible[name]
	if len(stack) == 0 {
		c.steps[variables] += 2 * (len(c.declared) + c.blocks)
		return false
	}
	v := stack[len(stack)-1]
	c.steps[variables] += 2 * (len(c.declared) - v.name + c.blocks - v.block)
	if v.f != c.f {
		c.steps[variables] += len(c.f.upvalues)
		c.f.upvalues[name] = struct{}{}
	}
	return true
}

func (c *stepCounter) name(name string) {
	if !c.search(name) {
		c.constant(compiledConstant{text: name})
	}
}

// constant counts the lookup or the addition of a constant.
func (c *stepCounter) constant(k compiledConstant) {
	place, ok := c.f.constants[k]
	if !ok {
		place = len(c.f.constants)
		c.f.constants[k] = place
	}
	c.steps[constants] += place + 1
}

func (c *stepCounter) exprs(list []ast.Expr) {
	for _, e := range list {
		c.expr(e)
	}
}

func (c *stepCounter) stmt(s ast.Stmt) {
	c.steps[statements] += nodeSteps
	switch x := s.(type) {
	case *ast.AssignStmt:
		for _, l := range x.Lhs {
			if name, ok := l.(*ast.IdentExpr); ok {
				c.name(name.Value)
			}
		}
		c.exprs(x.Rhs)
		c.exprs(x.Lhs)
	case *ast.LocalAssignStmt:
		c.exprs(x.Exprs)
		c.declare(x.Names...)
	case *ast.FuncCallStmt:
		c.expr(x.Expr)
	case *ast.DoBlockStmt:
		c.block(nil, x.Stmts)
	case *ast.WhileStmt:
		c.expr(x.Condition)
		c.block(nil, x.Stmts)
	case *ast.RepeatStmt:
		c.block(nil, x.Stmts, x.Condition)
	case *ast.IfStmt:
		c.expr(x.Condition)
		c.block(nil, x.Then)
		c.block(nil, x.Else)
	case *ast.NumberForStmt:
		c.exprs([]ast.Expr{x.Init, x.Limit, x.Step})
		c.block([]string{"(for index)", "(for limit)", "(for step)", x.Name}, x.Stmts)
	case *ast.GenericForStmt:
		c.exprs(x.Exprs)
		c.block(append([]string{"(for generator)", "(for state)", "(for control)"}, x.Names...), x.Stmts)
	case *ast.ReturnStmt:
		c.exprs(x.Exprs)
	case *ast.GotoStmt:
		c.f.gotos++
		c.steps[labels] += c.blocks
	case *ast.LabelStmt:
		c.steps[labels] += c.blocks
	}
}

// expr counts an expression, and returns the number of operands examined for folding.
func (c *stepCounter) expr(e ast.Expr) (operands int) {
	c.steps[statements] += nodeSteps
	switch x := e.(type) {
	case *ast.NumberExpr:
		c.constant(compiledConstant{true, x.Value})
		return 1
	case *ast.StringExpr:
		c.constant(compiledConstant{text: x.Value})
	case *ast.IdentExpr:
		c.name(x.Value)
	case *ast.FunctionExpr:
		c.function(x.ParList.Names, x.Stmts)
	case *ast.TableExpr:
		for _, f := range x.Fields {
			c.exprs([]ast.Expr{f.Key, f.Value})
		}
	case *ast.FuncCallExpr:
		if x.Func == nil {
			c.constant(compiledConstant{text: x.Method})
		}
		c.exprs([]ast.Expr{x.Func, x.Receiver})
		c.exprs(x.Args)
	case *ast.AttrGetExpr:
		c.exprs([]ast.Expr{x.Object, x.Key})
	default:
		return c.operation(e)
	}
	return 0
}

func (c *stepCounter) operation(e ast.Expr) (operands int) {
	switch x := e.(type) {
	case *ast.ArithmeticOpExpr:
		return c.folded(1 + c.expr(x.Lhs) + c.expr(x.Rhs))
	case *ast.UnaryMinusOpExpr:
		return c.folded(1 + c.expr(x.Expr))
	case *ast.LogicalOpExpr:
		c.exprs([]ast.Expr{x.Lhs, x.Rhs})
	case *ast.RelationalOpExpr:
		c.exprs([]ast.Expr{x.Lhs, x.Rhs})
	case *ast.StringConcatOpExpr:
		c.exprs([]ast.Expr{x.Lhs, x.Rhs})
	case *ast.UnaryNotOpExpr:
		c.expr(x.Expr)
	case *ast.UnaryLenOpExpr:
		c.expr(x.Expr)
	}
	return 0
}

// folded counts an operation with examined operands, whose result may be another constant.
func (c *stepCounter) folded(operands int) int {
	c.steps[arithmetic] += operands * foldSteps
	c.steps[constants] += len(c.f.constants)
	return operands
}
