package lua

import (
	"crypto/sha1"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
)

// A cache holds compiled scripts by the SHA-1 of their source. Those of SCRIPT LOAD stay until they are flushed, as
// clients count on it; those that only EVAL has seen make room for others, the longest unused first.
type cache struct {
	maxSourceBytes, maxBytes, maxEvaluated int

	ticks atomic.Int64

	mu        sync.RWMutex // guards the rest, and Script.kept
	scripts   map[scriptKey]*Script
	bytes     int
	evaluated int // scripts that are not kept
}

func newCache(maxSourceBytes, maxBytes, maxEvaluated int) *cache {
	return &cache{
		maxSourceBytes: maxSourceBytes,
		maxBytes:       maxBytes,
		maxEvaluated:   maxEvaluated,
		scripts:        map[scriptKey]*Script{},
	}
}

func (c *cache) flush() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.scripts, c.bytes, c.evaluated = map[scriptKey]*Script{}, 0, 0
}

func (c *cache) stats() (scripts, bytes int) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return len(c.scripts), c.bytes
}

func (c *cache) lookup(key scriptKey) *Script {
	c.mu.RLock()
	s := c.scripts[key]
	c.mu.RUnlock()
	if s != nil {
		s.lastUsed.Store(c.ticks.Add(1))
	}
	return s
}

func (c *cache) get(source []byte, keep bool) (*Script, error) {
	key := scriptKey(sha1.Sum(source))
	s := c.lookup(key)
	if s == nil {
		if len(source) > c.maxSourceBytes {
			return nil, errors.New("ERR script is longer than " + strconv.Itoa(c.maxSourceBytes) + " bytes")
		}
		var err error
		if s, err = compile(key, source); err != nil {
			return nil, err
		}
	} else if !keep {
		return s, nil
	}
	return c.put(s, keep)
}

func (c *cache) put(s *Script, keep bool) (*Script, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	known := c.scripts[s.key]
	if known != nil {
		s = known
	} else {
		if !c.makeRoomLocked(s.costBytes, !keep) {
			if !keep {
				return s, nil // it runs, uncached
			}
			return nil, errors.New("ERR the script cache is full: " + strconv.Itoa(c.maxBytes) +
				" bytes of scripts are loaded; SCRIPT FLUSH empties it")
		}
		c.scripts[s.key] = s
		c.bytes += s.costBytes
		c.evaluated++
	}
	if keep && !s.kept {
		s.kept = true
		c.evaluated--
	}
	s.lastUsed.Store(c.ticks.Add(1))
	return s, nil
}

// makeRoomLocked evicts what may be evicted until costBytes fit, and one more evaluated script if that is what comes.
func (c *cache) makeRoomLocked(costBytes int, evaluated bool) bool {
	for c.bytes+costBytes > c.maxBytes || evaluated && c.evaluated >= c.maxEvaluated {
		var oldest *Script
		for _, s := range c.scripts {
			if !s.kept && (oldest == nil || s.lastUsed.Load() < oldest.lastUsed.Load()) {
				oldest = s
			}
		}
		if oldest == nil {
			return false
		}
		delete(c.scripts, oldest.key)
		c.bytes -= oldest.costBytes
		c.evaluated--
	}
	return true
}
