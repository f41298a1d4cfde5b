// Package attack has the attacks of hostile or careless clients, each a loop of rounds on its own
// connections.
package attack

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"cellserver/lab/soak/internal/target"
)

// Attack is one way to harm a server or its other clients: a payload for each round, or a function.
type Attack struct {
	Name    string
	Pause   time.Duration // between rounds, so that all attacks get their share
	Payload func(*rand.Rand) Batch
	Round   func(*Attacker) error
}

// All returns every attack.
func All() []Attack {
	var all []Attack
	for _, kind := range []func() []Attack{
		execs, globs, scripts, floods, logins, pages, doors, frames, networks, kills, waits, calls, larges,
	} {
		all = append(all, kind()...)
	}
	return all
}

// Find returns the attack with a name.
func Find(name string) (Attack, error) {
	for _, a := range All() {
		if a.Name == name {
			return a, nil
		}
	}
	return Attack{}, fmt.Errorf("there is no attack %q", name)
}

// Batch is commands and their number of replies.
type Batch struct {
	Bytes   []byte
	Replies int
}

// Add appends a command.
func (b *Batch) Add(args ...string) {
	b.Bytes = strconv.AppendInt(append(b.Bytes, '*'), int64(len(args)), 10)
	b.Bytes = append(b.Bytes, "\r\n"...)
	for _, arg := range args {
		b.Bytes = strconv.AppendInt(append(b.Bytes, '$'), int64(len(arg)), 10)
		b.Bytes = append(b.Bytes, "\r\n"...)
		b.Bytes = append(b.Bytes, arg...)
		b.Bytes = append(b.Bytes, "\r\n"...)
	}
	b.Replies++
}

// command returns a batch of one.
func command(args ...string) Batch {
	var b Batch
	b.Add(args...)
	return b
}

// once returns a payload that is built once for all rounds.
func once(build func() Batch) func(*rand.Rand) Batch {
	built := sync.OnceValue(build)
	return func(*rand.Rand) Batch { return built() }
}

// Attacker carries out the rounds of an attack.
type Attacker struct {
	Server   *target.Server
	Networks []string // of target.Networks, chosen for each connection
	Random   *rand.Rand
	Size     int           // factor for the connections of floods of memory
	Hold     time.Duration // how long connections of floods stay open

	Stats   *Stats
	ctx     context.Context // of the round
	dialled atomic.Uint64
}

// Stats are the results of an attack.
type Stats struct {
	Rounds atomic.Int64
	Bytes  atomic.Int64 // sent by whole payloads

	mu   sync.Mutex // guards last
	last string
}

// Last returns the last reply or error.
func (s *Stats) Last() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}

func (s *Stats) note(reply string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = reply
}

// roundWithin ends a round without a reply or a close.
const roundWithin = 20 * time.Second

// Run attacks until ctx is done. Refusals and closed connections are counted, not errors.
func (a *Attacker) Run(ctx context.Context, attack Attack, pause time.Duration) {
	for ctx.Err() == nil {
		wait := pause
		if err := a.round(ctx, attack); err != nil && ctx.Err() == nil {
			a.Stats.note(err.Error())
			wait = max(pause, 10*time.Millisecond) // avoids a tight loop of dials to a server that has ended
		}
		sleep(ctx, wait)
	}
}

func (a *Attacker) round(ctx context.Context, attack Attack) error {
	var cancel context.CancelFunc
	a.ctx, cancel = context.WithTimeout(ctx, roundWithin)
	defer cancel() // closes the round's connections
	if attack.Round == nil {
		attack.Round = func(a *Attacker) error { return a.exchange(attack.Payload(a.Random)) }
	}
	err := attack.Round(a)
	a.Stats.Rounds.Add(1)
	return err
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// anyNetwork chooses a network. Some rounds connect from several goroutines, so it does not draw from Random.
func (a *Attacker) anyNetwork() string {
	random := rand.New(rand.NewPCG(1, a.dialled.Add(1)))
	return a.Networks[random.IntN(len(a.Networks))]
}

// exchange sends a batch on a new connection and reads its replies.
func (a *Attacker) exchange(b Batch) error {
	c, err := a.Server.Dial(a.ctx, a.anyNetwork())
	if err != nil {
		return err
	}
	defer c.Close()
	return a.exchangeOn(c, b)
}

// exchangeOn reads while it writes, as either side could wait for the other.
func (a *Attacker) exchangeOn(c *target.Conn, b Batch) error {
	go func() {
		if n, err := c.Write(b.Bytes); err == nil {
			a.Stats.Bytes.Add(int64(n))
		}
	}()
	for range b.Replies {
		reply, err := c.Reply()
		if err != nil {
			return err
		}
		a.Stats.note(reply)
	}
	return nil
}

// hold opens connections, sends the same on each, and reads nothing until Hold is over.
func (a *Attacker) hold(connections int, b []byte) error {
	var sent sync.WaitGroup
	defer sent.Wait()
	for range connections {
		c, err := a.Server.Dial(a.ctx, a.anyNetwork())
		if err != nil {
			return err
		}
		defer c.Close()
		sent.Go(func() {
			n, _ := c.Write(b)
			a.Stats.Bytes.Add(int64(n))
		})
	}
	sleep(a.ctx, a.Hold)
	return nil
}

// Echo returns the reference attack that only sends bytes, on as many connections as another.
func Echo(connections, bytes int) Attack {
	var b Batch
	for word := strings.Repeat("x", 1<<20); bytes > 0; bytes -= len(word) {
		b.Add("ECHO", word[:min(bytes, len(word))])
	}
	if connections == 1 {
		return Attack{Name: "ECHO", Payload: func(*rand.Rand) Batch { return b }}
	}
	return Attack{Name: "ECHO", Round: func(a *Attacker) error { return a.together(connections, b) }}
}
