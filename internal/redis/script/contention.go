package session

import (
	"context"
	"time"

	"cellserver/internal/lua"
	"cellserver/internal/redis/transact"
)

// contention is what is done about others that change the keys of a script or transaction while it works on snapshots. It
// has as many attempts as fit into the time of its scripts, or into maxSnapshotSteps, and then one more while others wait.
// If it is short, others wait for the third already, and if that takes too long after all, for ever fewer of those behind.
// Nobody waits longer than transact.MaxHeldSteps.
type contention struct {
	ctx     context.Context
	steps   int            // of an attempt, beside its scripts
	scripts *lua.Allowance // of all attempts

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

// attempted is how an attempt ended.
type attempted struct {
	timedOut bool // a script was, at the end of its allowance
	ended    bool // before its end, for another reason
}

// judge says what becomes of an attempt. A script whose time is spent would have had enough of it without the others.
func (c *contention) judge(a attempted) transact.Verdict {
	tookNs := int64(c.scripts.Spent-c.spent) + int64(c.steps)
	c.spent = c.scripts.Spent
	switch {
	case a.timedOut && c.conflicts > 0:
		return transact.Again
	case a.ended:
		return transact.Drop
	case c.shortestNs == 0 || tookNs < c.shortestNs:
		c.shortestNs = max(tookNs, 1)
	}
	return transact.Keep
}

// next says how the next attempt is made.
func (c *contention) next(conflicts int) transact.Mode {
	c.conflicts = conflicts
	c.letGo()
	spent := c.scripts.Limit > 0 && c.scripts.Left() <= 0 || conflicts*c.steps > maxSnapshotSteps
	switch {
	case c.last || c.ctx.Err() != nil || spent && c.shortestNs > maxHeldNs:
		return transact.GiveUp
	case spent || conflicts >= max(patience, c.patience) && c.shortestNs <= shortNs:
		c.last, c.patience = spent, conflicts*patienceGrowth
		return c.hold()
	}
	return transact.Snapshot
}

func (c *contention) hold() transact.Mode {
	c.own, c.spent = *c.scripts, 0
	holdScripts(c.scripts, c.steps)
	return transact.Held
}

// letGo is hold's opposite.
func (c *contention) letGo() {
	if c.scripts.Held {
		c.own.Spent += c.scripts.Spent
		*c.scripts, c.spent = c.own, c.own.Spent
	}
}

// holdScripts gives scripts what a transaction of so many steps leaves them of the time for which others may have to wait.
func holdScripts(scripts *lua.Allowance, steps int) {
	const unit = 100 * time.Microsecond // or errors would tell nanoseconds
	left := (time.Duration(max(maxHeldNs-steps, 0)) / unit) * unit
	hint := "others wait for its transaction, which can not take longer: send the script on its own"
	if scripts.Limit <= left {
		left, hint = scripts.Limit, scripts.Hint
	}
	*scripts = lua.Allowance{Limit: left, Held: true, Hint: hint}
}
