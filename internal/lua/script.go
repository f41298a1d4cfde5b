package lua

import (
	"bytes"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync/atomic"

	lua "github.com/yuin/gopher-lua"
	"github.com/yuin/gopher-lua/ast"
	"github.com/yuin/gopher-lua/parse"

	"cellserver/internal/lua/native"
	"cellserver/internal/lua/vm"
	"cellserver/internal/resp"
)

// Flags are a script's declarations in its first line: #!lua flags=no-writes,allow-oom
type Flags struct {
	Shebang  bool // there is such a line
	NoWrites bool
}

// Script is a compiled script. It is immutable and safe for concurrent use.
type Script struct {
	SHA1   string // lower case
	Flags  Flags
	Native *native.Call // the script's only command, or nil
	// Program runs the script without an interpreter, unless it turns out to need one; nil if it does.
	Program *native.Program

	key       scriptKey
	proto     *lua.FunctionProto
	guards    []vm.Guard
	costBytes int

	usedAt atomic.Int64 // by the cache's clock
	gone   atomic.Bool  // from the cache
	long   atomic.Bool
	at     place // guarded by the cache's mutex
}

// IsLong reports whether a run has taken longer than others should wait.
func (s *Script) IsLong() bool { return s.long.Load() }

// SetLong notes such a run.
func (s *Script) SetLong() { s.long.Store(true) }

type scriptKey [sha1.Size]byte

const compileError = "ERR Error compiling script (new function): "

// maxJumpInstructions is the range of gopher-lua's jumps, which it does not always check.
const maxJumpInstructions = 1 << 17

// compile compiles a script. Error texts are replies.
func compile(key scriptKey, source []byte, commands native.Commands) (*Script, error) {
	s := &Script{SHA1: hex.EncodeToString(key[:]), key: key}
	body, err := s.readShebang(source)
	if err != nil {
		return nil, err
	}
	chunk, err := parseChunk(body)
	if err != nil {
		return nil, errors.New(compileError + err.Error())
	}
	s.Program = native.Compile(chunk)
	s.Native = commands.Recognize(s.Program)
	chunk, s.guards, err = vm.Rewrite(chunk, body)
	if err != nil {
		return nil, errors.New(compileError + vm.AtLine(1) + err.Error())
	}
	if s.proto, err = lua.Compile(chunk, vm.ChunkName); err == nil {
		s.costBytes, err = shrink(s.proto)
	}
	if err != nil {
		return nil, errors.New(compileError + compileText(err))
	}
	s.costBytes += len(source) + s.Program.CostBytes()
	return s, nil
}

// politeReader yields during parsing, which takes up to 100 ns a byte.
type politeReader struct{ rest []byte }

func (r *politeReader) Read(p []byte) (n int, err error) {
	const piece = 512
	vm.Yield(true)
	if len(r.rest) == 0 {
		return 0, io.EOF
	}
	n = copy(p[:min(len(p), piece)], r.rest)
	r.rest = r.rest[n:]
	return n, nil
}

// parseChunk parses Lua; errors have the form of Lua's.
func parseChunk(body []byte) ([]ast.Stmt, error) {
	chunk, err := parse.Parse(&politeReader{body}, vm.ChunkName)
	if err == nil {
		return chunk, nil
	}
	var syntax *parse.Error
	if !errors.As(err, &syntax) {
		return nil, errors.New(vm.AtLine(1) + vm.OneLine(err.Error()))
	}
	line, near := syntax.Pos.Line, resp.Printable([]byte(syntax.Token))
	if line == parse.EOF {
		line, near = 1+bytes.Count(body, []byte{'\n'}), "<eof>"
	}
	problem := strings.TrimPrefix(syntax.Message, "syntax error: ")
	switch problem {
	case "syntax error":
		problem = "unexpected symbol"
	case "parse error":
		problem = "syntax error"
	case "unterminated string", "unterminated multiline string":
		problem = "unfinished string"
	}
	return nil, errors.New(vm.AtLine(line) + vm.OneLine(problem) + " near '" + near + "'")
}

func compileText(err error) string {
	var problem *lua.CompileError
	if errors.As(err, &problem) {
		return vm.AtLine(max(problem.Line, 1)) + vm.OneLine(problem.Message)
	}
	return vm.AtLine(1) + vm.OneLine(err.Error())
}

// shrink drops the compiler's reserves, some six kilobytes a function, and unused data. It returns the size
// of the code.
func shrink(p *lua.FunctionProto) (costBytes int, err error) {
	if len(p.Code) >= maxJumpInstructions {
		return 0, fmt.Errorf("function at line %d has more than %d instructions", max(p.LineDefined, 1), maxJumpInstructions)
	}
	p.Code = slices.Clip(slices.Clone(p.Code))
	p.Constants = slices.Clip(slices.Clone(p.Constants))
	p.DbgSourcePositions = slices.Clip(slices.Clone(p.DbgSourcePositions))
	p.IsVarArg &^= lua.VarArgNeedsArg // Lua 5.0's table arg, created at every call
	p.DbgCalls = nil                  // names for unused traces
	p.DbgLocals = nil
	p.FunctionPrototypes = slices.Clip(slices.Clone(p.FunctionPrototypes))
	const functionBytes, instructionBytes, constantBytes = 1024, 4 + 8, 16 + 16 + 16
	costBytes = functionBytes + len(p.Code)*instructionBytes + len(p.Constants)*constantBytes
	for _, inner := range p.FunctionPrototypes {
		innerBytes, err := shrink(inner)
		if err != nil {
			return 0, err
		}
		costBytes += innerBytes
	}
	return costBytes, nil
}

// readShebang reads the flags of the first line and returns the rest, with line numbers unchanged.
func (s *Script) readShebang(source []byte) ([]byte, error) {
	if !bytes.HasPrefix(source, []byte("#!")) {
		return source, nil
	}
	line, _, ok := bytes.Cut(source, []byte{'\n'})
	if !ok {
		return nil, errors.New("ERR Invalid script shebang")
	}
	s.Flags.Shebang = true
	words := strings.Fields(string(line))
	if words[0] != "#!lua" {
		return nil, errors.New("ERR Unexpected engine in script shebang: " + resp.Printable([]byte(words[0])))
	}
	for _, word := range words[1:] {
		list, ok := strings.CutPrefix(word, "flags=")
		if !ok {
			return nil, errors.New("ERR Unknown lua shebang option: " + resp.Printable([]byte(word)))
		}
		for name := range strings.SplitSeq(list, ",") {
			switch name {
			case "no-writes":
				s.Flags.NoWrites = true
			case "", "allow-oom", "allow-stale", "no-cluster", "allow-cross-slot-keys": // change nothing here
			default:
				return nil, errors.New("ERR Unexpected flag in script shebang: " + resp.Printable([]byte(name)))
			}
		}
	}
	return source[len(line):], nil
}
