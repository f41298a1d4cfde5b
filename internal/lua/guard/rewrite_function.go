package guard

import (
	"strconv"

	"github.com/yuin/gopher-lua/ast"
)

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
		check := &ast.FuncCallStmt{Expr: w.call(x, Vararg, &ast.Comma3Expr{})}
		place(check, x)
		x.Stmts = append([]ast.Stmt{check}, x.Stmts...)
	}
	return x
}

func (w *rewriter) isBoxed(x *ast.IdentExpr) bool {
	return w.variables != nil && w.variables.isBoxed(x)
}

// unbox returns the element of a variable's table.
func (w *rewriter) unbox(x *ast.IdentExpr) ast.Expr {
	table, one := &ast.IdentExpr{Value: x.Value}, &ast.NumberExpr{Value: "1"}
	attr := &ast.AttrGetExpr{Object: table, Key: one}
	place(table, x)
	place(one, x)
	place(attr, x)
	return attr
}

// boxes returns statements that put a node's variables into tables.
func (w *rewriter) boxes(at ast.PositionHolder, node any, names ...string) []ast.Stmt {
	if w.variables == nil {
		return nil
	}
	var stmts []ast.Stmt
	for _, name := range w.variables.boxes(node, names...) {
		target, value := &ast.IdentExpr{Value: name}, &ast.IdentExpr{Value: name}
		table := &ast.TableExpr{Fields: []*ast.Field{{Value: value}}}
		place(target, at)
		place(value, at)
		place(table, at)
		store := &ast.AssignStmt{Lhs: []ast.Expr{target}, Rhs: []ast.Expr{table}}
		place(store, at)
		stmts = append(stmts, w.assignMany(store))
	}
	return stmts
}
