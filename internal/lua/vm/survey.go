package vm

import (
	"bytes"
	"slices"

	"github.com/yuin/gopher-lua/ast"
)

// When an error is raised, gopher-lua closes every variable shared by closures, also of functions that catch
// it and go on: then function and closures see different variables. So in scripts that can catch errors,
// captured and assigned variables are kept in tables of one element.

// canCatch reports whether a script may catch errors, from its text, generously.
func canCatch(source []byte) bool {
	plain := bytes.ReplaceAll(source, []byte("redis.pcall"), nil)
	return bytes.Contains(plain, []byte("pcall")) || bytes.Contains(plain, []byte("_G"))
}

// A survey walks a syntax tree with the variables that are visible at each node. It counts the steps of
// compilation, or finds the variables shared by closures before they are rewritten.
type survey struct {
	steps [stepKinds]int
	// Variables by their uses and declarations; nil in a count.
	uses         map[*ast.IdentExpr]*variable
	declarations map[declaration]*variable

	f        *surveyedFunction
	visible  map[string]*variable // of all enclosing functions
	declared []*variable          // the visible and the shadowed ones, in order
	blocks   int
	depth    int
}

type variable struct {
	name               string
	shadowed           *variable         // of the same name
	function           *surveyedFunction // that declares it
	before             int               // number of variables visible before
	block              int
	captured, assigned bool
}

// shared reports whether the variable has to be in a table.
func (v *variable) shared() bool { return v != nil && v.captured && v.assigned }

// declaration is a name declared by a statement or a parameter list.
type declaration struct {
	node any
	name string
}

// A surveyedFunction is the one around the node.
type surveyedFunction struct {
	outer     *surveyedFunction
	constants map[constant]int // their places
	upvalues  map[string]struct{}
	gotos     int // so far
}

type constant struct {
	number bool
	text   string
}

// countSteps returns the steps of each kind.
func countSteps(chunk []ast.Stmt) [stepKinds]int {
	s := survey{visible: map[string]*variable{}}
	s.function(nil, nil, chunk)
	s.steps[variables] /= namesPerStep
	return s.steps
}

// findShared finds the variables shared by closures.
func findShared(chunk []ast.Stmt) *survey {
	s := &survey{
		visible:      map[string]*variable{},
		uses:         map[*ast.IdentExpr]*variable{},
		declarations: map[declaration]*variable{},
	}
	s.function(nil, nil, chunk)
	return s
}

// enter reports whether a node may be entered: the rewriter refuses deep trees before steps are counted.
func (s *survey) enter() bool {
	s.depth++
	return s.uses == nil || s.depth <= maxSyntaxDepth
}

// function surveys a function; a node declares its parameters.
func (s *survey) function(node any, params []string, stmts []ast.Stmt) {
	s.steps[functions] += functionSteps
	s.f = &surveyedFunction{outer: s.f, constants: map[constant]int{}, upvalues: map[string]struct{}{}}
	s.block(node, params, stmts)
	inner := s.f
	s.f = inner.outer
	if s.f == nil {
		return
	}
	for name := range inner.upvalues {
		s.search(name)
	}
}

// block surveys a block that begins with a node's names, and expressions that see its variables.
func (s *survey) block(node any, names []string, stmts []ast.Stmt, then ...ast.Expr) {
	defer func() { s.depth-- }()
	if !s.enter() {
		return
	}
	s.blocks++
	s.steps[statements] += blockSteps
	firstName, firstGoto := len(s.declared), s.f.gotos
	s.declare(node, names...)
	run := 0 // of labels, which the compiler skips to find the next statement
	for _, stmt := range stmts {
		if _, ok := stmt.(*ast.LabelStmt); ok {
			run++
			s.steps[labels] += run + s.f.gotos - firstGoto
		} else {
			run = 0
		}
		s.stmt(stmt)
	}
	s.exprs(then...)
	s.steps[labels] += s.f.gotos - firstGoto // an upper bound of the unresolved ones
	for _, v := range slices.Backward(s.declared[firstName:]) {
		s.visible[v.name] = v.shadowed
	}
	s.declared = s.declared[:firstName]
	s.blocks--
}

func (s *survey) declare(node any, names ...string) {
	for _, name := range names {
		v := &variable{name: name, shadowed: s.visible[name], function: s.f, before: len(s.declared), block: s.blocks}
		s.visible[name] = v
		s.declared = append(s.declared, v)
		if s.declarations != nil {
			s.declarations[declaration{node, name}] = v
		}
	}
}

// search counts the two lookups of a variable, from the innermost block outwards. It returns nil for a global
// one.
func (s *survey) search(name string) *variable {
	v := s.visible[name]
	if v == nil {
		s.steps[variables] += 2 * (len(s.declared) + s.blocks)
		return nil
	}
	s.steps[variables] += 2 * (len(s.declared) - v.before + s.blocks - v.block)
	if v.function != s.f {
		s.steps[variables] += len(s.f.upvalues)
		s.f.upvalues[name] = struct{}{}
	}
	return v
}

// use surveys a variable that is read or assigned.
func (s *survey) use(x *ast.IdentExpr, assigned bool) {
	v := s.search(x.Value)
	if v == nil {
		s.constant(constant{text: x.Value})
	} else if s.uses != nil {
		s.uses[x] = v
		v.captured = v.captured || v.function != s.f
		v.assigned = v.assigned || assigned
	}
}

// constant counts the lookup or the addition of a constant.
func (s *survey) constant(k constant) {
	place, ok := s.f.constants[k]
	if !ok {
		place = len(s.f.constants)
		s.f.constants[k] = place
	}
	s.steps[constants] += place + 1
}

func (s *survey) stmt(stmt ast.Stmt) {
	s.steps[statements] += nodeSteps
	switch x := stmt.(type) {
	case *ast.AssignStmt:
		for _, l := range x.Lhs {
			if name, ok := l.(*ast.IdentExpr); ok {
				s.use(name, true)
			}
		}
		s.exprs(x.Rhs...)
		s.exprs(x.Lhs...)
	case *ast.LocalAssignStmt:
		s.local(x)
	case *ast.FuncDefStmt: // until it is rewritten
		s.define(x)
	case *ast.FuncCallStmt:
		s.expr(x.Expr)
	case *ast.DoBlockStmt:
		s.block(nil, nil, x.Stmts)
	case *ast.WhileStmt:
		s.expr(x.Condition)
		s.block(nil, nil, x.Stmts)
	case *ast.RepeatStmt:
		s.block(nil, nil, x.Stmts, x.Condition)
	case *ast.IfStmt:
		s.expr(x.Condition)
		s.block(nil, nil, x.Then)
		s.block(nil, nil, x.Else)
	case *ast.NumberForStmt:
		s.exprs(x.Init, x.Limit, x.Step)
		s.block(x, []string{"(for index)", "(for limit)", "(for step)", x.Name}, x.Stmts)
	case *ast.GenericForStmt:
		s.exprs(x.Exprs...)
		s.block(x, append([]string{"(for generator)", "(for state)", "(for control)"}, x.Names...), x.Stmts)
	case *ast.ReturnStmt:
		s.exprs(x.Exprs...)
	case *ast.GotoStmt:
		s.f.gotos++
		s.steps[labels] += s.blocks
	case *ast.LabelStmt:
		s.steps[labels] += s.blocks
	}
}

// local declares variables. A single function sees itself.
func (s *survey) local(x *ast.LocalAssignStmt) {
	if LocalFunction(x) != nil {
		s.declare(x, x.Names...)
		s.exprs(x.Exprs...)
		return
	}
	s.exprs(x.Exprs...)
	s.declare(x, x.Names...)
}

// LocalFunction returns the single function of a declaration, else nil.
func LocalFunction(x *ast.LocalAssignStmt) *ast.FunctionExpr {
	if len(x.Names) != 1 || len(x.Exprs) != 1 {
		return nil
	}
	f, _ := x.Exprs[0].(*ast.FunctionExpr)
	return f
}

func (s *survey) define(x *ast.FuncDefStmt) {
	params := x.Func.ParList.Names
	if name, ok := x.Name.Func.(*ast.IdentExpr); ok {
		s.use(name, true)
	} else {
		s.exprs(x.Name.Func, x.Name.Receiver)
	}
	if x.Name.Func == nil {
		params = append([]string{"self"}, params...)
	}
	s.function(x.Func.ParList, params, x.Func.Stmts)
}

func (s *survey) exprs(list ...ast.Expr) {
	for _, e := range list {
		s.expr(e)
	}
}

// expr surveys an expression, and returns the number of operands examined for folding.
func (s *survey) expr(e ast.Expr) (folded int) {
	defer func() { s.depth-- }()
	if !s.enter() {
		return 0
	}
	s.steps[statements] += nodeSteps
	switch x := e.(type) {
	case *ast.NumberExpr:
		s.constant(constant{true, x.Value})
		return 1
	case *ast.StringExpr:
		s.constant(constant{text: x.Value})
	case *ast.IdentExpr:
		s.use(x, false)
	case *ast.FunctionExpr:
		s.function(x.ParList, x.ParList.Names, x.Stmts)
	case *ast.FuncCallExpr:
		if x.Func == nil {
			s.constant(constant{text: x.Method})
		}
	}
	eachOperand(e, func(operand *ast.Expr) { folded += s.expr(*operand) })
	switch e.(type) {
	case *ast.ArithmeticOpExpr, *ast.UnaryMinusOpExpr: // the result may be another constant
		folded++
		s.steps[arithmetic] += folded * foldSteps
		s.steps[constants] += len(s.f.constants)
		return folded
	}
	return 0
}

// eachOperand visits an expression's operands in the order of evaluation; some are nil.
func eachOperand(e ast.Expr, visit func(*ast.Expr)) {
	switch x := e.(type) {
	case *ast.AttrGetExpr:
		visit(&x.Object)
		visit(&x.Key)
	case *ast.TableExpr:
		for _, f := range x.Fields {
			visit(&f.Key)
			visit(&f.Value)
		}
	case *ast.FuncCallExpr:
		visit(&x.Func)
		visit(&x.Receiver)
		for i := range x.Args {
			visit(&x.Args[i])
		}
	case *ast.LogicalOpExpr:
		visit(&x.Lhs)
		visit(&x.Rhs)
	case *ast.RelationalOpExpr:
		visit(&x.Lhs)
		visit(&x.Rhs)
	case *ast.ArithmeticOpExpr:
		visit(&x.Lhs)
		visit(&x.Rhs)
	case *ast.StringConcatOpExpr:
		visit(&x.Lhs)
		visit(&x.Rhs)
	case *ast.UnaryMinusOpExpr:
		visit(&x.Expr)
	case *ast.UnaryNotOpExpr:
		visit(&x.Expr)
	case *ast.UnaryLenOpExpr:
		visit(&x.Expr)
	}
}
