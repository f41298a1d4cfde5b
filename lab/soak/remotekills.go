package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"cellserver/e2e/remotetest"
	"cellserver/internal/test/redistest"
)

const (
	// killedClients call 300 keys of all masters, with pauses, so that the machine is not the bottleneck.
	killedClients = 40
	killedKeys    = 300
	killedPause   = 2 * time.Millisecond
	beforeKill    = 2 * time.Second
	afterKill     = 2 * time.Second
	// promotedWithin bounds a failover on any machine.
	promotedWithin = time.Minute
	// longestReply exceeds --store-timeout by far: the policy answers, without waiting for the failover.
	longestReply    = 10 * time.Second
	policyTimeout   = 200 * time.Millisecond
	mostReplicaLag  = 5 * time.Second // older writes have reached the replica
	pollForFailover = 50 * time.Millisecond
)

// killMasters kills masters under load in turn, and compares replies with the replicas' states. With wait,
// replies follow that many replicas.
func (f *fleet) killMasters(ctx context.Context, kills, wait int) (err error) {
	addrs, stop, err := f.start(ctx, "--store-timeout", policyTimeout.String(), "--store-wait", strconv.Itoa(wait))
	defer func() { err = errors.Join(err, stop()) }()
	if err != nil {
		return err
	}
	for i := range kills {
		load := &remotetest.Load{Servers: addrs, Clients: killedClients, Limits: []remotetest.Limit{remotetest.ExactLimit()}, Pause: killedPause}
		for j := range killedKeys {
			load.Keys = append(load.Keys, fmt.Sprintf("kill-%d-%d-%d", wait, i, j))
		}
		if err := f.killOne(ctx, load, wait); err != nil {
			return fmt.Errorf("kill %d with --store-wait %d: %w", i+1, wait, err)
		}
	}
	return nil
}

// killOne kills a master and restarts it as a replica of its successor.
func (f *fleet) killOne(ctx context.Context, load *remotetest.Load, wait int) error {
	if err := f.cluster.Await(ctx); err != nil {
		return err
	}
	victim, err := f.cluster.Master(ctx, load.Keys[0])
	if err != nil {
		return err
	}
	calling, end := context.WithCancel(ctx)
	defer end()
	type outcome struct {
		record *remotetest.Record
		err    error
	}
	done := make(chan outcome, 1)
	go func() {
		record, err := load.Run(calling)
		done <- outcome{record, err}
	}()
	time.Sleep(beforeKill)
	killed := time.Now()
	victim.Kill()
	// the successor needs a replica; a master restarted earlier would be empty and still the master
	if wait > 0 {
		err = errors.Join(f.tookOver(ctx, load.Keys[0], victim), victim.Restart(ctx))
	}
	promoted, probed := f.promoted(ctx, load, killed)
	err = errors.Join(err, probed)
	time.Sleep(afterKill)
	end()
	o := <-done
	if err = errors.Join(err, o.err); err != nil {
		return err
	}
	account, err := f.account(ctx, load, o.record, killed.Sub(o.record.Began))
	if err != nil {
		return err
	}
	account.promoted = promoted
	if wait > 0 {
		account.atRisk = 0
	}
	_, _ = fmt.Fprintf(f.out, "kill -9 of a master, --store-wait %d: %s\n", wait, account)
	if err := account.wrong(o.record); err != nil || wait > 0 {
		return err
	}
	return victim.Restart(ctx)
}

// tookOver waits until another server is the master of a key.
func (f *fleet) tookOver(ctx context.Context, key string, victim *redistest.Process) error {
	for began := time.Now(); ; time.Sleep(pollForFailover) {
		master, err := f.cluster.Master(ctx, key)
		if err == nil && master != victim {
			return nil
		}
		if time.Since(began) > promotedWithin || ctx.Err() != nil {
			return errors.Join(fmt.Errorf("nobody took over from %s", victim.Addr), err)
		}
	}
}

// promoted waits until the cellservers allow calls for the killed master's key, and returns the time since
// the kill.
func (f *fleet) promoted(ctx context.Context, load *remotetest.Load, killed time.Time) (time.Duration, error) {
	for _, addr := range load.Servers {
		client := redis.NewClient(&redis.Options{Addr: addr, Protocol: 2, DisableIdentity: true, MaxRetries: -1})
		limit := remotetest.ExactLimit()
		for {
			// A key of its own in the same slot.
			err := client.Do(ctx, "CL.THROTTLE", "{"+load.Keys[0]+"}probe", limit.MaxBurst, limit.Count, limit.PeriodSeconds).Err()
			if err == nil {
				break
			}
			if time.Since(killed) > promotedWithin || ctx.Err() != nil {
				_ = client.Close()
				return 0, fmt.Errorf("%s after a master was killed, a server still answers: %w", time.Since(killed), err)
			}
			time.Sleep(pollForFailover)
		}
		_ = client.Close()
	}
	return time.Since(killed), nil
}

// killAccount is the cost of a kill.
type killAccount struct {
	allowed, failed, uncharged int64

	lost              int64 // of allowed calls
	atRisk            int64 // allowed shortly before the kill
	promoted, longest time.Duration
	doubled           []string
}

func (a *killAccount) String() string {
	return fmt.Sprintf("%d calls allowed, %d failed and perhaps charged, %d failed and not; %d debits of allowed calls lost, at most %d of the %s before may be; taken over after %s; the longest call %s",
		a.allowed, a.failed, a.uncharged, a.lost, a.atRisk, mostReplicaLag, a.promoted.Round(time.Millisecond), a.longest.Round(time.Millisecond))
}

// account compares every key's state with its clients' replies.
func (f *fleet) account(ctx context.Context, load *remotetest.Load, r *remotetest.Record, killed time.Duration) (*killAccount, error) {
	a := &killAccount{longest: r.Longest()}
	var addrs []string
	for _, p := range f.cluster.All() {
		addrs = append(addrs, p.Addr)
	}
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs, Protocol: 2, DisableIdentity: true})
	defer func() { _ = client.Close() }()
	for i, key := range load.Keys {
		debits, err := remotetest.Debits(ctx, client, key, r.Began)
		if err != nil {
			return nil, err
		}
		allowed, failed := remotetest.Count(r.Calls[i], remotetest.Allowed), remotetest.Count(r.Calls[i], remotetest.Failed)
		a.allowed, a.failed, a.uncharged = a.allowed+allowed, a.failed+failed, a.uncharged+remotetest.Count(r.Calls[i], remotetest.Uncharged)
		a.lost += max(0, allowed-debits)
		if debits > allowed+failed {
			a.doubled = append(a.doubled, key+": "+strconv.FormatInt(debits, 10)+" debits of "+strconv.FormatInt(allowed+failed, 10)+" calls")
		}
		for _, c := range r.Calls[i] {
			if c.Outcome == remotetest.Allowed && c.Replied < killed && c.Replied > killed-mostReplicaLag {
				a.atRisk++
			}
		}
	}
	return a, nil
}

// wrong returns an error for losses beyond those of asynchronous replication, and for double charges.
func (a *killAccount) wrong(r *remotetest.Record) error {
	var found []string
	if len(a.doubled) > 0 {
		found = append(found, "charged twice:\n"+strings.Join(a.doubled, "\n"))
	}
	if a.lost > a.atRisk {
		found = append(found, fmt.Sprintf("%d debits are lost, at most %d may be", a.lost, a.atRisk))
	}
	if a.longest > longestReply {
		found = append(found, fmt.Sprintf("a call took %s", a.longest))
	}
	for text := range r.Errors {
		if !strings.HasPrefix(text, "STOREDOWN ") {
			found = append(found, "an error that is not the store's: "+text)
		}
	}
	if len(found) == 0 {
		return nil
	}
	return errors.New(strings.Join(found, "\n"))
}
