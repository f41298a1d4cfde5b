package session_test

import (
	"testing"

	"cellserver/internal/redis/commands/commandstest"
)

// TestArgumentErrors are the same over every store: only CL.THROTTLE's are in redis-cell's words.
func TestArgumentErrors(t *testing.T) {
	onStores(t, func(t *testing.T, r *commandstest.Harness) {
		define(t, r, "CL.LIMIT SET api 4 1 10")
		s := r.Session()
		for call, want := range map[string]string{
			"CL.THROTTLE k":               "Cell error: Store error: Usage: cl.throttle <key> <max_burst> <count per period> <period> [<quantity>]",
			"CL.THROTTLE k 15 0 60":       "Cell error: Store error: Zero rates are not supported",
			"CL.CHECK api":                "ERR wrong number of arguments for 'cl.check' command; usage: CL.CHECK <name> <key> [<quantity>] [DEBIT|ATMOST]",
			"CL.CHECK api k x":            "ERR Couldn't parse as integer: x",
			"CL.LIMIT EXPLAIN api":        "ERR wrong number of arguments for 'cl.limit|explain' command; usage: CL.LIMIT EXPLAIN <name> <key>",
			"CL.CONCURRENCY ACQUIRE k 5":  "ERR wrong number of arguments for 'cl.concurrency|acquire' command; usage: CL.CONCURRENCY ACQUIRE <key> <max> <lease_ms> [<token>]",
			"CL.FIXEDWINDOW k 5":          "ERR wrong number of arguments for 'cl.fixedwindow' command; usage: CL.FIXEDWINDOW <key> <max_count> <period> [<quantity>] [COUNTDENIED|DEBIT] [ATMOST]",
			"CL.PTHROTTLE k 15 0 60":      "ERR Zero rates are not supported",
			"CL.MCHECK 1 api k EACH EACH": "ERR syntax error; usage: CL.MCHECK <n> <name> <key> ... [QUANTITY <quantity>] [EACH] [DEBIT|ATMOST]",
			"cl.throttel k":               "ERR unknown command 'cl.throttel', with args beginning with: 'k'; did you mean 'cl.throttle'?",
		} {
			commandstest.Expect(t, s, call+"\r\n", "-"+want+"\r\n")
		}
	})
}
