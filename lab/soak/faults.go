package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"cellserver/internal/test/patience"
	"cellserver/lab/soak/internal/charges"
	"cellserver/lab/soak/internal/link"
)

// fault is a way in which a leader is replaced.
type fault struct {
	name      string
	need      charges.Need
	unwatched bool                                          // the old leader goes on meanwhile
	before    func(ctx context.Context, r *round) error     // the load; may be nil
	happen    func(ctx context.Context, r *round) error     // under load, up to the promotion
	after     func(ctx context.Context, r *round) error     // the check of the new leader; may be nil
	inRedis   func(p *redisPair, ctx context.Context) error // the same there; may be nil
}

// allFaults returns them in the order of rounds: the first ones are those of a short run.
func allFaults() []fault {
	return []fault{
		{name: "kill", happen: killed, inRedis: (*redisPair).killed},
		{name: "planned", need: charges.Answered, happen: planned, inRedis: (*redisPair).planned},
		{name: "stop with min-replicas", before: requireReplica, happen: stopped, after: strayWithMinimum},
		{name: "third server", happen: thirdServer, after: thirdEnds},
		{name: "stop", happen: stopped, after: stray, inRedis: (*redisPair).stopped},
		{name: "cut and slow link", happen: cutAndSlow},
		{name: "split", unwatched: true, happen: split, after: strayHealed},
		{name: "full disk of the leader", happen: fullDiskOfLeader},
		{name: "full disk of the replica", happen: fullDiskOfReplica, after: diskMended},
		{name: "replica killed before", happen: replicaKilled},
	}
}

// chosenFaults returns the faults with these names, or all.
func chosenFaults(names []string) (chosen []fault, err error) {
	all := allFaults()
	if len(names) == 0 {
		return all, nil
	}
	for _, name := range names {
		i := slices.IndexFunc(all, func(f fault) bool { return f.name == name })
		if i < 0 {
			return nil, fmt.Errorf("there is no fault %q", name)
		}
		chosen = append(chosen, all[i])
	}
	return chosen, nil
}

// killed is a crash of the leader.
func killed(ctx context.Context, r *round) error {
	r.at = time.Now()
	r.old.kill()
	return r.to.lead(ctx)
}

// planned has the leader hand over.
func planned(ctx context.Context, r *round) error {
	r.at = time.Now()
	if err := errors.Join(r.to.lead(ctx), r.to.awaitInfo(ctx, "role", "master"), r.old.awaitInfo(ctx, "role", "slave")); err != nil {
		return err
	}
	now, err := r.to.info(ctx)
	if now["cell_handovers"] == r.before[r.to]["cell_handovers"] {
		r.need = charges.Waited
		r.sum.late++
	}
	return err
}

func requireReplica(ctx context.Context, r *round) error {
	if err := r.old.setMinReplicas(ctx, 1); err != nil {
		return err
	}
	return r.old.awaitInfo(ctx, "min_slaves_good_slaves", "1")
}

// stopped stops the leader, as a machine that hangs.
func stopped(ctx context.Context, r *round) error {
	r.at = time.Now()
	if err := r.old.stop(); err != nil {
		return err
	}
	return r.to.lead(ctx)
}

// stray has clients of the old leader call while it is stopped, and lets it go on.
func stray(ctx context.Context, r *round) error {
	_, err := r.stray(ctx, r.old.goOn)
	return err
}

// strayHealed lets the old leader's replicas reach it again, and with them what was sent meanwhile.
func strayHealed(ctx context.Context, r *round) error {
	allowed, err := r.stray(ctx, func() error { return nil })
	if allowed == 0 {
		r.wrong = append(r.wrong, "the old leader refused calls while nobody could reach it")
	}
	r.old.link.Heal()
	return errors.Join(err, sleep(ctx, afterFailover))
}

// strayWithMinimum is stray, and nothing may be allowed.
func strayWithMinimum(ctx context.Context, r *round) error {
	allowed, err := r.stray(ctx, r.old.goOn)
	if allowed > 0 {
		r.wrong = append(r.wrong, fmt.Sprintf("the old leader allowed %d calls after %s without its replica", allowed, maxLag))
	}
	return errors.Join(err, r.old.setMinReplicas(ctx, 0))
}

func (r *round) stray(ctx context.Context, goOn func() error) (allowed int, err error) {
	type counts struct{ allowed, refused int }
	done := make(chan counts, 1)
	go func() {
		allowed, refused := r.load.Stray(ctx, r.old.server.TCP)
		done <- counts{allowed, refused}
	}()
	err = sleep(ctx, maxLag)
	err = errors.Join(err, goOn())
	c := <-done
	r.sum.strayed, r.sum.refused = r.sum.strayed+c.allowed, r.sum.refused+c.refused
	return c.allowed, err
}

// cutAndSlow cuts the link for a moment and slows it down, and then the leader crashes.
func cutAndSlow(ctx context.Context, r *round) error {
	r.old.link.Cut()
	err := sleep(ctx, 400*time.Millisecond)
	r.old.link.Heal()
	const perSecond = 400 << 10
	r.old.link.Slow(20*time.Millisecond, perSecond)
	err = errors.Join(err, sleep(ctx, time.Second))
	err = errors.Join(err, killed(ctx, r))
	r.old.link.Heal()
	return err
}

// split has the replica take over while nobody but clients reaches the leader.
func split(ctx context.Context, r *round) error {
	r.old.link.Hold()
	err := sleep(ctx, afterFailover)
	r.at = time.Now()
	return errors.Join(err, r.to.lead(ctx), r.to.awaitInfo(ctx, "role", "master"))
}

// fullDiskOfLeader has the leader run without its disk before it crashes.
func fullDiskOfLeader(ctx context.Context, r *round) error {
	if err := r.onFullDisk(ctx, r.old); err != nil {
		return err
	}
	return killed(ctx, r)
}

// fullDiskOfReplica has a replica take over that runs without its disk.
func fullDiskOfReplica(ctx context.Context, r *round) error {
	if err := r.onFullDisk(ctx, r.to); err != nil {
		return err
	}
	return killed(ctx, r)
}

// onFullDisk fills a disk, and sees that replication goes on.
func (r *round) onFullDisk(ctx context.Context, m *member) error {
	if err := m.fillDisk(true); err != nil {
		return err
	}
	const beyondSync = 1500 * time.Millisecond
	err := sleep(ctx, beyondSync)
	before := r.load.Answered()
	err = errors.Join(err, caughtUp(ctx, r.old, 1))
	if !patience.Until(func() bool { return r.load.Answered() > before || ctx.Err() != nil }) {
		r.wrong = append(r.wrong, "no calls are answered while the disk is full")
	}
	return err
}

func diskMended(_ context.Context, r *round) error { return r.to.fillDisk(false) }

// replicaKilled kills the replica, which comes back before the leader crashes.
func replicaKilled(ctx context.Context, r *round) error {
	addr := r.to.server.TCP
	r.to.kill()
	err := r.to.start(ctx, "--addr", addr)
	if err == nil {
		err = r.to.follow(ctx, r.old)
	}
	if err != nil {
		return err
	}
	return errors.Join(r.to.inStep(ctx), sleep(ctx, leastBefore), killed(ctx, r))
}

// thirdServer has a third server attach, which is killed in its full sync and comes back. After the leader's
// crash the one that has more takes over, as Sentinel chooses, and the other one follows it.
func thirdServer(ctx context.Context, r *round) error {
	if err := r.killedInSync(ctx); err != nil {
		return err
	}
	if err := r.third.start(ctx); err != nil {
		return err
	}
	r.watch.add(r.third.server.TCP)
	if err := errors.Join(r.third.follow(ctx, r.old), r.third.inStep(ctx), sleep(ctx, leastBefore)); err != nil {
		return err
	}
	r.at = time.Now()
	r.old.kill()
	for _, m := range []*member{r.to, r.third} {
		if err := m.awaitInfo(ctx, "master_link_status", "down"); err != nil {
			return err
		}
	}
	if r.third.offset(ctx) > r.to.offset(ctx) {
		r.to, r.third = r.third, r.to
	}
	return errors.Join(r.to.lead(ctx), r.third.follow(ctx, r.to))
}

// killedInSync starts the third server behind a slow link, and kills it before it has everything.
func (r *round) killedInSync(ctx context.Context) error {
	slow, err := link.Open()
	if err != nil {
		return err
	}
	defer slow.Close()
	const perSecond = 20 << 10
	slow.Slow(0, perSecond)
	slow.Lead(r.old.server.TCP)
	if err := r.third.start(ctx); err != nil {
		return err
	}
	host, port, _ := strings.Cut(slow.Addr, ":")
	if err := r.third.ask.Do(ctx, "REPLICAOF", host, port).Err(); err != nil {
		return err
	}
	patience.Until(func() bool { // a machine may be so slow that all is over when it is asked
		fields, asked := r.third.info(ctx)
		err = asked
		return err != nil || fields["master_sync_in_progress"] == "1" || fields["master_link_status"] == "up"
	})
	err = errors.Join(err, sleep(ctx, leastBefore))
	r.third.kill()
	return err
}

// thirdEnds compares the one that was not promoted, and ends it.
func thirdEnds(ctx context.Context, r *round) error {
	if err := errors.Join(r.third.inStep(ctx), caughtUp(ctx, r.to, 1)); err != nil {
		return err
	}
	lines, err := r.load.Differ(ctx, r.to.server.TCP, r.third.server.TCP)
	for _, line := range lines {
		r.wrong = append(r.wrong, "leader and third server differ: "+line)
	}
	r.third.kill()
	return err
}
