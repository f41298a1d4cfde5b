package script

import (
	"context"
	"time"

	"cellserver/internal/lua"
	"cellserver/internal/redis/transact"
)

// Contention is what is done about others that change the keys of a script or transaction while it works on snapshots. It
// has as many attempts as fit into the time of its scripts, or into maxSnapshotSteps, and then one more while others wait.
// If it is short, others wait for the third already, and if that takes too long after all, for ever fewer of those behind.
// Nobody waits longer than transact.MaxHeldSteps.
type Contention struct {
	Context context.Context
	Steps   int            // of an attempt, beside its scripts
	Scripts *lua.Allowance // of all attempts

	conflicts  int
	spent      time.Duration // by scripts, before the attempt
	shortestNs int64         // of the attempts that came to their end

	last     bool          // of the attempts
	own      lua.Allowance // while others wait: what was left of all attempts' before
	patience int           // as the constant at first
}

const (
	maxHeldNs = transact.MaxHeldSteps // a step is about a nanosecond

	// patience is how many attempts what is short has on snapshots before others wait for one. Each of these multiplies it.
	patience       = 2
	patienceGrowth = 4
	// shortNs leaves much to spare: an attempt that others wait for may find other keys and take longer.
	shortNs = maxHeldNs / 2
	// maxSnapshotSteps bounds what attempts come to that others make useless.
	maxSnapshotSteps = 50 * transact.MaxHeldSteps
)

// Attempted is how an attempt ended.
type Attempted struct {
	TimedOut bool // a script was, at the end of its allowance
	Ended    bool // before its end, for another reason
}

// Judge says what becomes of an attempt. A script whose time is spent would have had enough of it without the others.
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

// Next says how the next attempt is made.
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

// letGo is hold's opposite.
func (c *Contention) letGo() {
	if c.Scripts.Held {
		c.own.Spent += c.Scripts.Spent
		*c.Scripts, c.spent = c.own, c.own.Spent
	}
}

// Hold gives scripts what a transaction of so many steps leaves them of the time for which others may have to wait.
func Hold(scripts *lua.Allowance, steps int) {
	const unit = 100 * time.Microsecond // or errors would tell nanoseconds
	left := (time.Duration(max(maxHeldNs-steps, 0)) / unit) * unit
	hint := "others wait for its transaction, which can not take longer: send the script on its own"
	if scripts.Limit <= left {
		left, hint = scripts.Limit, scripts.Hint
	}
	*scripts = lua.Allowance{Limit: left, Held: true, Hint: hint}
}
