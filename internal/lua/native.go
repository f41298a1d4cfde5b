package lua

import (
	"bytes"
	"strings"

	"github.com/yuin/gopher-lua/ast"

	"cellserver/internal/lua/bound"
	"cellserver/internal/lua/message"
	"cellserver/internal/lua/number"
	"cellserver/internal/resp"
)

// Native is a script that does nothing but call CL.THROTTLE and return its reply, or one element of that. Such
// scripts come from clients that have no such command; they need no interpreter. A Native does not change.
type Native struct {
	args      []nativeArg
	index     int  // of the element that is returned, from 1 on; 0 is the whole reply
	protected bool // redis.pcall: errors have no place appended
	line      int  // of the call
}

type nativeSource int

const (
	fromLiteral nativeSource = iota
	fromKeys
	fromArgv
	fromAllArgv
)

// A nativeArg is an argument of the command.
type nativeArg struct {
	source  nativeSource
	literal []byte // as the command gets it
	index   int    // into KEYS or ARGV, from 0 on
	number  bool   // it went through tonumber
}

// nativeCommand is the only command that is recognised.
const nativeCommand = "cl.throttle"

// Recognize parses a script and returns what it is, if it is one call of CL.THROTTLE.
func Recognize(source []byte) (*Native, bool) {
	var s Script
	body, err := s.readShebang(source)
	if err != nil {
		return nil, false
	}
	chunk, err := parseChunk(body)
	if err != nil {
		return nil, false
	}
	n := recognize(chunk)
	return n, n != nil
}

// Index returns which element of the reply the script returns, from 1 on, or 0 for the whole reply.
func (n *Native) Index() int { return n.index }

// Args appends the command's arguments, its name first, to args[:0]. It returns false if the script would fail before
// the command, or pass what only the interpreter knows: then the interpreter must run it.
func (n *Native) Args(args, keys, argv [][]byte) ([][]byte, bool) {
	args = args[:0]
	for i := range n.args {
		a := &n.args[i]
		var value []byte
		switch a.source {
		case fromAllArgv:
			if len(argv) > bound.MaxResults {
				return args, false
			}
			args = append(args, argv...)
			continue
		case fromLiteral:
			value = a.literal
		default:
			list := keys
			if a.source == fromArgv {
				list = argv
			}
			if a.index >= len(list) {
				return args, false
			}
			value = list[a.index]
		}
		if a.number {
			var ok bool
			if value, ok = numberArgument(value); !ok {
				return args, false
			}
		}
		args = append(args, value)
	}
	return args, true
}

// numberArgument is what becomes of tonumber(text) on its way to a command.
func numberArgument(text []byte) ([]byte, bool) {
	const plainDigits = 14 // an integer of so few digits stays as it is
	if len(text) > 0 && len(text) <= plainDigits && (text[0] != '0' || len(text) == 1) {
		i := 0
		for i < len(text) && number.IsDigit(text[i]) {
			i++
		}
		if i == len(text) {
			return text, true
		}
	}
	f, ok := number.Parse(string(text))
	if !ok {
		return nil, false
	}
	return number.AppendExact(nil, f), true
}

// AppendReply appends the script's reply for the command's, which is an error or an array of integers, in RESP2.
func (n *Native) AppendReply(s *Script, answer, buf []byte, resp3 bool) []byte {
	if len(answer) > 0 && answer[0] == '-' {
		return n.appendError(s, answer, buf, resp3)
	}
	w := resp.Writer{Buf: buf, RESP3: resp3}
	count, rest, ok := readInteger(answer, '*')
	if ok && n.index == 0 {
		w.Array(int(count))
	}
	for i := int64(1); ok && i <= count; i++ {
		var value int64
		value, rest, ok = readInteger(rest, ':')
		value = number.Truncate(float64(value)) // numbers of Lua are doubles
		switch n.index {
		case 0:
			w.Int(value)
		case int(i):
			w.Int(value)
			return w.Buf
		}
	}
	if !ok {
		return appendError(buf, "ERR the command gave a reply that is none", resp3)
	}
	if n.index > 0 {
		w.Null()
	}
	return w.Buf
}

func (n *Native) appendError(s *Script, answer, buf []byte, resp3 bool) []byte {
	text := string(bytes.TrimRight(answer[1:], "\r\n"))
	w := resp.Writer{Buf: buf, RESP3: resp3}
	switch {
	case !n.protected:
		w.Error(message.InScript(text, s.SHA1, n.line))
	case n.index > 0:
		w.Null()
	default:
		w.Error(message.OneLine(text))
	}
	return w.Buf
}

// readInteger reads a line of a kind and an integer, and returns what follows it.
func readInteger(b []byte, kind byte) (n int64, rest []byte, ok bool) {
	end := bytes.IndexByte(b, '\r')
	if end < 2 || b[0] != kind || end+1 >= len(b) {
		return 0, nil, false
	}
	digits := b[1:end]
	negative := digits[0] == '-'
	if negative {
		digits = digits[1:]
	}
	for _, c := range digits {
		if !number.IsDigit(c) {
			return 0, nil, false
		}
		n = n*10 + int64(c-'0')
	}
	if negative {
		n = -n
	}
	return n, b[end+2:], len(digits) > 0
}

// A recognizer follows a chunk of plain local assignments up to its return.
type recognizer struct {
	values map[string]nativeArg // locals that are arguments
	call   *Native              // the call, once it was met
	result string               // the local that holds its reply
}

func recognize(chunk []ast.Stmt) *Native {
	r := recognizer{values: map[string]nativeArg{}}
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

// local takes local x = KEYS[1], or the call itself. No name may be one that means something.
func (r *recognizer) local(x *ast.LocalAssignStmt) bool {
	if len(x.Names) != len(x.Exprs) || r.call != nil {
		return false
	}
	values := make([]nativeArg, len(x.Names))
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

func (r *recognizer) returned(e ast.Expr) *Native {
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

// command takes redis.call('cl.throttle', ...).
func (r *recognizer) command(e ast.Expr) (*Native, bool) {
	call, ok := e.(*ast.FuncCallExpr)
	if !ok || call.Func == nil || len(call.Args) == 0 {
		return nil, false
	}
	function, ok := call.Func.(*ast.AttrGetExpr)
	if !ok || !isName(function.Object, "redis") {
		return nil, false
	}
	method, ok := function.Key.(*ast.StringExpr)
	if !ok || method.Value != "call" && method.Value != "pcall" {
		return nil, false
	}
	n := &Native{protected: method.Value == "pcall", line: call.Line()}
	for i, a := range call.Args {
		value, ok := r.argument(a)
		if !ok && i == len(call.Args)-1 {
			value, ok = allArgv(a)
		}
		if !ok {
			return nil, false
		}
		n.args = append(n.args, value)
	}
	first := n.args[0]
	if first.source != fromLiteral || !strings.EqualFold(string(first.literal), nativeCommand) {
		return nil, false
	}
	return n, true
}

func (r *recognizer) argument(e ast.Expr) (nativeArg, bool) {
	switch x := e.(type) {
	case *ast.StringExpr:
		return nativeArg{literal: []byte(x.Value)}, true
	case *ast.NumberExpr, *ast.UnaryMinusOpExpr:
		f, ok := numberLiteral(e)
		return nativeArg{literal: number.AppendExact(nil, f)}, ok
	case *ast.IdentExpr:
		value, ok := r.values[x.Value]
		return value, ok
	case *ast.AttrGetExpr:
		return element(x)
	case *ast.FuncCallExpr:
		return r.conversion(x)
	}
	return nativeArg{}, false
}

// conversion takes tonumber(x), and tostring(x) of what is a string.
func (r *recognizer) conversion(x *ast.FuncCallExpr) (nativeArg, bool) {
	if x.Func == nil || len(x.Args) != 1 {
		return nativeArg{}, false
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
		return value, value.source != fromLiteral && !value.number && !isNumber
	}
	return value, false
}

// element takes KEYS[1] and ARGV[1].
func element(x *ast.AttrGetExpr) (nativeArg, bool) {
	f, ok := numberLiteral(x.Key)
	if !ok || f != float64(int(f)) || f < 1 || f > 1<<20 {
		return nativeArg{}, false
	}
	value := nativeArg{source: fromKeys, index: int(f) - 1}
	if isName(x.Object, "ARGV") {
		value.source = fromArgv
	} else if !isName(x.Object, "KEYS") {
		return value, false
	}
	return value, true
}

// allArgv takes unpack(ARGV), which stands for all of them as the last argument.
func allArgv(e ast.Expr) (nativeArg, bool) {
	call, ok := e.(*ast.FuncCallExpr)
	if !ok || call.Func == nil || call.AdjustRet || len(call.Args) != 1 {
		return nativeArg{}, false
	}
	return nativeArg{source: fromAllArgv}, isName(call.Func, "unpack") && isName(call.Args[0], "ARGV")
}

func isName(e ast.Expr, name string) bool {
	x, ok := e.(*ast.IdentExpr)
	return ok && x.Value == name
}

func numberLiteral(e ast.Expr) (float64, bool) {
	switch x := e.(type) {
	case *ast.NumberExpr:
		return number.Parse(x.Value)
	case *ast.UnaryMinusOpExpr:
		if _, ok := x.Expr.(*ast.NumberExpr); ok {
			f, ok := numberLiteral(x.Expr)
			return -f, ok
		}
	}
	return 0, false
}
