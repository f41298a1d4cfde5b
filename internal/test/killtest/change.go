package killtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"cellserver/internal/test/patience"
)

// Change is a planned change of a pair's leader, around which one of the servers is killed and started again.
type Change struct {
	// Start starts server 0, the first leader, or 1, its replica, at its address and with its directory.
	Start  func(ctx context.Context, server int) (Running, error)
	Killed int           // the server
	After  time.Duration // of the kill: the time since the replica's link is up, and it is told to lead
	// EachReply says that each reply of a server is on its disk.
	EachReply bool
}

// Running is a running server.
type Running struct {
	Addr string // for clients
	Kill func()
}

// Changed is what was found after a Change.
type Changed struct {
	Leaders int  // in the end: two, if the kill was within the change and neither server knows the other
	Told    bool // neither led until somebody said which one is to
	Calls   int  // confirmed by the new leader
	// Wrong has a line for each kind of loss.
	Wrong []string
}

// oldKeys were charged long before the change, and are on all disks.
const oldKeys = 1000

const (
	// promise is how old a debt may be that a crash forgives, and more than a busy machine takes for a round.
	promise = 2 * time.Second
	// longestCall is counted of the time between calls: in the rest nobody was scheduled.
	longestCall = 100 * time.Millisecond
)

// change is a Change under way.
type change struct {
	Change
	run   [2]Running
	keys  []string    // of old debts
	calls []time.Time // when they were confirmed
}

// Do does it, and says what is gone.
func (c Change) Do(ctx context.Context) (found Changed, err error) {
	r := &change{Change: c}
	defer func() {
		for _, s := range r.run {
			if s.Kill != nil {
				s.Kill()
			}
		}
	}()
	if err := r.begin(ctx); err != nil {
		return found, err
	}
	killedAt, err := r.happen(ctx)
	if err != nil {
		return found, err
	}
	if found.Told, err = r.settle(ctx); err != nil {
		return found, err
	}
	found.Calls = len(r.calls)
	return found, r.look(ctx, killedAt, &found)
}

// begin charges old debts, and has a replica follow.
func (c *change) begin(ctx context.Context) (err error) {
	for i := range oldKeys {
		c.keys = append(c.keys, fmt.Sprintf("old%d", i))
	}
	if c.run[0], err = c.Start(ctx, 0); err != nil {
		return err
	}
	if err := errors.Join(Charge(ctx, c.run[0].Addr, c.keys...), Sync(ctx, c.run[0].Addr)); err != nil {
		return err
	}
	c.run[1], err = c.Start(ctx, 1)
	return err
}

// happen tells the replica to lead once its link is up, charges there, kills a server, and starts it again.
func (c *change) happen(ctx context.Context) (killedAt time.Time, err error) {
	for up := false; !up; { // more often than patience would look
		fields, err := c.info(ctx, 1)
		if err != nil {
			return killedAt, err
		}
		if up = fields["master_link_status"] == "up"; !up {
			time.Sleep(time.Millisecond)
		}
	}
	kill := time.After(c.After)
	if err := c.ask(ctx, 1, "REPLICAOF", "NO", "ONE").Err(); err != nil {
		return killedAt, err
	}
	calling, stop := context.WithCancel(ctx)
	var clients sync.WaitGroup
	clients.Go(func() { c.call(calling) })
	select {
	case <-kill:
	case <-ctx.Done():
	}
	killedAt = time.Now()
	c.run[c.Killed].Kill()
	c.run[c.Killed].Kill = nil
	stop()
	clients.Wait()
	if ctx.Err() != nil {
		return killedAt, ctx.Err()
	}
	c.run[c.Killed], err = c.Start(ctx, c.Killed)
	return killedAt, err
}

// call charges a key after the other on the new leader, until the end, and notes which are confirmed.
func (c *change) call(ctx context.Context) {
	for ; ctx.Err() == nil; time.Sleep(time.Millisecond) {
		rdb, hangUp, err := dial(ctx, c.run[1].Addr, 0)
		for err == nil && ctx.Err() == nil {
			if err = rdb.Do(context.WithoutCancel(ctx), funnel.charge(newKey(len(c.calls)), 1)...).Err(); err == nil {
				c.calls = append(c.calls, time.Now())
				time.Sleep(time.Millisecond)
			}
		}
		if hangUp != nil { // go-redis uses no connection again that was refused a change
			hangUp()
		}
	}
}

func newKey(n int) string { return fmt.Sprintf("new%d", n) }

// ask sends a command to a server.
func (c *change) ask(ctx context.Context, server int, args ...any) *redis.Cmd {
	rdb, hangUp, err := dial(ctx, c.run[server].Addr, 0)
	if err != nil {
		cmd := redis.NewCmd(ctx, args...)
		cmd.SetErr(err)
		return cmd
	}
	defer hangUp()
	return rdb.Do(ctx, args...)
}

// info returns INFO replication.
func (c *change) info(ctx context.Context, server int) (map[string]string, error) {
	text, err := c.ask(ctx, server, "INFO", "replication").Text()
	fields := map[string]string{}
	for line := range strings.Lines(text) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		fields[name] = value
	}
	return fields, err
}

// settle waits until the servers have their roles: the leader leads, and a follower has a link. If
// neither leads, the one that has its states is told to, as an operator would.
func (c *change) settle(ctx context.Context) (told bool, err error) {
	silent, most := 0, 40
	settled := patience.Until(func() bool {
		var f [2]map[string]string
		for i := range f {
			fields, failed := c.info(ctx, i)
			if f[i], err = fields, cmp.Or(err, failed); err != nil {
				return true
			}
		}
		if silent++; !waits(f[0]) || !waits(f[1]) {
			silent = 0
		}
		if silent > most && !told {
			lead := 1
			if f[1]["cell_states_kept"] == "missing" {
				lead = 0
			}
			told, err = true, c.ask(ctx, lead, "REPLICAOF", "NO", "ONE").Err()
		}
		return err != nil || isSettled(f[0]) && isSettled(f[1])
	})
	if err == nil && !settled {
		err = errors.New("killtest: the servers find no roles")
	}
	return told, err
}

func isSettled(f map[string]string) bool {
	return f["role"] == "master" && f["master_failover_state"] == "no-failover" || f["master_link_status"] == "up"
}

// waits reports whether a server follows one that does not lead.
func waits(f map[string]string) bool { return strings.HasPrefix(f["cell_link_error"], "NOTLEADER") }

// look looks for what is gone: old debts at each leader, and new ones at all of them.
func (c *change) look(ctx context.Context, killedAt time.Time, found *Changed) error {
	var late []string // which must be there
	age, next := time.Duration(0), killedAt
	for n, at := range slices.Backward(c.calls) {
		age, next = age+min(next.Sub(at), longestCall), at
		if c.EachReply || age > promise {
			late = append(late, newKey(n))
		}
	}
	has := map[string]bool{}
	for i, s := range c.run {
		fields, err := c.info(ctx, i)
		if err != nil {
			return err
		}
		if fields["role"] != "master" {
			continue
		}
		found.Leaders++
		units, err := Charged(ctx, s.Addr, append(c.keys[:len(c.keys):len(c.keys)], late...)...)
		if err != nil {
			return err
		}
		gone := 0
		for n, u := range units {
			switch {
			case n >= len(c.keys):
				has[late[n-len(c.keys)]] = has[late[n-len(c.keys)]] || u == 1
			case u != 1:
				gone++
			}
		}
		if gone > 0 {
			found.Wrong = append(found.Wrong, fmt.Sprintf("server %d, killed %d after %s: %d of %d old debts are gone", i, c.Killed, c.After, gone, len(c.keys)))
		}
	}
	gone := 0
	for _, key := range late {
		if !has[key] {
			gone++
		}
	}
	if gone > 0 {
		found.Wrong = append(found.Wrong, fmt.Sprintf("killed %d after %s: %d of %d later debts are gone", c.Killed, c.After, gone, len(late)))
	}
	return nil
}
