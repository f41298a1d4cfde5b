package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"cellserver/internal/test/patience"
	"cellserver/internal/test/redistest"
)

// redisPair is two redis-servers that suffer the same faults.
type redisPair struct {
	master, replica *redistest.Process
	at              time.Time // of the fault
	old             *redistest.Process
	resume          func() // ends a stop; nil without one
}

func openRedisPair(ctx context.Context, dir string) (*redisPair, error) {
	p := &redisPair{}
	for i, to := range []**redistest.Process{&p.master, &p.replica} {
		own := filepath.Join(dir, "redis"+strconv.Itoa(i))
		if err := os.Mkdir(own, 0o700); err != nil {
			return nil, err
		}
		var err error
		if *to, err = redistest.Launch(ctx, own, "--repl-diskless-sync-delay", "0"); err != nil {
			p.close()
			return nil, err
		}
	}
	return p, redisFollow(ctx, p.replica, p.master)
}

func (p *redisPair) close() {
	for _, s := range []*redistest.Process{p.master, p.replica} {
		if s != nil {
			s.Close()
		}
	}
}

// redisFollow makes a server a replica, and waits until it has everything.
func redisFollow(ctx context.Context, s, master *redistest.Process) error {
	host, port, _ := net.SplitHostPort(master.Addr) // of its own making
	if err := s.Client().Do(ctx, "REPLICAOF", host, port).Err(); err != nil {
		return err
	}
	return awaitRedis(ctx, s, "master_link_status:up")
}

func awaitRedis(ctx context.Context, s *redistest.Process, text string) (err error) {
	met := patience.Until(func() bool {
		var info string
		info, err = s.Client().Info(ctx, "replication").Result()
		return err != nil || strings.Contains(info, text)
	})
	if err == nil && !met {
		err = fmt.Errorf("redis-server: no %s", text)
	}
	return err
}

// round brings a fault about under load, and returns the time without a master.
func (p *redisPair) round(ctx context.Context, happen func(*redisPair, context.Context) error) (time.Duration, error) {
	w := startWatch(ctx, watchIncrease, watchNumber, p.master.Addr, p.replica.Addr)
	defer w.end()
	loading, end := context.WithCancel(ctx)
	defer end()
	var load sync.WaitGroup
	for i := range failoverClients {
		load.Go(func() { increase(loading, p.master.Addr, i) })
	}
	p.old = p.master
	if err := errors.Join(sleep(ctx, leastBefore), happen(p, ctx)); err != nil {
		return 0, err
	}
	without, ok := w.without(ctx, p.at, p.old.Addr, p.replica.Addr)
	end()
	load.Wait()
	if !ok {
		return 0, errors.New("the promoted redis-server allows nothing")
	}
	p.master, p.replica = p.replica, p.old
	if p.resume != nil {
		p.resume()
		p.resume = nil
	}
	return without, p.comeBack(ctx)
}

// increase calls as the load of a failover does.
func increase(ctx context.Context, addr string, seed int) {
	c := redis.NewClient(&redis.Options{Addr: addr, Protocol: 2, DisableIdentity: true, MaxRetries: -1, ContextTimeoutEnabled: true})
	defer func() { _ = c.Close() }()
	random := newRandom(seed)
	for ctx.Err() == nil {
		p := c.Pipeline()
		for range 1 + random.IntN(40) {
			p.Incr(ctx, fmt.Sprintf("k%d", random.IntN(failoverKeys)))
		}
		if _, err := p.Exec(ctx); err != nil {
			return
		}
	}
}

// comeBack has the old master follow.
func (p *redisPair) comeBack(ctx context.Context) error {
	if err := p.replica.Client().Ping(ctx).Err(); err != nil {
		if err := p.replica.Restart(ctx); err != nil {
			return err
		}
	}
	return redisFollow(ctx, p.replica, p.master)
}

func (p *redisPair) promote(ctx context.Context) error {
	return p.replica.Client().Do(ctx, "REPLICAOF", "NO", "ONE").Err()
}

func (p *redisPair) killed(ctx context.Context) error {
	p.at = time.Now()
	p.master.Kill()
	return p.promote(ctx)
}

func (p *redisPair) stopped(ctx context.Context) error {
	info, err := p.master.Client().Info(ctx, "server").Result()
	if err != nil {
		return err
	}
	_, after, _ := strings.Cut(info, "process_id:")
	pid := number(after)
	p.at = time.Now()
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		return err
	}
	p.resume = func() { _ = syscall.Kill(pid, syscall.SIGCONT) }
	return p.promote(ctx)
}

// planned is Redis's own planned change.
func (p *redisPair) planned(ctx context.Context) error {
	p.at = time.Now()
	if err := p.master.Client().Do(ctx, "FAILOVER").Err(); err != nil {
		return err
	}
	return awaitRedis(ctx, p.replica, "role:master")
}
