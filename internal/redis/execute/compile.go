package execute

import (
	"cellserver/internal/lua"
	"cellserver/internal/redis/reply"
	"cellserver/internal/redis/transact"
	"cellserver/internal/wire/catalog"
)

// compiledScripts maps a transaction's sources to their scripts or errors.
type compiledScripts map[string]compiledScript

type compiledScript struct {
	script  *lua.Script
	problem error
}

// Get returns nil and nil for a source that was not compiled.
func (c compiledScripts) Get(source []byte) (*lua.Script, error) {
	s := c[string(source)]
	return s.script, s.problem
}

func hasSource(c *catalog.Command) bool { return c.Name == "eval" || c.Name == "eval_ro" }

// needsCompiling reports whether a command runs an uncompiled script, which needs a processor.
func needsCompiling(e *lua.Engine, q transact.Step) bool {
	return hasSource(q.Command) && e.Cached(q.Args[1]) == nil
}

// compileScripts compiles a transaction's scripts before it holds keys, independent of the cache. Compiling
// has the time of running.
func compileScripts(e *Engine, steps []transact.Step) compiledScripts {
	all, scripts := compiledScripts{}, e.Config.Scripts
	beganNs := e.Config.Now()
	for _, q := range steps {
		if !hasSource(q.Command) {
			continue
		}
		if _, ok := all[string(q.Args[1])]; ok {
			continue
		}
		c := compiledScript{script: scripts.Cached(q.Args[1])}
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
