package script

import (
	"cellserver/internal/lua"
	"cellserver/internal/redis/execute"
	"cellserver/internal/redis/reply"
	"cellserver/internal/redis/transact"
	"cellserver/internal/wire/catalog"
)

// Compiled maps a transaction's sources to their scripts or errors.
type Compiled map[string]compiled

type compiled struct {
	script  *lua.Script
	problem error
}

// Get returns nil and nil for a source that was not compiled.
func (c Compiled) Get(source []byte) (*lua.Script, error) {
	s := c[string(source)]
	return s.script, s.problem
}

func hasSource(c *catalog.Command) bool { return c.Name == "eval" || c.Name == "eval_ro" }

// NeedsCompiling reports whether a command runs an uncompiled script, which needs a processor.
func NeedsCompiling(e *lua.Engine, q transact.Step) bool {
	return hasSource(q.Command) && e.Cached(q.Args[1]) == nil
}

// Compile compiles a transaction's scripts before it holds keys, independent of the cache. Compiling has the
// time of running.
func Compile(e *execute.Engine, steps []transact.Step) Compiled {
	all, scripts := Compiled{}, e.Config.Scripts
	beganNs := e.Config.Now()
	for _, q := range steps {
		if !hasSource(q.Command) {
			continue
		}
		if _, ok := all[string(q.Args[1])]; ok {
			continue
		}
		c := compiled{script: scripts.Cached(q.Args[1])}
		switch {
		case c.script != nil:
		case e.Config.Now()-beganNs > int64(scripts.TimeLimit()):
			c.problem = reply.ErrScriptsTooLong
		default:
			c.script, c.problem = scripts.Evaluate(q.Args[1])
		}
		all[string(q.Args[1])] = c
	}
	return all
}
