package execute

import (
	"context"
	"time"

	"cellserver/internal/lua"
	"cellserver/internal/redis/transact"
)

// contention bounds the attempts of a script or transaction on snapshots whose keys others change. The last
// attempt, after the scripts' time or else maxConflicts, or after maxSteps, may hold the keys, at most for
// transact.MaxHeldSteps. If attempts are short, so may the third; if that takes too long after all, one after
// four times as many.
type contention struct {
	Context context.Context
	Steps   int            // of an attempt, without scripts
	Scripts *lua.Allowance // of all attempts

	conflicts int
	spent     time.Duration // by scripts before the attempt
	tookNs    int64         // by the last completed attempt
	patience  int           // conflicts before keys are held again
	last      bool          // attempt
	own       lua.Allowance // without the keys held
}

const (
	maxHeldNs = transact.MaxHeldSteps // a step is about a nanosecond
	// shortNs leaves a margin: an attempt that holds keys may find others and take longer.
	shortNs = maxHeldNs / 2

	shortConflicts = 2
	maxConflicts   = 32
	// maxSteps bounds all attempts to about a second: those on keys full of holds take a tenth each, or more.
	maxSteps = 1_000_000_000
)

// attempted is an attempt's end.
type attempted struct {
	TimedOut bool // at the end of its allowance
	Ended    bool // early, for another reason
}

// Judge returns an attempt's verdict. A script without time left would have exceeded it without others, too.
func (c *contention) Judge(a attempted) transact.Verdict {
	tookNs := int64(c.Scripts.Spent-c.spent) + int64(c.Steps)
	c.spent = c.Scripts.Spent
	switch {
	case a.TimedOut && c.conflicts > 0:
		return transact.Again
	case a.Ended:
		return transact.Drop
	}
	c.tookNs = tookNs
	return transact.Keep
}

// Next returns the mode of the next attempt.
func (c *contention) Next(conflicts int) transact.Mode {
	c.conflicts = conflicts
	if c.Scripts.Held {
		c.own.Spent += c.Scripts.Spent
		*c.Scripts, c.spent = c.own, c.own.Spent
	}
	spent := c.Scripts.Limit > 0 && c.Scripts.Left() <= 0 || c.Scripts.Limit == 0 && conflicts >= maxConflicts ||
		conflicts >= shortConflicts && conflicts*c.Steps >= maxSteps
	switch {
	case c.last || c.Context.Err() != nil || spent && c.tookNs > maxHeldNs:
		return transact.GiveUp
	case spent || conflicts >= max(shortConflicts, c.patience) && c.tookNs <= shortNs:
		c.last, c.patience = spent, 4*conflicts
		c.own, c.spent = *c.Scripts, 0
		holdScripts(c.Scripts, c.Steps)
		return transact.Held
	}
	return transact.Snapshot
}

// holdScripts bounds scripts to the time that a transaction's steps leave others to wait.
func holdScripts(scripts *lua.Allowance, steps int) {
	const unit = 100 * time.Microsecond // keeps nanoseconds out of errors
	left := (time.Duration(max(maxHeldNs-steps, 0)) / unit) * unit
	hint := "others wait for its transaction, which can not take longer: send the script on its own"
	if scripts.Limit <= left {
		left, hint = scripts.Limit, scripts.Hint
	}
	*scripts = lua.Allowance{Limit: left, Held: true, Hint: hint}
}
