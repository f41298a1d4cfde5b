package commands_test

import (
	"strings"
	"testing"

	"cellserver/internal/redis/commands"
	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/shard"
	"cellserver/internal/store/gate"
	"cellserver/internal/test/resptest"
	"cellserver/internal/wire/catalog"
)

// refusing gives the engine a gate that refuses changes.
func refusing(reason gate.Reason, text gate.Refusal) func(*commands.Config) {
	return func(c *commands.Config) {
		c.Gate = gate.New(c.Store.(*shard.Store), c.Now)
		c.Gate.Close(reason, 0, text)
	}
}

// TestEveryCommandOnAReplica: what would change a key is refused, and what changes nothing is answered; so it
// is without enough replicas.
func TestEveryCommandOnAReplica(t *testing.T) {
	const readOnly = "READONLY You can't write against a read only replica: the leader is 192.0.2.1:6380"
	const noReplicas = "NOREPLICAS Not enough good replicas to write."
	for text, change := range map[string]func(*commands.Config){readOnly: refusing(gate.Replica, readOnly), noReplicas: refusing(gate.TooFew, noReplicas)} {
		eachCall(func(c *catalog.Command, call []string) {
			if c.Refusal != "" {
				return
			}
			open := commandstest.New(keeping(t))
			closed := commandstest.New(keeping(t), change)
			got, _, _ := commandstest.Converse(t, closed.Session(), resptest.Encode(call...))
			refused := strings.Contains(got, text)
			want := c.Flags&catalog.FlagWrite != 0
			if want && c.Batches && c.Name != "cl.refund" { // the store refuses those that would change a key
				before := open.Stats().Keys
				_, _, _ = commandstest.Converse(t, open.Session(), resptest.Encode(call...))
				want = open.Stats().Keys != before
			}
			if refused != want && !strings.HasPrefix(got, "-ERR") && !strings.HasPrefix(got, "-WRONGTYPE") {
				t.Errorf("%s: refused: %t; got %q", c.FullName(), refused, got)
			}
			if closed.Stats().Keys != 0 {
				t.Errorf("%s: it has made a key", c.FullName())
			}
		})
	}
}
