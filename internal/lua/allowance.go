package lua

import (
	"context"
	"time"
)

// Allowance is the common time of the attempts of a script, or of the scripts of a transaction.
type Allowance struct {
	Limit time.Duration
	Spent time.Duration // the used part
	// Held says that others wait for the runs, which then keep their processor.
	Held bool
	Hint string // advice after the error about the limit
}

// Left is negative or 0 when all is spent.
func (a *Allowance) Left() time.Duration { return a.Limit - a.Spent }

// Allowance returns the time of all runs of a command.
func (e *Engine) Allowance() Allowance {
	return Allowance{Limit: e.timeLimit, Hint: "see --lua-time-limit"}
}

// Run is RunWithin with the time of one run.
func (e *Engine) Run(ctx context.Context, s *Script, keys, argv [][]byte, host Host, resp3 bool, buf []byte) (reply []byte, err error) {
	a := e.Allowance()
	return e.RunWithin(ctx, &a, s, keys, argv, host, resp3, buf)
}
