package vm

import (
	"errors"
	"strconv"

	"github.com/yuin/gopher-lua/ast"
)

// Bounds of a script's shape: depth for the compiler's recursion, the others for its memory.
const (
	maxSyntaxDepth = 500
	maxFunctions   = 1000
	maxElements    = 25000 // gopher-lua miscounts the elements of longer table constructors
	maxOperands    = 40    // of one guarded call; Lua has 200 registers
)

// A rewriter is at one node of a syntax tree, which belongs to the goroutine that has parsed it.
type rewriter struct {
	uses      [GuardCount]bool
	depth     int
	functions int    // number of functions
	nesting   int    // of functions around this node
	lastParam string // of the enclosing function
	problem   error
	variables *survey // with the variables in tables
}

// Rewrite replaces operations that gopher-lua cannot bound, in a chunk parsed from source, by calls of
// guards. The result's first locals are its guards, taken from the chunk's arguments in the returned order.
// The given chunk must not be used again. A chunk that would compile too long is an error.
func Rewrite(chunk []ast.Stmt, source []byte) (guarded []ast.Stmt, guards []Guard, err error) {
	w := rewriter{variables: &survey{}}
	if canCatch(source) {
		w.variables = findShared(chunk)
	}
	guarded = w.block(chunk)
	if w.problem != nil {
		return nil, nil, w.problem
	}
	var names []string
	for g, used := range w.uses {
		if used {
			guards = append(guards, Guard(g))
			names = append(names, Guard(g).name())
		}
	}
	if len(guards) > 0 {
		locals := &ast.LocalAssignStmt{Names: names, Exprs: []ast.Expr{&ast.Comma3Expr{}}}
		guarded = append([]ast.Stmt{locals}, guarded...)
	}
	if err := checkEffort(guarded); err != nil {
		return nil, nil, err
	}
	return guarded, guards, nil
}

func (w *rewriter) fail(problem string) {
	if w.problem == nil {
		w.problem = errors.New(problem)
	}
}

func (w *rewriter) call(at ast.PositionHolder, g Guard, args ...ast.Expr) *ast.FuncCallExpr {
	w.uses[g] = true
	return placed(&ast.FuncCallExpr{Func: variableNamed(g.name(), at), Args: args, AdjustRet: true}, at)
}

// placed gives a new node the lines of another.
func placed[T ast.PositionHolder](n T, at ast.PositionHolder) T {
	n.SetLine(at.Line())
	n.SetLastLine(at.LastLine())
	return n
}

func variableNamed(name string, at ast.PositionHolder) *ast.IdentExpr {
	return placed(&ast.IdentExpr{Value: name}, at)
}

func number(n int, at ast.PositionHolder) ast.Expr {
	return placed(&ast.NumberExpr{Value: strconv.Itoa(n)}, at)
}

// one makes an expression a single value.
func one(e ast.Expr) ast.Expr {
	switch x := e.(type) {
	case *ast.FuncCallExpr:
		x.AdjustRet = true
	case *ast.Comma3Expr:
		x.AdjustRet = true
	}
	return e
}

func (w *rewriter) exprs(list []ast.Expr) []ast.Expr {
	for i := range list {
		list[i] = w.expr(list[i])
	}
	return list
}

func (w *rewriter) expr(e ast.Expr) ast.Expr {
	w.depth++
	defer func() { w.depth-- }()
	if w.depth > maxSyntaxDepth {
		w.fail("chunk has too many syntax levels")
		return e
	}
	switch x := e.(type) {
	case *ast.NumberExpr:
		w.number(x)
	case *ast.IdentExpr:
		if w.variables.uses[x].shared() {
			return unboxed(x)
		}
	case *ast.Comma3Expr:
		if w.nesting == 0 {
			call := w.call(x, nothingGuard)
			call.AdjustRet = x.AdjustRet
			return call
		}
	case *ast.StringConcatOpExpr:
		return w.concat(x)
	case *ast.TableExpr:
		return w.table(x)
	case *ast.FunctionExpr:
		return w.call(x, closureGuard, w.function(x))
	default:
		eachOperand(e, func(operand *ast.Expr) { *operand = w.expr(*operand) })
	}
	return e
}

// number spells a literal such that gopher-lua, which reads 010 as eight, reads it as Lua does.
func (w *rewriter) number(x *ast.NumberExpr) {
	f, ok := ParseNumber(x.Value)
	if !ok {
		w.fail("malformed number near '" + OneLine(x.Value) + "'")
		return
	}
	x.Value = strconv.FormatFloat(f, 'g', -1, 64)
}

// concat turns a chain into one call, right-associative like a .. b .. c.
func (w *rewriter) concat(x *ast.StringConcatOpExpr) ast.Expr {
	operands := []ast.Expr{one(w.expr(x.Lhs))}
	for len(operands) < maxOperands {
		next, ok := x.Rhs.(*ast.StringConcatOpExpr)
		if !ok {
			break
		}
		x = next
		operands = append(operands, one(w.expr(x.Lhs)))
	}
	return w.call(x, concatGuard, append(operands, one(w.expr(x.Rhs)))...)
}

// table turns a constructor into a call. From the first key that is no name on, fields become arguments,
// evaluated in order.
func (w *rewriter) table(x *ast.TableExpr) ast.Expr {
	if len(x.Fields) == 0 {
		return w.call(x, newTableGuard)
	}
	var pairs []ast.Expr
	var kept []*ast.Field
	var rest ast.Expr // the last element, perhaps of several values
	named, elements := 0, 0
	for i, f := range x.Fields {
		last := i == len(x.Fields)-1
		w.field(x, f, last)
		_, constant := f.Key.(*ast.StringExpr)
		if f.Key == nil {
			elements++
		} else if constant {
			named++
		}
		switch {
		case len(pairs) == 0 && (f.Key == nil || constant):
			kept = append(kept, f)
		case f.Key != nil:
			pairs = append(pairs, one(f.Key), one(f.Value))
		case last:
			rest = f.Value
		default:
			pairs = append(pairs, number(elements, x), f.Value)
		}
	}
	if elements > maxElements {
		w.fail("a table constructor has more than " + strconv.Itoa(maxElements) + " elements")
	}
	x.Fields = kept
	result := ast.Expr(x)
	for first := true; first || len(pairs) > 0; first = false {
		n := min(len(pairs), maxOperands)
		args := append([]ast.Expr{number(named, x), result, number(n, x), number(elements, x)}, pairs[:n]...)
		pairs, named = pairs[n:], 0
		if len(pairs) == 0 && rest != nil {
			args = append(args, rest)
		}
		result = w.call(x, fillTableGuard, args...)
	}
	return result
}

// field rewrites a constructor's field. Only the last may have several values.
func (w *rewriter) field(at *ast.TableExpr, f *ast.Field, last bool) {
	if f.Key != nil {
		f.Key = w.expr(f.Key)
	}
	more, isVararg := f.Value.(*ast.Comma3Expr)
	if isVararg && f.Key == nil && last && w.nesting > 0 {
		spread := w.call(at, varargGuard, &ast.Comma3Expr{})
		spread.AdjustRet = more.AdjustRet
		f.Value = spread
		return
	}
	f.Value = w.expr(f.Value)
	if !last {
		f.Value = one(f.Value) // later fields may be taken out
	}
}
