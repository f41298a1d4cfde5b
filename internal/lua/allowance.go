package lua

import (
	"context"
	"time"
)

// Allowance is the time that some runs may take together: the attempts of a script, or the scripts of a transaction.
type Allowance struct {
	Limit time.Duration
	Spent time.Duration // of it
	// Held says that others wait for the runs, which therefore keep their processor.
	Held bool
	Hint string // what to do about the limit, for the error behind it
}

// Left is 0 or less when all is spent.
func (a *Allowance) Left() time.Duration { return a.Limit - a.Spent }

// Allowance returns what the runs of one command may take together, however many they are.
func (e *Engine) Allowance() Allowance {
	return Allowance{Limit: e.timeLimit, Hint: "see --lua-time-limit"}
}

// Run is RunWithin the time of one run.
func (e *Engine) Run(ctx context.Context, s *Script, keys, argv [][]byte, host Host, resp3 bool, buf []byte) (reply []byte, err error) {
	a := e.Allowance()
	return e.RunWithin(ctx, &a, s, keys, argv, host, resp3, buf)
}
