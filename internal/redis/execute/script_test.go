package execute_test

import (
	"errors"
	"testing"
	"time"

	"cellserver/internal/redis/commands/commandstest"
	"cellserver/internal/redis/execute"
	"cellserver/internal/redis/reply"
)

// TestTimeOfScriptsTogether: in a transaction the next script is refused after the time of one.
func TestTimeOfScriptsTogether(t *testing.T) {
	e := commandstest.New().Engine.Engine
	e.Stage.Txs = nil // for an error from execution
	eval := e.Handlers[e.Config.Catalog.Lookup([]byte("eval")).ID]
	allowance := e.Config.Scripts.Allowance()
	for taken, want := range map[time.Duration]error{
		0: reply.ErrNoTransactions, allowance.Limit - 1: reply.ErrNoTransactions, allowance.Limit: reply.ErrScriptsTooLong, allowance.Limit + 1: reply.ErrScriptsTooLong,
	} {
		allowance.Spent = taken
		step := execute.InTransaction(e.Engine, &allowance)
		if err := eval.Run(step, 1, [][]byte{[]byte("eval"), []byte("return 1"), []byte("0")}); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", taken, err, want)
		}
	}
}
