package vm

import (
	"strconv"

	"github.com/yuin/gopher-lua/ast"
)

func (w *rewriter) block(stmts []ast.Stmt) []ast.Stmt {
	w.depth++
	defer func() { w.depth-- }()
	if w.depth > maxSyntaxDepth {
		w.fail("chunk has too many syntax levels")
		return stmts
	}
	out := make([]ast.Stmt, 0, len(stmts))
	for _, s := range stmts {
		out = append(out, w.stmt(s)...)
	}
	return out
}

func (w *rewriter) stmt(s ast.Stmt) []ast.Stmt {
	switch x := s.(type) {
	case *ast.AssignStmt:
		return w.assign(x)
	case *ast.LocalAssignStmt:
		return w.local(x)
	case *ast.FuncDefStmt:
		return w.define(x)
	case *ast.FuncCallStmt:
		x.Expr = w.expr(x.Expr)
	case *ast.DoBlockStmt:
		x.Stmts = w.block(x.Stmts)
	case *ast.WhileStmt:
		x.Condition, x.Stmts = w.expr(x.Condition), w.block(x.Stmts)
	case *ast.RepeatStmt:
		x.Condition, x.Stmts = w.expr(x.Condition), w.block(x.Stmts)
	case *ast.IfStmt:
		x.Condition, x.Then, x.Else = w.expr(x.Condition), w.block(x.Then), w.block(x.Else)
	case *ast.NumberForStmt:
		x.Init, x.Limit, x.Step = w.bound(x.Init), w.bound(x.Limit), w.bound(x.Step)
		x.Stmts = append(w.boxes(x, x, x.Name), w.block(x.Stmts)...)
	case *ast.GenericForStmt:
		x.Exprs = w.exprs(x.Exprs)
		x.Stmts = append(w.boxes(x, x, x.Names...), w.block(x.Stmts)...)
	case *ast.ReturnStmt:
		x.Exprs = w.exprs(x.Exprs)
	}
	return []ast.Stmt{s}
}

func (w *rewriter) callStmt(at ast.PositionHolder, g Guard, args ...ast.Expr) ast.Stmt {
	return placed(&ast.FuncCallStmt{Expr: w.call(at, g, args...)}, at)
}

// local leaves a single function unchanged, by which gopher-lua recognizes a recursive local function.
func (w *rewriter) local(x *ast.LocalAssignStmt) []ast.Stmt {
	if f := LocalFunction(x); f != nil {
		w.function(f)
		return append([]ast.Stmt{x, w.callStmt(x, closureGuard)}, w.boxes(x, x, x.Names...)...)
	}
	x.Exprs = w.exprs(x.Exprs)
	return append([]ast.Stmt{x}, w.boxes(x, x, x.Names...)...)
}

func (w *rewriter) define(x *ast.FuncDefStmt) []ast.Stmt {
	target := x.Name.Func
	if target == nil { // function receiver:method() has itself as a parameter
		method := placed(&ast.StringExpr{Value: x.Name.Method}, x)
		target = placed(&ast.AttrGetExpr{Object: x.Name.Receiver, Key: method}, x)
		x.Func.ParList.Names = append([]string{"self"}, x.Func.ParList.Names...)
	}
	return w.assign(placed(&ast.AssignStmt{Lhs: []ast.Expr{target}, Rhs: []ast.Expr{x.Func}}, x))
}

// assign replaces stores into tables. All operands of a multiple assignment are evaluated before the first
// store; gopher-lua stores some early: of several values, of "and" and "or", and into a function's last
// parameter.
func (w *rewriter) assign(x *ast.AssignStmt) []ast.Stmt {
	_, logical := x.Rhs[0].(*ast.LogicalOpExpr)
	plain := len(x.Lhs) == 1 && !logical
	for i, l := range x.Lhs {
		if name, ok := l.(*ast.IdentExpr); ok && w.variables.uses[name].shared() {
			l = unboxed(name)
			x.Lhs[i] = l
		}
		if name, ok := l.(*ast.IdentExpr); !ok || name.Value == w.lastParam {
			plain = false
		}
	}
	if plain {
		x.Rhs = w.exprs(x.Rhs)
		return []ast.Stmt{x}
	}
	if attr, ok := x.Lhs[0].(*ast.AttrGetExpr); ok && len(x.Lhs) == 1 && len(x.Rhs) == 1 {
		return []ast.Stmt{w.callStmt(attr, setIndexGuard, one(w.expr(attr.Object)), one(w.expr(attr.Key)), one(w.expr(x.Rhs[0])))}
	}
	return []ast.Stmt{w.assignMany(x)}
}

func (w *rewriter) assignMany(x *ast.AssignStmt) ast.Stmt {
	evaluate := placed(&ast.LocalAssignStmt{}, x)
	temp := func(kind string, i int) *ast.IdentExpr { return variableNamed("("+kind+strconv.Itoa(i)+")", x) }
	declare := func(name *ast.IdentExpr) { evaluate.Names = append(evaluate.Names, name.Value) }
	for i, l := range x.Lhs {
		if attr, ok := l.(*ast.AttrGetExpr); ok {
			declare(temp("object", i))
			declare(temp("key", i))
			evaluate.Exprs = append(evaluate.Exprs, one(w.expr(attr.Object)), one(w.expr(attr.Key)))
		}
	}
	for i := range x.Lhs {
		declare(temp("value", i))
	}
	evaluate.Exprs = append(evaluate.Exprs, w.exprs(x.Rhs)...)
	block := placed(&ast.DoBlockStmt{Stmts: []ast.Stmt{evaluate}}, x)
	for i := len(x.Lhs) - 1; i >= 0; i-- {
		if _, ok := x.Lhs[i].(*ast.AttrGetExpr); ok {
			block.Stmts = append(block.Stmts, w.callStmt(x, setIndexGuard, temp("object", i), temp("key", i), temp("value", i)))
			continue
		}
		block.Stmts = append(block.Stmts, placed(&ast.AssignStmt{Lhs: x.Lhs[i : i+1], Rhs: []ast.Expr{temp("value", i)}}, x))
	}
	return block
}

// bound returns a loop's number: gopher-lua accepts no strings there.
func (w *rewriter) bound(e ast.Expr) ast.Expr {
	if e == nil {
		return nil
	}
	e = w.expr(e)
	if _, ok := e.(*ast.NumberExpr); ok {
		return e
	}
	return w.call(e, loopBoundGuard, one(e))
}

func (w *rewriter) function(x *ast.FunctionExpr) *ast.FunctionExpr {
	w.functions++
	if w.functions > maxFunctions {
		w.fail("chunk has more than " + strconv.Itoa(maxFunctions) + " functions")
		return x
	}
	outer := w.lastParam
	w.nesting++
	w.lastParam = ""
	if n := len(x.ParList.Names); n > 0 {
		w.lastParam = x.ParList.Names[n-1]
	}
	x.Stmts = w.block(x.Stmts)
	w.nesting--
	w.lastParam = outer
	x.Stmts = append(w.boxes(x, x.ParList, x.ParList.Names...), x.Stmts...)
	if x.ParList.HasVargs {
		x.Stmts = append([]ast.Stmt{w.callStmt(x, varargGuard, &ast.Comma3Expr{})}, x.Stmts...)
	}
	return x
}

// unboxed returns the element of a variable's table.
func unboxed(x *ast.IdentExpr) ast.Expr {
	return placed(&ast.AttrGetExpr{Object: variableNamed(x.Value, x), Key: number(1, x)}, x)
}

// boxes returns statements that put a node's variables into tables.
func (w *rewriter) boxes(at ast.PositionHolder, node any, names ...string) []ast.Stmt {
	var stmts []ast.Stmt
	for _, name := range names {
		if !w.variables.declarations[declaration{node, name}].shared() {
			continue
		}
		table := placed(&ast.TableExpr{Fields: []*ast.Field{{Value: variableNamed(name, at)}}}, at)
		target := variableNamed(name, at)
		stmts = append(stmts, w.assignMany(placed(&ast.AssignStmt{Lhs: []ast.Expr{target}, Rhs: []ast.Expr{table}}, at)))
	}
	return stmts
}
