package clients

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
)

// Holding is a kind of memory held for a client.
type Holding uint8

const (
	Input        Holding = iota // incomplete command
	InputFree                   // free part of the buffers
	Output                      // unread replies
	Unsynced                    // replies that wait for a sync
	Pieces                      // of a reply, to be given out
	Arguments                   // of the pending command
	Queue                       // commands after MULTI
	WatchedKeys                 // with their watches
	MonitorLines                // lines to be sent
	Messages                    // of a channel, to be sent; each channel has a kind of its own
	holdings     = Messages + maxChannels
)

const maxChannels = 2

type Held [holdings]int

// lines returns what is to be sent to a listener.
func (h *Held) lines() (bytes int) {
	for _, held := range h[MonitorLines:] {
		bytes += held
	}
	return bytes
}

const (
	// ClientBytes is an idle client's memory: session, connection and registration.
	ClientBytes = 1 << 10
	// tlsBytes is the additional memory of an idle TLS client: a goroutine, keys and a record.
	tlsBytes = 28 << 10
	// stepBytes is the resolution of accounts, so that small changes are cheap.
	stepBytes = 1 << 10
)

type account struct {
	mu   sync.Mutex // rank 80: guards all below
	held Held
	sum  int
	left bool // not counted: gone or being closed
}

// Hold records the bytes of a kind now held. If all clients together then exceed their limit, the largest are
// closed. A kind belongs to one goroutine at a time. It returns false for a client that is no longer counted
// and should get nothing.
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

// HoldInput sets Input and InputFree in one step, as they share a buffer.
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

// accountFor returns the client's account, created if bytes justify one, or nil.
func (c *Client) accountFor(bytes int) *account {
	if a := c.account.Load(); a != nil || bytes < stepBytes || c.register == nil {
		return a
	}
	c.account.CompareAndSwap(nil, &account{})
	return c.account.Load()
}

// setLocked returns the growth of the counted bytes.
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

// Memory returns the client's memory by kind and in total, to within a KiB a kind.
func (c *Client) Memory() (held Held, total int) {
	a := c.account.Load()
	if a == nil {
		return held, c.ownBytes()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.held, c.ownBytes() + a.sum
}

func (c *Client) ownBytes() int {
	if c.Peer.TLS {
		return ClientBytes + tlsBytes
	}
	return ClientBytes
}

// leave stops counting the client. It returns the counted bytes, and false if counting had stopped.
func (c *Client) leave() (bytes int, counted bool) {
	c.account.CompareAndSwap(nil, &account{}) // prevents later counting
	a := c.account.Load()
	a.mu.Lock()
	defer a.mu.Unlock()
	counted, a.left = !a.left, true
	return c.ownBytes() + a.sum, counted
}

type memory struct {
	held    atomic.Int64
	max     atomic.Int64 // 0 for none
	evicted atomic.Uint64
	// passAbove is the total that starts the next pass over all clients. It exceeds the limit if the
	// remaining clients are exempt; else each of their bytes would start a pass.
	passAbove atomic.Int64
	passing   sync.Mutex // rank 70: held during a pass
}

// Memory returns the bytes held by all clients except those being closed for it.
func (r *Register) Memory() int64 { return r.memory.held.Load() }

// Evicted returns the number of clients closed for their memory.
func (r *Register) Evicted() uint64 { return r.memory.evicted.Load() }

// MaxMemory returns the common limit; 0 for none.
func (r *Register) MaxMemory() int64 { return r.memory.max.Load() }

// SetMaxMemory sets the common limit, 0 for none, beyond which the largest clients are closed.
func (r *Register) SetMaxMemory(bytes int64) {
	r.memory.max.Store(bytes)
	r.memory.passAbove.Store(bytes)
	r.closeLargest()
}

func (r *Register) count(bytes int) {
	held := r.memory.held.Add(int64(bytes))
	if bytes > 0 {
		r.closeLargest()
	} else if maxBytes := r.memory.max.Load(); held <= maxBytes && r.memory.passAbove.Load() != maxBytes {
		r.memory.passAbove.Store(maxBytes)
	}
}

// closeLargest closes the largest clients until the rest fits. It waits for a pass under way: clients that
// keep growing could otherwise outrun it.
func (r *Register) closeLargest() {
	for r.exceeded() {
		r.memory.passing.Lock()
		if r.exceeded() {
			r.evict(r.memory.max.Load())
		}
		r.memory.passing.Unlock()
	}
}

func (r *Register) exceeded() bool {
	maxBytes := r.memory.max.Load()
	return maxBytes > 0 && r.Memory() > max(maxBytes, r.memory.passAbove.Load())
}

// evictShare is the part of the limit freed by a pass, whose time is proportional to the number of clients.
const evictShare = 16

// evict closes no more than the excess found at its start: clients that grow meanwhile are left to the next
// pass, else smaller ones might be closed.
func (r *Register) evict(maxBytes int64) {
	excess := r.Memory() - (maxBytes - maxBytes/evictShare)
	for _, w := range r.evictable() {
		if excess <= 0 {
			break
		}
		victim := w.Client
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
	if left := r.Memory(); excess > 0 && left > maxBytes {
		r.memory.passAbove.Store(left + maxBytes/evictShare)
	}
}

// dismiss stops counting a connected client. It returns false if counting had stopped.
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

// weighed is a client with its memory a moment ago.
type weighed struct {
	*Client
	bytes int
}

// evictable returns the clients without NoEvict, the largest first.
func (r *Register) evictable() (all []weighed) {
	for _, c := range r.All(func(c *Client) bool { return !c.Info().NoEvict }) {
		_, bytes := c.Memory()
		all = append(all, weighed{c, bytes})
	}
	slices.SortFunc(all, func(a, b weighed) int { return cmp.Compare(b.bytes, a.bytes) })
	return all
}
