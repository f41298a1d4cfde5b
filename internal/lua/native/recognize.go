package native

import (
	"strings"

	"github.com/yuin/gopher-lua/ast"

	"cellserver/internal/lua/vm"
)

// recognizer follows plain local assignments up to a chunk's return.
type recognizer struct {
	commands Commands
	values   map[string]argument // locals that are arguments
	call     *Call               // once found
	result   string              // the local with its reply
}

// Recognize returns the call that a parsed script consists of, or nil.
func (c Commands) Recognize(chunk []ast.Stmt) *Call {
	r := recognizer{commands: c, values: map[string]argument{}}
	for i, s := range chunk {
		switch x := s.(type) {
		case *ast.LocalAssignStmt:
			if !r.local(x) {
				return nil
			}
		case *ast.ReturnStmt:
			if i != len(chunk)-1 || len(x.Exprs) != 1 {
				return nil
			}
			return r.returned(x.Exprs[0])
		default:
			return nil
		}
	}
	return nil
}

// local accepts local x = KEYS[1], or the call. A local must not hide a meaningful name.
func (r *recognizer) local(x *ast.LocalAssignStmt) bool {
	if len(x.Names) != len(x.Exprs) || r.call != nil {
		return false
	}
	values := make([]argument, len(x.Names))
	for i, name := range x.Names {
		switch name {
		case "redis", "KEYS", "ARGV", "tonumber", "tostring", "unpack":
			return false
		}
		if call, ok := r.command(x.Exprs[i]); ok && len(x.Names) == 1 {
			r.call, r.result = call, name
			return true
		}
		var ok bool
		if values[i], ok = r.argument(x.Exprs[i]); !ok {
			return false
		}
	}
	for i, name := range x.Names {
		r.values[name] = values[i]
	}
	return true
}

func (r *recognizer) returned(e ast.Expr) *Call {
	index := 0
	if attr, ok := e.(*ast.AttrGetExpr); ok {
		f, isNumber := numberLiteral(attr.Key)
		if !isNumber || f != float64(int(f)) || f < 1 || f > 1000 {
			return nil
		}
		index, e = int(f), attr.Object
	}
	call := r.call
	if call == nil {
		call, _ = r.command(e)
	} else if name, ok := e.(*ast.IdentExpr); !ok || name.Value != r.result {
		return nil
	}
	if call != nil {
		call.index = index
	}
	return call
}

// maxArguments exceeds the arguments of any valid call.
const maxArguments = 20

// command accepts redis.call('cl.throttle', ...) and its like.
func (r *recognizer) command(e ast.Expr) (*Call, bool) {
	x, ok := e.(*ast.FuncCallExpr)
	if !ok || x.Func == nil || len(x.Args) == 0 || len(x.Args) > maxArguments {
		return nil, false
	}
	function, ok := x.Func.(*ast.AttrGetExpr)
	if !ok || !isName(function.Object, "redis") {
		return nil, false
	}
	method, ok := function.Key.(*ast.StringExpr)
	if !ok || method.Value != "call" && method.Value != "pcall" {
		return nil, false
	}
	call := &Call{}
	for i, a := range x.Args {
		value, ok := r.argument(a)
		if !ok && i == len(x.Args)-1 {
			value, ok = allArgv(a)
		}
		if !ok {
			return nil, false
		}
		call.args = append(call.args, value)
	}
	if !r.commands.have(call.args) {
		return nil, false
	}
	return call, true
}

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

func (r *recognizer) argument(e ast.Expr) (argument, bool) {
	switch x := e.(type) {
	case *ast.StringExpr:
		return argument{literal: []byte(x.Value)}, true
	case *ast.NumberExpr, *ast.UnaryMinusOpExpr:
		f, ok := numberLiteral(e)
		return argument{literal: vm.AppendExactNumber(nil, f)}, ok
	case *ast.IdentExpr:
		value, ok := r.values[x.Value]
		return value, ok
	case *ast.AttrGetExpr:
		return element(x)
	case *ast.FuncCallExpr:
		return r.conversion(x)
	}
	return argument{}, false
}

// conversion accepts tonumber(x), and tostring(x) of a string.
func (r *recognizer) conversion(x *ast.FuncCallExpr) (argument, bool) {
	if x.Func == nil || len(x.Args) != 1 || !isName(x.Func, "tonumber") && !isName(x.Func, "tostring") {
		return argument{}, false
	}
	value, ok := r.argument(x.Args[0])
	_, isNumber := numberLiteral(x.Args[0])
	switch {
	case !ok:
		return value, false
	case isName(x.Func, "tonumber"):
		value.number = true
		return value, true
	case isName(x.Func, "tostring"):
		return value, value.from != fromLiteral && !value.number && !isNumber
	}
	return value, false
}

// element accepts KEYS[1] and ARGV[1].
func element(x *ast.AttrGetExpr) (argument, bool) {
	f, ok := numberLiteral(x.Key)
	if !ok || f != float64(int(f)) || f < 1 || f > 1<<20 {
		return argument{}, false
	}
	value := argument{from: fromKeys, index: int(f) - 1}
	if isName(x.Object, "ARGV") {
		value.from = fromArgv
	} else if !isName(x.Object, "KEYS") {
		return value, false
	}
	return value, true
}

// allArgv accepts unpack(ARGV) as the last argument.
func allArgv(e ast.Expr) (argument, bool) {
	call, ok := e.(*ast.FuncCallExpr)
	if !ok || call.Func == nil || call.AdjustRet || len(call.Args) != 1 {
		return argument{}, false
	}
	return argument{from: fromAllArgv}, isName(call.Func, "unpack") && isName(call.Args[0], "ARGV")
}

func isName(e ast.Expr, name string) bool {
	x, ok := e.(*ast.IdentExpr)
	return ok && x.Value == name
}

func numberLiteral(e ast.Expr) (float64, bool) {
	switch x := e.(type) {
	case *ast.NumberExpr:
		return vm.ParseNumber(x.Value)
	case *ast.UnaryMinusOpExpr:
		if _, ok := x.Expr.(*ast.NumberExpr); ok {
			f, ok := numberLiteral(x.Expr)
			return -f, ok
		}
	}
	return 0, false
}
