package vm

import (
	"bytes"

	"github.com/yuin/gopher-lua/ast"
)

// When an error is raised, gopher-lua closes every variable shared by closures, also of functions that catch
// it and go on: then function and closures see different variables. So in scripts that can catch errors,
// captured and assigned variables are kept in tables of one element.

type variable struct {
	function           int // nesting of the function that declares it
	captured, assigned bool
}

// declaration is a name declared by a statement or a parameter list.
type declaration struct {
	node any
	name string
}

// resolver finds the variables shared by closures.
type resolver struct {
	visible  map[string][]*variable // innermost last
	names    []string               // visible names in order of declaration
	function int
	depth    int
	uses     map[*ast.IdentExpr]*variable
	declared map[declaration]*variable
}

// canCatch reports whether a script may catch errors, from its text, generously.
func canCatch(source []byte) bool {
	plain := bytes.ReplaceAll(source, []byte("redis.pcall"), nil)
	return bytes.Contains(plain, []byte("pcall")) || bytes.Contains(plain, []byte("_G"))
}

func resolve(chunk []ast.Stmt) *resolver {
	r := &resolver{visible: map[string][]*variable{}, uses: map[*ast.IdentExpr]*variable{}, declared: map[declaration]*variable{}}
	r.block(chunk)
	return r
}

func (r *resolver) isBoxed(x *ast.IdentExpr) bool { return r.uses[x].shared() }

// boxes returns a node's names that are in tables.
func (r *resolver) boxes(node any, names ...string) []string {
	var boxed []string
	for _, name := range names {
		if r.declared[declaration{node, name}].shared() {
			boxed = append(boxed, name)
		}
	}
	return boxed
}

func (v *variable) shared() bool { return v != nil && v.captured && v.assigned }

func (r *resolver) declare(node any, names ...string) {
	for _, name := range names {
		v := &variable{function: r.function}
		r.visible[name] = append(r.visible[name], v)
		r.names = append(r.names, name)
		r.declared[declaration{node, name}] = v
	}
}

func (r *resolver) use(x *ast.IdentExpr, assigned bool) {
	variables := r.visible[x.Value]
	if len(variables) == 0 {
		return
	}
	v := variables[len(variables)-1]
	r.uses[x] = v
	v.captured = v.captured || v.function != r.function
	v.assigned = v.assigned || assigned
}

func (r *resolver) block(stmts []ast.Stmt, then ...ast.Expr) {
	r.blockOf(nil, nil, stmts, then...)
}

// blockOf resolves a block that begins with node's names, and expressions that see its variables.
func (r *resolver) blockOf(node any, names []string, stmts []ast.Stmt, then ...ast.Expr) {
	r.depth++
	defer func() { r.depth-- }()
	if r.depth > maxSyntaxDepth {
		return // the rewriter refuses it
	}
	outer := len(r.names)
	r.declare(node, names...)
	for _, s := range stmts {
		r.stmt(s)
	}
	r.exprs(then)
	for _, name := range r.names[outer:] {
		r.visible[name] = r.visible[name][:len(r.visible[name])-1]
	}
	r.names = r.names[:outer]
}

func (r *resolver) stmt(s ast.Stmt) {
	switch x := s.(type) {
	case *ast.AssignStmt:
		r.exprs(x.Rhs)
		for _, l := range x.Lhs {
			r.assign(l)
		}
	case *ast.LocalAssignStmt:
		r.local(x)
	case *ast.FuncDefStmt:
		if x.Name.Func != nil {
			r.assign(x.Name.Func)
			r.closure(x.Func, x.Func.ParList.Names)
		} else {
			r.expr(x.Name.Receiver)
			r.closure(x.Func, append([]string{"self"}, x.Func.ParList.Names...))
		}
	case *ast.FuncCallStmt:
		r.expr(x.Expr)
	case *ast.DoBlockStmt:
		r.block(x.Stmts)
	case *ast.WhileStmt:
		r.expr(x.Condition)
		r.block(x.Stmts)
	case *ast.RepeatStmt:
		r.block(x.Stmts, x.Condition)
	case *ast.IfStmt:
		r.expr(x.Condition)
		r.block(x.Then)
		r.block(x.Else)
	case *ast.NumberForStmt:
		r.exprs([]ast.Expr{x.Init, x.Limit, x.Step})
		r.blockOf(x, []string{x.Name}, x.Stmts)
	case *ast.GenericForStmt:
		r.exprs(x.Exprs)
		r.blockOf(x, x.Names, x.Stmts)
	case *ast.ReturnStmt:
		r.exprs(x.Exprs)
	}
}

func (r *resolver) local(x *ast.LocalAssignStmt) {
	if len(x.Names) == 1 && len(x.Exprs) == 1 {
		if _, ok := x.Exprs[0].(*ast.FunctionExpr); ok { // it sees itself
			r.declare(x, x.Names...)
			r.exprs(x.Exprs)
			return
		}
	}
	r.exprs(x.Exprs)
	r.declare(x, x.Names...)
}

func (r *resolver) assign(target ast.Expr) {
	if name, ok := target.(*ast.IdentExpr); ok {
		r.use(name, true)
	} else {
		r.expr(target)
	}
}

func (r *resolver) closure(x *ast.FunctionExpr, parameters []string) {
	r.function++
	function := r.function
	r.blockOf(x.ParList, parameters, x.Stmts)
	r.function = function - 1
}

func (r *resolver) exprs(list []ast.Expr) {
	for _, e := range list {
		r.expr(e)
	}
}

func (r *resolver) expr(e ast.Expr) {
	r.depth++
	defer func() { r.depth-- }()
	if r.depth > maxSyntaxDepth {
		return
	}
	switch x := e.(type) {
	case *ast.IdentExpr:
		r.use(x, false)
	case *ast.FunctionExpr:
		r.closure(x, x.ParList.Names)
	case *ast.TableExpr:
		for _, f := range x.Fields {
			r.exprs([]ast.Expr{f.Key, f.Value})
		}
	case *ast.FuncCallExpr:
		r.exprs([]ast.Expr{x.Func, x.Receiver})
		r.exprs(x.Args)
	case *ast.AttrGetExpr:
		r.exprs([]ast.Expr{x.Object, x.Key})
	case *ast.LogicalOpExpr:
		r.exprs([]ast.Expr{x.Lhs, x.Rhs})
	case *ast.RelationalOpExpr:
		r.exprs([]ast.Expr{x.Lhs, x.Rhs})
	case *ast.ArithmeticOpExpr:
		r.exprs([]ast.Expr{x.Lhs, x.Rhs})
	case *ast.StringConcatOpExpr:
		r.exprs([]ast.Expr{x.Lhs, x.Rhs})
	case *ast.UnaryMinusOpExpr:
		r.expr(x.Expr)
	case *ast.UnaryNotOpExpr:
		r.expr(x.Expr)
	case *ast.UnaryLenOpExpr:
		r.expr(x.Expr)
	}
}
