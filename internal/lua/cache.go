package lua

import (
	"container/heap"
	"crypto/sha1"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"

	"cellserver/internal/lua/native"
)

// evaluatedShare: this part of the cache is for scripts seen by EVAL only, the rest for those of SCRIPT LOAD,
// so that neither displaces the other, on which clients may count.
const evaluatedShare = 4

// cache maps the SHA-1 of a source to its compiled script.
type cache struct {
	maxSourceBytes int
	commands       native.Commands
	compiled       atomic.Int64 // number of compiled scripts, the cache's clock

	mu        sync.RWMutex // rank 90: guards the rest, and Script.at
	scripts   map[scriptKey]*Script
	evaluated partition // seen by EVAL only
	loaded    partition // by SCRIPT LOAD
}

func newCache(c Config) *cache {
	evaluatedBytes := c.MaxCacheBytes / evaluatedShare
	commands := native.Commands{}
	for _, name := range c.Native {
		commands[name] = true
	}
	return &cache{
		maxSourceBytes: c.MaxSourceBytes,
		commands:       commands,
		scripts:        map[scriptKey]*Script{},
		evaluated:      newPartition(evaluatedBytes, c.MaxScripts),
		loaded:         newPartition(c.MaxCacheBytes-evaluatedBytes, c.MaxLoaded),
	}
}

// Flush drops all scripts. Runs go on.
func (c *cache) Flush() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, s := range c.scripts {
		s.gone.Store(true)
	}
	c.scripts = map[scriptKey]*Script{}
	c.evaluated = newPartition(c.evaluated.maxBytes, c.evaluated.maxScripts)
	c.loaded = newPartition(c.loaded.maxBytes, c.loaded.maxScripts)
}

// CacheStats returns the number and bytes of cached scripts.
func (c *cache) CacheStats() (scripts, bytes int) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return len(c.scripts), c.evaluated.bytes + c.loaded.bytes
}

// lookup finds a script and counts a use.
func (c *cache) lookup(key scriptKey) *Script {
	c.mu.RLock()
	s := c.scripts[key]
	c.mu.RUnlock()
	if s != nil {
		c.use(s)
	}
	return s
}

// use counts a use. It is written only if a script was compiled since, so that processors seldom contend.
func (c *cache) use(s *Script) {
	if now := c.compiled.Load(); s.usedAt.Load() != now {
		s.usedAt.Store(now)
	}
}

func (c *cache) isLoaded(key scriptKey) *Script {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if s := c.scripts[key]; s != nil && s.at.partition == &c.loaded {
		return s
	}
	return nil
}

// get returns a compiled script and caches it: without load, as long as there is space.
func (c *cache) get(source []byte, load bool) (*Script, error) {
	key := scriptKey(sha1.Sum(source))
	s := c.lookup(key)
	if s == nil {
		if len(source) > c.maxSourceBytes {
			return nil, errors.New("ERR script is longer than " + strconv.Itoa(c.maxSourceBytes) + " bytes")
		}
		var err error
		if s, err = compile(key, source, c.commands); err != nil {
			return nil, err
		}
	} else if !load {
		return s, nil
	}
	return c.put(s, load)
}

func (c *cache) put(s *Script, load bool) (*Script, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.scripts[s.key]
	if known != nil {
		s = known
	}
	if s.at.partition == &c.loaded || known != nil && !load {
		return s, nil
	}
	into := &c.evaluated
	if load {
		into = &c.loaded
	}
	if s.costBytes > into.maxBytes {
		if !load {
			return s, nil // runs uncached
		}
		return nil, errors.New("ERR the script takes " + strconv.Itoa(s.costBytes) + " bytes once it is compiled, of " +
			strconv.Itoa(into.maxBytes) + " that all loaded scripts may take")
	}
	if known != nil {
		s.at.partition.remove(s)
	}
	for !into.fits(s.costBytes) {
		evicted := into.evict()
		evicted.gone.Store(true)
		delete(c.scripts, evicted.key)
	}
	c.scripts[s.key] = s
	into.add(s, c.compiled.Add(1)-1)
	return s, nil
}

// partition is a part of the cache. Scripts used since their arrival wait in one queue, unused ones in
// another, which is evicted first.
type partition struct {
	maxBytes, maxScripts int

	bytes         int
	unused, inUse *queue
}

// unusedShare: this part of a partition is reserved for unused scripts, so that a client can call what it has
// just loaded.
const unusedShare = 8

func newPartition(maxBytes, maxScripts int) partition {
	return partition{maxBytes: maxBytes, maxScripts: maxScripts, unused: &queue{}, inUse: &queue{}}
}

func (p *partition) scripts() int { return p.unused.Len() + p.inUse.Len() }

func (p *partition) fits(costBytes int) bool {
	return p.bytes+costBytes <= p.maxBytes && p.scripts() < p.maxScripts
}

func (p *partition) add(s *Script, now int64) {
	s.usedAt.Store(now)
	p.bytes += s.costBytes
	p.push(s, p.unused)
}

func (p *partition) push(s *Script, q *queue) {
	s.at = place{partition: p, queue: q, since: s.usedAt.Load()}
	heap.Push(q, s)
}

func (p *partition) remove(s *Script) {
	heap.Remove(s.at.queue, s.at.index)
	s.at = place{}
	p.bytes -= s.costBytes
}

// evict removes a script from a nonempty partition.
func (p *partition) evict() *Script {
	for {
		from := p.inUse
		if from.Len() == 0 || p.unused.Len() > p.scripts()/unusedShare {
			from = p.unused
		}
		s := (*from)[0]
		if s.usedAt.Load() == s.at.since {
			p.remove(s)
			return s
		}
		heap.Remove(from, 0)
		p.push(s, p.inUse)
	}
}

// queue is a heap of scripts by last noticed use, the oldest first. Uses are noticed at the front, so lookups
// change no queue, and an eviction costs no more than there were uses.
type queue []*Script

type place struct {
	partition *partition // nil outside the cache
	queue     *queue
	index     int
	since     int64 // last noticed use
}

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].at.since < q[j].at.since }

func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].at.index, q[j].at.index = i, j
}

func (q *queue) Push(x any) {
	s := x.(*Script)
	s.at.index = len(*q)
	*q = append(*q, s)
}

func (q *queue) Pop() any {
	last := len(*q) - 1
	s := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	return s
}
