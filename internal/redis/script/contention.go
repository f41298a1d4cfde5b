package script

import (
	"context"
	"time"

	"cellserver/internal/lua"
	"cellserver/internal/redis/transact"
)

// Contention decides on attempts when others change the keys of a script or transaction on snapshots. There
// are as many as fit into the scripts' time, or into maxSnapshotSteps, then one while others wait. If it is
// short, others wait for the third one already, and less and less often if that proves too long. Nobody waits
// longer than transact.MaxHeldSteps.
type Contention struct {
	Context context.Context
	Steps   int            // of an attempt, without scripts
	Scripts *lua.Allowance // of all attempts

	conflicts  int
	spent      time.Duration // by scripts before the attempt
	shortestNs int64         // of completed attempts

	last     bool          // attempt
	own      lua.Allowance // the rest of the common one, while others wait
	patience int           // as the constant at first
}

const (
	maxHeldNs = transact.MaxHeldSteps // a step is about a nanosecond

	// patience is the number of attempts on snapshots before others wait for a short one; each such attempt
	// multiplies it.
	patience       = 2
	patienceGrowth = 4
	// shortNs leaves a margin: an attempt that holds keys may find others and take longer.
	shortNs = maxHeldNs / 2
	// maxSnapshotSteps bounds the cost of conflicting attempts.
	maxSnapshotSteps = 50 * transact.MaxHeldSteps
)

// Attempted is an attempt's end.
type Attempted struct {
	TimedOut bool // at the end of its allowance
	Ended    bool // early, for another reason
}

// Judge returns an attempt's verdict. A script without time left would have exceeded it without others, too.
func (c *Contention) Judge(a Attempted) transact.Verdict {
	tookNs := int64(c.Scripts.Spent-c.spent) + int64(c.Steps)
	c.spent = c.Scripts.Spent
	switch {
	case a.TimedOut && c.conflicts > 0:
		return transact.Again
	case a.Ended:
		return transact.Drop
	case c.shortestNs == 0 || tookNs < c.shortestNs:
		c.shortestNs = max(tookNs, 1)
	}
	return transact.Keep
}

// Next returns the mode of the next attempt.
func (c *Contention) Next(conflicts int) transact.Mode {
	c.conflicts = conflicts
	c.letGo()
	spent := c.Scripts.Limit > 0 && c.Scripts.Left() <= 0 || conflicts*c.Steps > maxSnapshotSteps
	switch {
	case c.last || c.Context.Err() != nil || spent && c.shortestNs > maxHeldNs:
		return transact.GiveUp
	case spent || conflicts >= max(patience, c.patience) && c.shortestNs <= shortNs:
		c.last, c.patience = spent, conflicts*patienceGrowth
		return c.hold()
	}
	return transact.Snapshot
}

func (c *Contention) hold() transact.Mode {
	c.own, c.spent = *c.Scripts, 0
	Hold(c.Scripts, c.Steps)
	return transact.Held
}

// letGo undoes hold.
func (c *Contention) letGo() {
	if c.Scripts.Held {
		c.own.Spent += c.Scripts.Spent
		*c.Scripts, c.spent = c.own, c.own.Spent
	}
}

// Hold bounds scripts to the time that a transaction's steps leave others to wait.
func Hold(scripts *lua.Allowance, steps int) {
	const unit = 100 * time.Microsecond // keeps nanoseconds out of errors
	left := (time.Duration(max(maxHeldNs-steps, 0)) / unit) * unit
	hint := "others wait for its transaction, which can not take longer: send the script on its own"
	if scripts.Limit <= left {
		left, hint = scripts.Limit, scripts.Hint
	}
	*scripts = lua.Allowance{Limit: left, Held: true, Hint: hint}
}
