package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9/logging"

	"cellserver/internal/test/killtest"
)

type changeKillsOptions struct {
	kills    int
	every    time.Duration
	together int
	binary   string
}

func runChangeKills(ctx context.Context, args []string, stdout io.Writer) error {
	var o changeKillsOptions
	fs := newFlags("changekills", "Kills either server of a pair around a planned change of leader, starts it again, and looks for debts that are gone.", stdout)
	fs.IntVar(&o.kills, "kills", 200, "how often; every second one is the old leader's")
	fs.DurationVar(&o.every, "every", 20*time.Millisecond, "time by which the next two are later, from the beginning of the change")
	fs.IntVar(&o.together, "together", 2, "number of pairs at a time")
	fs.StringVar(&o.binary, "binary", "", "`file` of a server, instead of one built without the race detector")
	if err := parse(fs, args); err != nil {
		return err
	}
	logging.Disable() // go-redis's, of the failures that are waited for
	dir, err := workIn(ctx, &o.binary, false)
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	c := &changeKills{options: o, dir: dir}
	err = c.run(ctx)
	c.report(stdout)
	return err
}

// changeKills are many changes of the leader of as many pairs.
type changeKills struct {
	options changeKillsOptions
	dir     string

	mu                            sync.Mutex // guards all below
	done, twoLeaders, told, calls int
	wrong                         []string
}

func (c *changeKills) run(ctx context.Context) error {
	numbers := make(chan int)
	var all sync.WaitGroup
	for range max(1, c.options.together) {
		all.Go(func() {
			for i := range numbers {
				c.note(i, c.once(ctx, i))
			}
		})
	}
	for i := range c.options.kills {
		numbers <- i
	}
	close(numbers)
	all.Wait()
	if len(c.wrong) > 0 {
		return errors.New(strings.Join(c.wrong, "\n"))
	}
	return ctx.Err()
}

func (c *changeKills) note(i int, err error) {
	if err != nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.wrong = append(c.wrong, fmt.Sprintf("kill %d: %v", i+1, err))
	}
}

// once is one change. Pairs differ in their fsync interval, and in whether the servers know each other.
func (c *changeKills) once(ctx context.Context, i int) (err error) {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	dir := filepath.Join(c.dir, strconv.Itoa(i))
	defer func() { _ = os.RemoveAll(dir) }()
	interval, byPeer := []string{"1s", "0"}[i/2%2], i%3 == 0
	args := []string{"--fsync-interval", interval}
	if interval == "0" {
		args = append(args, "--fsync-timeout", "1h") // a busy disk is not a loss
	}
	var pair [2]*member
	for s := range pair {
		if pair[s], err = newMember(strconv.Itoa(s), c.options.binary, dir, true, args...); err != nil {
			return err
		}
		defer pair[s].close()
	}
	change := killtest.Change{
		Killed: 1 - i%2, After: time.Duration(i/2) * c.options.every, EachReply: interval == "0",
		Start: func(ctx context.Context, server int) (killtest.Running, error) {
			var args []string
			switch m := pair[1-server]; {
			case byPeer:
				args = []string{"--peer", m.link.Addr, "--peer-wait", "100ms"}
			case server == 1:
				args = []string{"--replica-of", m.link.Addr}
			}
			if err := pair[server].start(ctx, args...); err != nil {
				return killtest.Running{}, err
			}
			return killtest.Running{Addr: pair[server].server.TCP, Kill: pair[server].kill}, nil
		},
	}
	found, err := change.Do(ctx)
	c.add(&found, fmt.Sprintf("kill %d, interval %s, by --peer: %t", i+1, interval, byPeer))
	return err
}

func (c *changeKills) add(found *killtest.Changed, what string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.done++
	c.calls += found.Calls
	if found.Leaders > 1 {
		c.twoLeaders++
	}
	if found.Told {
		c.told++
	}
	for _, w := range found.Wrong {
		c.wrong = append(c.wrong, what+": "+w)
	}
}

func (c *changeKills) report(out io.Writer) {
	_, _ = fmt.Fprintf(out, "%d kills around a planned change, up to %s after its beginning: %d confirmed calls on the new leaders; %d with something gone; %d ended with two leaders, and %d until somebody said which server leads\n",
		c.done, (time.Duration(c.options.kills/2) * c.options.every).Round(time.Millisecond), c.calls, len(c.wrong), c.twoLeaders, c.told)
}
