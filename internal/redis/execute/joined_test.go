package execute_test

import (
	"strings"
	"testing"

	"cellserver/internal/decide/namedlimit"
	"cellserver/internal/decide/observe"
	"cellserver/internal/redis/commands"
	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/redis/execute"
	"cellserver/internal/test/resptest"
)

// withLogin has a named limit of 5 units in a minute.
func withLogin(c *commands.Config) {
	c.NamedLimits = namedlimit.New(namedlimit.Config{})
	if err := c.NamedLimits.Set(namedlimit.Definition{
		Name: "login", Near: namedlimit.DefaultNear,
		Policy: namedlimit.Policy{Rules: []namedlimit.Rule{{Capacity: 5, Count: 5, PeriodSec: 60}}},
	}); err != nil {
		panic(err)
	}
}

// TestJoinedNamesAreLetGoOf with their batch, and where a call was refused.
func TestJoinedNamesAreLetGoOf(t *testing.T) {
	r := commandstest.New(withLogin)
	longest := 0
	r.Engine.Handlers[r.Config.Catalog.Lookup([]byte("ping")).ID] = execute.Plain(func(c execute.Call, _ [][]byte) error {
		longest = max(longest, c.JoinedBytes())
		c.Reply().Status("PONG")
		return nil
	})
	const keyBytes, calls = 1000, 10 * observe.MaxBatch
	check := resptest.Encode("CL.CHECK", "login", strings.Repeat("k", keyBytes))
	native := resptest.Encode("EVAL", "return redis.call('cl.check', ARGV[1], ARGV[2])", "1", "login:"+strings.Repeat("k", keyBytes), "login", strings.Repeat("k", keyBytes))
	for _, refused := range []bool{false, true} {
		if refused {
			r.Engine.NewKeys.Limit(1)
			commandstest.Say(t, r.Session(), "SELECT 1\r\nCL.THROTTLE k 1 1 60\r\n")
		}
		for name, call := range map[string]string{"a batch": check, "a script": native} {
			longest = 0
			commandstest.Say(t, r.Session(), "SELECT 2\r\n"+strings.Repeat(call, calls)+"PING\r\n")
			if most := 2 * observe.MaxBatch * (keyBytes + len("login:")); longest > most {
				t.Errorf("%s, refused %v: %d bytes for names, want at most %d", name, refused, longest, most)
			}
		}
	}
	if commandstest.Say(t, r.Session(), "PING\r\n") == "" || longest > execute.MaxScratchNameBytes {
		t.Errorf("a buffer of %d bytes was kept", longest)
	}
}
