package session

import (
	"slices"

	"cellserver/internal/lua"
	"cellserver/internal/redis/reply"
	"cellserver/internal/redis/transact"
	"cellserver/internal/wire/catalog"
)

// compiledScripts are the scripts that a transaction executes by their sources, or why they cannot be executed.
type compiledScripts map[string]compiledScript

type compiledScript struct {
	script  *lua.Script
	problem error
}

// get returns neither where the source was not compiled.
func (c compiledScripts) get(source []byte) (*lua.Script, error) {
	s := c[string(source)]
	return s.script, s.problem
}

// compiles reports whether a script has to be compiled first, which takes a processor.
func (x *execution) compiles() bool {
	return slices.ContainsFunc(x.steps, func(q transact.Step) bool {
		return hasSource(q.Command) && x.client.engine.config.Scripts.Known(q.Args[1]) == nil
	})
}

func hasSource(c *catalog.Command) bool { return c.Name == "eval" || c.Name == "eval_ro" }

// compileSteps compiles the scripts of a transaction before it holds any keys. They stay compiled for it whatever happens
// to the cache. Compiling has no more time than running them.
func (s *Session) compileSteps(steps []transact.Step) compiledScripts {
	compiled := compiledScripts{}
	beganNs := s.engine.config.Now()
	for _, q := range steps {
		if !hasSource(q.Command) {
			continue
		}
		if _, ok := compiled[string(q.Args[1])]; ok {
			continue
		}
		c := compiledScript{script: s.engine.config.Scripts.Known(q.Args[1])}
		switch {
		case c.script != nil:
		case s.engine.config.Now()-beganNs > int64(s.engine.config.Scripts.TimeLimit()):
			c.problem = reply.ErrScriptsTooLong
		default:
			c.script, c.problem = s.engine.config.Scripts.Evaluate(q.Args[1])
		}
		compiled[string(q.Args[1])] = c
	}
	return compiled
}
