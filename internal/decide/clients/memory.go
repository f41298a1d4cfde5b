package clients

import (
	"container/heap"
	"slices"
	"sync"
	"sync/atomic"
)

// Holding is a kind of memory that a client makes the server hold.
type Holding uint8

// What a client holds.
const (
	Input        Holding = iota // bytes of a command that is not complete
	InputFree                   // what its buffers have beside them
	Output                      // replies that it has not read
	Unsynced                    // replies that it is not sent before a sync
	Arguments                   // of the command that it waits for
	Queue                       // commands behind MULTI
	WatchedKeys                 // and what notices their changes
	MonitorLines                // that it is to be sent
	holdings
)

// Held is how many bytes a client holds of each kind.
type Held [holdings]int

const (
	// ClientBytes is what a client costs that holds nothing else: its session, its connection and its place in the
	// register.
	ClientBytes = 1 << 10
	// tlsBytes is what a client over TLS costs beyond that: a goroutine, keys and a record.
	tlsBytes = 28 << 10
	// stepBytes is how far what is known of a client may differ from what it holds, so that small changes cost little.
	stepBytes = 1 << 10
)

// account is what is known of a client's memory.
type account struct {
	mu   sync.Mutex // guards all below
	held Held
	sum  int
	left bool // not counted any more: the client has gone, or is about to
}

// Hold notes how many bytes of a kind the client holds now. Those who hold most are closed if all clients together then
// hold more than they may. A kind belongs to one goroutine at a time. It is false for a client that is not counted any more,
// and had better be given nothing.
func (c *Client) Hold(kind Holding, bytes int) (counted bool) {
	a := c.accountFor(bytes)
	if a == nil {
		return true
	}
	a.mu.Lock()
	grown, counted := a.setLocked(kind, bytes), !a.left
	a.mu.Unlock()
	c.count(grown)
	return counted
}

// HoldInput is Hold of Input and InputFree as one step: what fills the one is taken from the other.
func (c *Client) HoldInput(bytes, free int) {
	if a := c.accountFor(bytes + free); a != nil {
		a.mu.Lock()
		grown := a.setLocked(Input, bytes) + a.setLocked(InputFree, free)
		a.mu.Unlock()
		c.count(grown)
	}
}

func (c *Client) count(grown int) {
	if grown != 0 {
		c.register.count(grown)
	}
}

// accountFor returns the client's account, which it gets if it has none and so many bytes are worth one; else nil.
func (c *Client) accountFor(bytes int) *account {
	if a := c.account.Load(); a != nil || bytes < stepBytes || c.register == nil {
		return a
	}
	c.account.CompareAndSwap(nil, &account{})
	return c.account.Load()
}

// setLocked returns by how much what is counted of the client has grown.
func (a *account) setLocked(kind Holding, bytes int) (grown int) {
	change := bytes - a.held[kind]
	if bytes > 0 && change < stepBytes && change > -stepBytes {
		return 0
	}
	a.held[kind] = bytes
	a.sum += change
	if a.left {
		return 0
	}
	return change
}

// Memory returns what the client holds, and all that it costs, within a KiB of each kind.
func (c *Client) Memory() (held Held, total int) {
	a := c.account.Load()
	if a == nil {
		return held, c.ownBytes()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.held, c.ownBytes() + a.sum
}

// ownBytes is what the client costs that holds nothing.
func (c *Client) ownBytes() int {
	if c.Peer.TLS {
		return ClientBytes + tlsBytes
	}
	return ClientBytes
}

// leave has the client not counted any more. It returns what was counted of it, and false if that was nothing already.
func (c *Client) leave() (bytes int, counted bool) {
	c.account.CompareAndSwap(nil, &account{}) // so that nothing is counted later either
	a := c.account.Load()
	a.mu.Lock()
	defer a.mu.Unlock()
	counted, a.left = !a.left, true
	return c.ownBytes() + a.sum, counted
}

// memory is what all clients hold together.
type memory struct {
	held    atomic.Int64
	max     atomic.Int64 // 0 for no limit
	evicted atomic.Uint64
	// passAbove is how much there must be before the next look at all clients. It is beyond the limit if those that are
	// left may not be closed: or each of their bytes would have all clients looked at.
	passAbove atomic.Int64
	passing   sync.Mutex // held by who looks
}

// Memory returns how many bytes all clients hold, without those that are being closed for it.
func (r *Register) Memory() int64 { return r.memory.held.Load() }

// Evicted returns how many clients were closed for the memory that they held.
func (r *Register) Evicted() uint64 { return r.memory.evicted.Load() }

// MaxMemory returns the limit of what all clients hold together; 0 for none.
func (r *Register) MaxMemory() int64 { return r.memory.max.Load() }

// SetMaxMemory limits what all clients hold together, from now on; 0 for no limit. Beyond it those are closed that hold
// most.
func (r *Register) SetMaxMemory(bytes int64) {
	r.memory.max.Store(bytes)
	r.memory.passAbove.Store(bytes)
	r.fit()
}

// count counts what is held more, or less.
func (r *Register) count(bytes int) {
	held := r.memory.held.Add(int64(bytes))
	if bytes > 0 {
		r.fit()
	} else if most := r.memory.max.Load(); held <= most && r.memory.passAbove.Load() != most {
		r.memory.passAbove.Store(most)
	}
}

// fit has the clients closed that hold most, until the others hold no more than they may together. If somebody does so
// already, it waits: those that went on growing meanwhile could keep who looks from ever getting its turn.
func (r *Register) fit() {
	for r.exceeded() {
		r.memory.passing.Lock()
		if r.exceeded() {
			r.evict(r.memory.max.Load())
		}
		r.memory.passing.Unlock()
	}
}

func (r *Register) exceeded() bool {
	most := r.memory.max.Load()
	return most > 0 && r.Memory() > max(most, r.memory.passAbove.Load())
}

// evictShare is how much less than the limit is left, as a part of it: a look at all clients takes time in proportion to
// their number, and is then good for as many bytes.
const evictShare = 16

// evict closes no more than what it finds there to be too much: who grows meanwhile is found by the next look, or a
// client would be closed that holds less by then.
func (r *Register) evict(most int64) {
	excess := r.Memory() - (most - most/evictShare)
	candidates := r.byMemory()
	for excess > 0 && candidates.Len() > 0 {
		victim := heap.Pop(&candidates).(weighed).client
		bytes, ok := r.dismiss(victim)
		if !ok {
			continue
		}
		excess -= int64(bytes)
		victim.Conn.Evict()
		r.memory.evicted.Add(1)
		if r.OnEvict != nil {
			r.OnEvict(victim, bytes)
		}
	}
	if left := r.Memory(); excess > 0 && left > most {
		r.memory.passAbove.Store(left + most/evictShare)
	}
}

// dismiss has a client that is connected not counted any more. It is false if that was so already.
func (r *Register) dismiss(c *Client) (bytes int, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.byID[c.ID] != c {
		return 0, false
	}
	if bytes, ok = c.leave(); ok {
		r.count(-bytes)
	}
	return bytes, ok
}

// weighed is a client that may be closed, and what it held a moment ago.
type weighed struct {
	client *Client
	bytes  int
}

// byMemory returns the clients that may be closed for their memory, the one that holds most first.
func (r *Register) byMemory() heaviest {
	r.mu.Lock()
	h := make(heaviest, 0, len(r.byID))
	for _, c := range r.byID {
		h = append(h, weighed{client: c})
	}
	r.mu.Unlock()
	h = slices.DeleteFunc(h, func(w weighed) bool { return w.client.Info().NoEvict })
	for i := range h {
		_, h[i].bytes = h[i].client.Memory()
	}
	heap.Init(&h)
	return h
}

// heaviest is a heap.
type heaviest []weighed

func (h heaviest) Len() int           { return len(h) }
func (h heaviest) Less(i, j int) bool { return h[i].bytes > h[j].bytes }
func (h heaviest) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }
func (h *heaviest) Push(x any)        { *h = append(*h, x.(weighed)) }
func (h *heaviest) Pop() any {
	last := len(*h) - 1
	w := (*h)[last]
	*h = (*h)[:last]
	return w
}
